use std::fs;
use std::path::{Path, PathBuf};

use attend_data::{Tokenizer, TokenizerConfig, Tokenizers};
use attend_infer::pointing::{Mention, PointedWords};
use attend_infer::{Aligner, DecodeConfig, Error, Scorer, Translation, Translator};
use attend_model::{Kernels, ModelConfig, Vocabularies};
use candle_core::Device;
use roxmltree::Document;
use tempfile::TempDir;

use crate::command::{assert_refused, infer};
use crate::fixture::{Fixture, with_bundle};

const CAPTIONS: [&str; 3] = ["a red boat", "two green trees", "a boat left of a tree"];
const RECURRENT: &str = "[caption]
picture = { height = 16, width = 24 }
blocks = [{ width = 4, convolutions = 1, pool = 2 }, { width = 8, convolutions = 1, pool = 2 }]
[caption.recurrent]
d_embed = 8
d_hidden = 8
attention = \"bahdanau\"
";
const TRANSFORMER: &str = "[caption]
picture = { height = 16, width = 24 }
blocks = [{ width = 4, convolutions = 1, pool = 4 }]
[caption.transformer]
encoder_layers = 0
decoder_layers = 2
d_model = 8
heads = 2
d_ff = 16
tie = \"decoder\"
";

/// A model with random weights.
fn captioner(config: &str) -> Fixture {
    let tokenizer = TokenizerConfig {
        vocab_size: 60,
        ..TokenizerConfig::default()
    };
    let tokenizer = Tokenizer::train(&tokenizer, CAPTIONS.into_iter()).unwrap();
    let tokenizers = Tokenizers::TargetOnly(tokenizer);
    let vocabularies = Vocabularies {
        source: None,
        target: tokenizers.target().vocab_size(),
        joint: false,
    };
    let config: ModelConfig = toml::from_str(config).unwrap();
    let model = config.build(vocabularies, 3, &Device::Cpu).unwrap();
    Fixture {
        config,
        vocabularies,
        tokenizers,
        decode: DecodeConfig {
            max_length: 12,
            max_length_ratio: 0.0, // says nothing of pictures
            ..DecodeConfig::default()
        },
        model,
    }
}

fn svg(colour: &str, x: usize) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"48\" height=\"32\">\
         <rect width=\"48\" height=\"32\" fill=\"#fff\"/>\
         <rect x=\"{x}\" y=\"8\" width=\"12\" height=\"12\" fill=\"{colour}\"/></svg>"
    )
}

/// A folder with a bundle and pictures.
fn folder(config: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    captioner(config).write(&folder.path().join("bundle"));
    let pictures = folder.path().join("data/pictures");
    fs::create_dir_all(&pictures).unwrap();
    for (i, colour) in ["red", "green", "#123456", "orange"].iter().enumerate() {
        fs::write(pictures.join(format!("{i}.svg")), svg(colour, 9 * i)).unwrap();
    }
    let path = folder.path().to_path_buf();
    (folder, path)
}

fn paths(folder: &Path) -> Vec<String> {
    let lines = ["0.svg", "", "2.svg", "1.svg", "3.svg", "0.svg", "  "];
    let path = |name: &str| match name.trim() {
        "" => name.to_string(),
        name => folder
            .join("data/pictures")
            .join(name)
            .display()
            .to_string(),
    };
    lines.map(path).to_vec()
}

fn hypotheses(translations: &[Translation]) -> Vec<(Vec<u32>, f32)> {
    let best = translations.iter().map(|it| &it.hypotheses[0]);
    best.map(|best| (best.tokens.clone(), best.score)).collect()
}

#[test]
fn every_line_has_a_caption_and_paths_are_relative_to_the_file_that_names_them() {
    for config in [RECURRENT, TRANSFORMER] {
        let (_keep, folder) = folder(config);
        let lines = "pictures/0.svg\n\npictures/3.svg\npictures/1.svg\n";
        fs::write(folder.join("data/list.txt"), lines).unwrap();
        let table = "picture\ten\npictures/0.svg\ta\n\t\npictures/3.svg\tb\npictures/1.svg\tc\n";
        fs::write(folder.join("data/list.tsv"), table).unwrap();
        let piped = lines.replace("pictures", "data/pictures");
        let piped = infer(&folder, &["translate", "bundle"], piped.as_bytes());
        assert_eq!((piped.code, &*piped.stderr), (0, ""));
        let captions: Vec<&str> = piped.stdout.lines().collect();
        assert_eq!(captions.len(), 4);
        assert_eq!(captions[1], "");
        assert!(!captions[0].is_empty(), "{captions:?}");
        for input in ["data/list.txt", "data/list.tsv:picture"] {
            let ran = infer(&folder, &["translate", "bundle", input], b"");
            assert_eq!((ran.code, &*ran.stderr), (0, ""), "{input}");
            assert_eq!(ran.stdout, piped.stdout, "{input}");
        }
    }
}

#[test]
fn a_picture_that_cannot_be_read_is_named_with_its_line_after_the_captions_before_it() {
    let (_keep, folder) = folder(RECURRENT);
    fs::write(folder.join("data/pictures/bad.png"), b"\x89PNG\r\n\x1a\nno").unwrap();
    let lines =
        "pictures/0.svg\n\npictures/1.svg\npictures/bad.png\npictures/2.svg\npictures/no.svg\n";
    fs::write(folder.join("data/list.txt"), lines).unwrap();
    let good = "data/pictures/0.svg\n\ndata/pictures/1.svg\n";
    let good = infer(&folder, &["translate", "bundle"], good.as_bytes()).stdout;
    let ran = infer(&folder, &["translate", "bundle", "data/list.txt"], b"");
    assert_ne!(ran.code, 0);
    assert_eq!(ran.stdout, good);
    for part in ["data/list.txt:4: ", "data/pictures/bad.png"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    // The second of two files, and standard input.
    let args = ["translate", "bundle", "data/list.txt", "data/list.txt"];
    fs::write(folder.join("data/list.txt"), "pictures/0.svg\n").unwrap();
    fs::write(
        folder.join("data/other.txt"),
        "pictures/0.svg\npictures/no.svg\n",
    )
    .unwrap();
    let args = [&args[..3], &["data/other.txt"]].concat();
    let ran = infer(&folder, &args, b"");
    assert_eq!(ran.stdout.lines().count(), 2);
    assert!(ran.stderr.contains("data/other.txt:2: "), "{}", ran.stderr);
    let ran = infer(&folder, &["translate", "bundle"], b"no.svg");
    assert!(
        ran.stderr.contains("standard input:1: no.svg"),
        "{}",
        ran.stderr
    );

    let table = "picture\ten\npictures/0.svg\ta\npictures/no.svg\tb\n";
    fs::write(folder.join("data/list.tsv"), table).unwrap();
    for command in ["evaluate", "score"] {
        let args = [
            command,
            "bundle",
            "--src",
            "data/list.tsv:picture",
            "--ref",
            "data/list.tsv:en",
        ];
        let ran = infer(&folder, &args, b"");
        assert_ne!(ran.code, 0);
        assert!(
            ran.stderr.contains("data/list.tsv:3: "),
            "{command}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_caption_does_not_depend_on_what_is_captioned_with_it() {
    for config in [RECURRENT, TRANSFORMER] {
        let (_keep, folder) = folder(config);
        let fixture = captioner(config);
        let lines = paths(&folder);
        let translate = |lines: &[String], batch_tokens: usize, beam: usize| {
            let decode = DecodeConfig {
                batch_tokens,
                beam,
                ..fixture.decode.clone()
            };
            let (model, tokenizers) = (&*fixture.model, &fixture.tokenizers);
            let translator = Translator::new(model, tokenizers, &decode, Kernels::Fused);
            hypotheses(&translator.translate(lines).unwrap())
        };
        for beam in [1, 3] {
            let whole = translate(&lines, 4096, beam);
            assert_eq!(translate(&lines, 1, beam), whole);
            let one_by_one = lines
                .iter()
                .flat_map(|line| translate(std::slice::from_ref(line), 4096, beam));
            assert_eq!(one_by_one.collect::<Vec<_>>(), whole);
            assert_eq!(whole[0], whole[5]);
            assert!(whole[1].0.is_empty() && whole[6].0.is_empty());
        }
    }
}

#[test]
fn a_beam_of_one_is_greedy_and_only_max_length_limits_a_caption() {
    let (_keep, folder) = folder(TRANSFORMER);
    let fixture = captioner(TRANSFORMER);
    let args = |more: &[&'static str]| {
        let all = ["translate", "bundle", "--max-length", "7", "--scores"];
        let ran = infer(
            &folder,
            &[&all, more].concat(),
            b"data/pictures/2.svg\ndata/pictures/1.svg\n",
        );
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    assert_eq!(args(&["--beam", "1"]), args(&["--greedy"]));
    let translator = Translator::new(
        &*fixture.model,
        &fixture.tokenizers,
        &fixture.decode,
        Kernels::Fused,
    );
    let found = translator.translate(&paths(&folder)).unwrap();
    // With a ratio of 0, a sentence would have ten tokens at most.
    let longest = found.iter().map(|it| it.hypotheses[0].tokens.len()).max();
    assert_eq!(longest, Some(12), "an untrained model goes on to the limit");
}

#[test]
fn search_options_ensembles_and_scores_work_as_for_text() {
    let (_keep, folder) = folder(RECURRENT);
    let input = b"data/pictures/0.svg\n\ndata/pictures/1.svg\n";
    let run = |args: &[&str]| {
        let ran = infer(&folder, &[&["translate", "bundle"], args].concat(), input);
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{args:?}");
        ran.stdout
    };
    let plain = run(&["--scores"]);
    assert_eq!(run(&["--scores", "--ensemble", "bundle"]), plain);
    assert_eq!(run(&["--n-best", "2"]).lines().count(), 2 + 1 + 2);
    assert_eq!(
        run(&["--sample", "--seed", "5"]),
        run(&["--sample", "--seed", "5", "--batch-tokens", "1"])
    );
    run(&["--beam", "2", "--coverage-penalty", "0.2"]);
    assert!(!run(&["--forbid", "boat"]).contains("boat"));
    let prefixed = infer(
        &folder,
        &["translate", "bundle", "--prefix-column"],
        b"data/pictures/0.svg\ttwo green\n\n",
    );
    assert!(
        prefixed.stdout.starts_with("two green"),
        "{}{}",
        prefixed.stdout,
        prefixed.stderr
    );

    let fixture = captioner(RECURRENT);
    let (model, tokenizers) = (&*fixture.model, &fixture.tokenizers);
    let scorer = Scorer::new(model, tokenizers, &fixture.decode, Kernels::Fused);
    let source: Vec<String> = paths(&folder);
    let target = vec!["a red boat".to_string(); source.len()];
    let target: Vec<String> = source
        .iter()
        .zip(target)
        .map(|(s, t)| if s.trim().is_empty() { s.clone() } else { t })
        .collect();
    let scored = scorer.score_texts(&source, &target).unwrap();
    assert!(scored[0].log_prob < 0.0 && scored[1].tokens.is_empty());
    assert!((scored[0].log_prob - scored[5].log_prob).abs() < 1e-6);
}

#[test]
fn what_needs_text_is_refused_by_name() {
    let (_keep, folder) = folder(TRANSFORMER);
    fs::write(folder.join("terms"), "a\tb\n").unwrap();
    let refused: [&[&str]; 7] = [
        &["--sentences"],
        &["--protect"],
        &["--format", "html"],
        &["--glossary", "terms"],
        &["--alignments", "links"],
        &["--layer", "1"],
        &["--placeholder", "x"],
    ];
    for args in refused {
        let ran = infer(&folder, &[&["translate", "bundle"], args].concat(), b"");
        let message = format!(
            "{}: bundle reads pictures of 16 × 24 pixels, not text",
            args[0]
        );
        assert_refused(&ran, &message, "leave it out");
    }
    fs::write(folder.join("a"), "a\n").unwrap();
    let ran = infer(
        &folder,
        &["alignments", "bundle", "--src", "a", "--ref", "a"],
        b"",
    );
    assert_refused(
        &ran,
        "words are linked to words, but the model reads pictures",
        "infer attend",
    );
    let ran = infer(
        &folder,
        &["export", "bundle", "--to", "hf", "-o", "out"],
        b"",
    );
    assert_refused(
        &ran,
        "cannot be exported: it reads pictures",
        "only models that read text",
    );
    #[cfg(feature = "serve")]
    {
        let ran = infer(&folder, &["serve", "en-de=bundle", "--port", "0"], b"");
        assert_refused(
            &ran,
            "infer serve needs a model that reads text",
            "infer translate",
        );
    }
    let (_other, text) = with_bundle();
    let text = text.display().to_string();
    let ran = infer(&folder, &["translate", "bundle", "--ensemble", &text], b"");
    assert!(
        ran.stderr
            .contains("one reads pictures of 16 × 24 pixels, the other text"),
        "{}",
        ran.stderr
    );
}

#[test]
fn each_word_of_a_caption_has_a_panel_and_the_drawing_refers_to_nothing_outside() {
    for (config, heads) in [(RECURRENT, 1), (TRANSFORMER, 4)] {
        let (_keep, folder) = folder(config);
        let draw = |more: &[&str]| {
            let all = [
                "attend",
                "bundle",
                "--image",
                "data/pictures/1.svg",
                "--target",
                "a red boat",
                "-o",
                "-",
            ];
            let ran = infer(&folder, &[&all, more].concat(), b"");
            assert_eq!((ran.code, &*ran.stderr), (0, ""), "{more:?}");
            ran.stdout
        };
        for (options, blocks) in [
            (&[][..], heads),
            (&["--mean"], 1),
            (&["--layer", "1", "--head", "1"], 1),
        ] {
            let text = draw(options);
            let svg = Document::parse(&text).unwrap();
            let of_class = |class: &'static str| {
                let nodes = svg.descendants();
                nodes
                    .filter(move |node| node.attribute("class") == Some(class))
                    .count()
            };
            let words = of_class("word") / blocks;
            assert!(words >= 3, "{words} words");
            assert_eq!(of_class("panel"), blocks * (words + 1));
            assert_eq!(of_class("shade"), blocks * words);
            for attribute in svg.descendants().flat_map(|node| node.attributes()) {
                if attribute.name() == "href" {
                    let value = attribute.value();
                    assert!(
                        value.starts_with("data:image/png;base64,") || value.starts_with('#'),
                        "{value}"
                    );
                }
                assert!(!attribute.value().contains("url("));
            }
        }
    }
}

#[cfg(feature = "png")]
#[test]
fn a_drawing_as_pixels_shows_the_picture() {
    let (_keep, folder) = folder(RECURRENT);
    let args = [
        "attend",
        "bundle",
        "--image",
        "data/pictures/0.svg",
        "-o",
        "out.png",
    ];
    let ran = infer(&folder, &args, b"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let file = std::io::BufReader::new(fs::File::open(folder.join("out.png")).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    let red = bytes
        .chunks(info.color_type.samples())
        .filter(|pixel| pixel[0] > 240 && pixel[1] < 16);
    assert!(red.count() > 500);
}

#[test]
fn text_and_pictures_are_not_drawn_for_models_that_read_the_other() {
    let (_keep, folder) = folder(RECURRENT);
    let ran = infer(
        &folder,
        &["attend", "bundle", "--text", "a dog", "-o", "-"],
        b"",
    );
    assert_refused(
        &ran,
        "--text: bundle reads pictures of 16 × 24 pixels",
        "--image",
    );
    let (_other, bundle) = with_bundle();
    let bundle = bundle.display().to_string();
    let ran = infer(
        &folder,
        &[
            "attend",
            &bundle,
            "--image",
            "data/pictures/0.svg",
            "-o",
            "-",
        ],
        b"",
    );
    assert!(
        ran.stderr.contains("reads text") && ran.stderr.contains("--text"),
        "{}",
        ran.stderr
    );
    let ran = infer(
        &folder,
        &["attend", "bundle", "--text", "a", "--image", "b", "-o", "-"],
        b"",
    );
    assert_eq!(ran.code, 2);
    let ran = infer(
        &folder,
        &["attend", "bundle", "--image", "no.png", "-o", "-"],
        b"",
    );
    assert!(ran.stderr.contains("no.png"), "{}", ran.stderr);
}

#[test]
fn a_mention_is_measured_at_the_step_that_predicts_it() {
    let (_keep, folder) = folder(RECURRENT);
    let fixture = captioner(RECURRENT);
    let aligner = Aligner::new(
        &*fixture.model,
        &fixture.tokenizers,
        &fixture.decode,
        Kernels::Fused,
    );
    let picture = paths(&folder).remove(0);
    let caption = "a boat left of a tree";
    let mention = |phrase: &str, area: [f64; 4]| Mention {
        phrase: phrase.into(),
        boxes: vec![area],
    };
    let left = [0.0, 0.0, 0.5, 1.0];
    let right = [0.5, 0.0, 1.0, 1.0];
    let mentions = [
        mention("tree", left),
        mention("tree", right),
        mention("boat", right),
        mention("dog", left),
        mention("of a tree", left),
    ];
    let of = |mentions: &[Mention]| aligner.point(&picture, caption, mentions).unwrap();
    let found = of(&mentions);
    assert!(found[0].is_some() && found[1].is_none() && found[2].is_some() && found[3].is_none());
    let within_noun = |pointed: &Option<PointedWords>| pointed.as_ref().unwrap().noun().within;
    let phrase = found[4].as_ref().unwrap();
    assert_eq!(
        (phrase.words().len(), phrase.noun().within),
        (3, within_noun(&found[0]))
    );
    // Both halves together have all of the attention.
    let other = of(&mentions[1..2]);
    let sum = within_noun(&found[0]) + within_noun(&other[0]);
    assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    let alignment = aligner.align(&picture, Some(caption)).unwrap();
    let maps: Vec<_> = alignment.maps.iter().collect();
    let weights = alignment.mean(&maps).unwrap();
    let tree = alignment.target.tokens.len() - 2; // before `</s>`
    let (rows, columns) = alignment.regions.unwrap();
    let in_left: f32 = (0..rows * columns)
        .filter(|i| i % columns < columns / 2)
        .map(|i| weights[tree][i])
        .sum();
    assert!((f64::from(in_left) - within_noun(&found[0])).abs() < 1e-5);
    let error = aligner.align("no.png", Some(caption)).unwrap_err();
    assert!(matches!(error, Error::Line { .. }), "{error}");
}
