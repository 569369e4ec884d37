use crate::{folder, message, prefix};
use attend_data::{DataConfig, FilePair, PathPair, Paths, TokenizerConfig, TokenizerFiles};
use serde_json::json;

fn parse(value: serde_json::Value) -> Result<DataConfig, String> {
    serde_json::from_value(value).map_err(|e| e.to_string())
}

#[test]
fn three_keys_are_enough() {
    let config = parse(json!({"source": "en", "target": "de", "train": "data/train"})).unwrap();
    assert_eq!(config, DataConfig::new("en", "de", "data/train"));
    assert_eq!((config.batch_tokens, config.max_length), (4096, 256));
    assert_eq!(config.tokenizer.vocab_size, 8000);
    assert!(config.tokenizer.joint);
}

#[test]
fn a_corpus_is_a_prefix_a_pair_of_files_or_a_list() {
    let train = |value| parse(json!({"source": "en", "target": "de", "train": value}));
    let files = FilePair {
        source: "a.txt".into(),
        target: "b.txt".into(),
    };
    let table = json!({"source": "a.txt", "target": "b.txt"});
    assert_eq!(train(json!("x")).unwrap().train, Some("x".into()));
    assert_eq!(
        train(table.clone()).unwrap().train,
        Some(files.clone().into())
    );
    assert_eq!(
        train(json!(["x", table])).unwrap().train,
        Some(Paths::Many(vec![
            PathPair::Prefix("x".into()),
            PathPair::Files(files)
        ]))
    );
}

#[test]
fn a_corpus_of_the_wrong_form_has_an_error_that_names_the_problem() {
    let train = |value| parse(json!({"source": "en", "target": "de", "train": value})).unwrap_err();
    let number = train(json!(3));
    assert!(
        number.contains("expected a prefix such as \"data/train\""),
        "{number}"
    );
    let key = train(json!({"src": "a", "target": "b"}));
    assert!(
        key.contains("unknown field `src`, expected one of `path`, `source`, `target`"),
        "{key}"
    );
    assert!(train(json!({"source": "a"})).contains("missing field `target`"));
    assert!(train(json!([])).contains("the list of corpora is empty"));
    assert!(train(json!("")).contains("the path is empty"));
    assert!(train(json!([3])).contains("expected a prefix"));
}

#[test]
fn unknown_keys_are_errors() {
    let error = parse(json!({"source": "en", "target": "de", "train": "x", "batch": 1}));
    assert!(error.unwrap_err().contains("unknown field `batch`"));
    let error: Result<TokenizerConfig, _> = serde_json::from_value(json!({"vocab": 1}));
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("unknown field `vocab`")
    );
    let error: Result<TokenizerConfig, _> = serde_json::from_value(json!({"kind": "bytes"}));
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("expected one of `bpe`")
    );
}

#[test]
fn a_config_can_be_written_and_read() {
    let mut config = DataConfig::new("en", "de", "data/train");
    config.valid = Some(Paths::Many(vec![PathPair::Prefix("v".into())]));
    config.test = Some(Paths::from(FilePair {
        source: "a".into(),
        target: "b".into(),
    }));
    config.tokenizer.file = Some(TokenizerFiles::Joint("tokenizer.json".into()));
    assert_eq!(
        parse(serde_json::to_value(&config).unwrap()).unwrap(),
        config
    );
}

#[test]
fn every_key_is_described_in_the_schema() {
    let schema = schemars::schema_for!(DataConfig).to_value();
    let tokenizer = &schema["$defs"]["TokenizerConfig"]["properties"];
    for properties in [&schema["properties"], tokenizer] {
        for (key, value) in properties.as_object().unwrap() {
            assert!(value["description"].is_string(), "{key} has no description");
        }
    }
}

#[test]
fn values_out_of_range_are_refused_by_key() {
    let dir = folder(&[("t.en", b"1\n"), ("t.de", b"1\n")]);
    let good = DataConfig::new("en", "de", prefix(&dir, "t"));
    good.validate().unwrap();
    let refused = |change: fn(&mut DataConfig)| {
        let mut config = good.clone();
        change(&mut config);
        message(&config.validate().unwrap_err(), &dir)
    };
    assert_eq!(refused(|c| c.batch_tokens = 0), "data.batch_tokens: is 0");
    assert!(refused(|c| c.max_length = 1).starts_with("data.max_length: "));
    assert!(refused(|c| c.tokenizer.vocab_size = 3).starts_with("data.tokenizer.vocab_size: "));
    assert_eq!(refused(|c| c.source.clear()), "data.source: is empty");
    assert_eq!(
        refused(|c| c.cache = Some("".into())),
        "data.cache: is empty"
    );
}

#[test]
fn missing_files_are_named_before_any_file_is_read() {
    let dir = folder(&[("t.en", b"1\n"), ("t.de", b"1\n")]);
    let good = DataConfig::new("en", "de", prefix(&dir, "t"));
    let resolve = |config: &DataConfig| {
        config.validate().unwrap(); // checks values, not files
        let (paths, _) = config.training().remove(0);
        paths.resolve(&config.source, &config.target)
    };
    assert_eq!(resolve(&good).unwrap().len(), 1);
    let mut config = good.clone();
    config.target = "fr".into();
    let error = message(&resolve(&config).unwrap_err(), &dir);
    assert!(
        error.starts_with("no such file: t.fr (nor t.fr.gz"),
        "{error}"
    );
    config.tokenizer.file = Some(TokenizerFiles::Joint("t.json".into()));
    assert_eq!(
        config.tokenizer.check_files().unwrap_err().to_string(),
        "no such file: t.json"
    );
}

#[test]
fn what_belongs_to_text_is_refused_if_the_sources_are_not_text() {
    use attend_data::{CorpusConfig, FilePair, Normalization, Paths, SourceKind};
    let files = FilePair {
        source: "paths.txt".into(),
        target: "t.de".into(),
    };
    let mut good = DataConfig::new("picture", "de", Paths::from(files));
    good.source_kind = SourceKind::Pictures;
    good.clean.duplicates = true;
    good.clean.normalize = Some(Normalization::Nfc);
    good.tokenizer.file = Some(TokenizerFiles::Joint("t.json".into()));
    good.validate().unwrap();
    assert!(!good.is_joint());
    let refused = |change: &dyn Fn(&mut DataConfig)| {
        let mut config = good.clone();
        change(&mut config);
        let error = config.validate().unwrap_err();
        assert!(error.hint().is_some());
        error.to_string()
    };
    let both = || FilePair {
        source: "a".into(),
        target: "b".into(),
    };
    let belongs = "belongs to sources that are text, and data.source_kind is \"pictures\"";
    let key = |name: &str| format!("data.{name}: {belongs}");
    assert_eq!(refused(&|c| c.augment.uppercase = 0.1), key("augment"));
    assert_eq!(refused(&|c| c.clean.same = true), key("clean.same"));
    assert_eq!(
        refused(&|c| c.clean.max_ratio = Some(2.0)),
        key("clean.max_ratio")
    );
    let scripts = refused(&|c| c.clean.source_scripts = vec!["auto".into()]);
    assert_eq!(scripts, key("clean.source_scripts"));
    let tagged = refused(&|c| {
        c.train = None;
        c.corpora = vec![CorpusConfig {
            path: Some(attend_data::Patterns::One("x.tsv".into())),
            tag: Some(">>de<<".into()),
            ..Default::default()
        }];
    });
    assert_eq!(tagged, key("corpora.0.tag"));
    let file = refused(&|c| c.tokenizer.file = Some(TokenizerFiles::Separate(both())));
    assert!(
        file.starts_with("data.tokenizer.file: names a file for the source"),
        "{file}"
    );
    let prefix = refused(&|c| c.valid = Some("valid".into()));
    let want = "data.source_kind: is \"pictures\", whose paths cannot be read from parallel text";
    assert_eq!(prefix, want);
    // The default is not written, so that configs stay as they are.
    let text = serde_json::to_value(DataConfig::new("en", "de", "t")).unwrap();
    assert!(text.get("source_kind").is_none());
    assert_eq!(
        serde_json::to_value(&good).unwrap()["source_kind"],
        "pictures"
    );
}
