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
