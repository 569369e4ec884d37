use attend_infer::heatmap::{WordLine, WordPicture};
use attend_model::{LstmnConfig, ModelConfig};
use candle_core::Device;
use roxmltree::{Document, Node};

use crate::command::infer;
use crate::fixture::{Fixture, with_bundle};
use crate::heatmap::{elements, of_class};

const TEXT: &str = "the small cat sleeps";
const TARGET: &str = "die kleine Katze schläft";

fn lstmn() -> Fixture {
    let mut fixture = Fixture::joint();
    fixture.config = ModelConfig::Lstmn(LstmnConfig {
        d_embed: 16,
        d_hidden: 16,
        ..LstmnConfig::default()
    });
    let model = fixture.config.build(fixture.vocabularies, 7, &Device::Cpu);
    fixture.model = model.unwrap();
    fixture
}

/// The words of a step, and the place of the one that is red.
fn words<'a>(step: &Node<'a, 'a>) -> (Vec<&'a str>, Option<usize>) {
    let texts = step.children().filter(|node| node.has_tag_name("text"));
    let texts: Vec<Node> = texts.collect();
    let current = texts
        .iter()
        .position(|text| text.attribute("class") == Some("current"));
    let words = texts.iter().map(|text| text.text().unwrap_or_default());
    (words.collect(), current)
}

#[test]
fn every_word_has_a_line_in_which_it_is_red_and_words_before_it_are_shaded() {
    let folder = tempfile::tempdir().unwrap();
    lstmn().write(&folder.path().join("bundle"));
    for part in ["encoder", "decoder"] {
        let args = [
            "attend", "bundle", "--text", TEXT, "--target", TARGET, "-o", "-",
        ];
        let style = ["--style", "words", "--part", part];
        let ran = infer(folder.path(), &[&args[..], &style].concat(), b"");
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{part}");
        let document = Document::parse(&ran.stdout).unwrap();
        let steps = of_class(&document, "step");
        let first = usize::from(part == "decoder"); // <s>
        for (number, step) in steps.iter().enumerate() {
            let (words, current) = words(step);
            assert_eq!(words.len(), steps.len() + first, "{part}");
            assert_eq!(current, Some(number + first), "{part}");
            assert_eq!(*words.last().unwrap(), "</s>");
            // The weights over the words before sum to one, so that at least one of them is shaded.
            let shades = elements(&[*step], "rect");
            assert!(
                shades <= number && (shades > 0) == (number > 0),
                "{part} {number}"
            );
        }
    }
}

#[test]
fn a_word_of_the_translation_is_before_the_source_that_it_attends_to() {
    let (folder, _) = with_bundle();
    let args = [
        "attend", "bundle", "--text", TEXT, "--target", TARGET, "-o", "-",
    ];
    let ran = infer(
        folder.path(),
        &[&args[..], &["--style", "words"]].concat(),
        b"",
    );
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let document = Document::parse(&ran.stdout).unwrap();
    let steps = of_class(&document, "step");
    for step in &steps {
        let (words, current) = words(step);
        assert_eq!(current, Some(0));
        assert_eq!(*words.last().unwrap(), "</s>");
        assert!(elements(&[*step], "rect") > 0);
    }
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    assert!(root.attribute("aria-label").unwrap().contains(TEXT));
}

#[test]
fn a_transformers_encoder_shades_words_on_both_sides_and_one_head_can_be_chosen() {
    let (folder, _) = with_bundle();
    let draw = |options: &[&str]| {
        let args = [
            "attend", "bundle", "--text", TEXT, "--part", "encoder", "--style", "words",
        ];
        let ran = infer(
            folder.path(),
            &[&args[..], options, &["-o", "-"]].concat(),
            b"",
        );
        assert_eq!((ran.code, &*ran.stderr), (0, ""));
        ran.stdout
    };
    let mean = draw(&[]);
    let document = Document::parse(&mean).unwrap();
    let first = of_class(&document, "step")[0];
    assert!(elements(&[first], "rect") > 1);
    assert_ne!(mean, draw(&["--head", "1"]));
}

#[test]
fn long_sentences_are_broken_and_stay_within_the_picture() {
    let words = vec!["Wassermelone"; 100];
    let line = WordLine::new(&words, &[0.01; 99], Some(99));
    let svg = WordPicture::new(vec![line.clone(), line.after("melon")]).to_svg();
    let document = Document::parse(&svg).unwrap();
    let root = document.root_element();
    let number =
        |node: &Node, name: &str| -> f32 { node.attribute(name).unwrap().parse().unwrap() };
    let (width, height) = (number(&root, "width"), number(&root, "height"));
    assert!(width < 1000.0, "{width}");
    let shapes = document
        .descendants()
        .filter(|node| node.attribute("rx").is_some());
    let mut rows = std::collections::BTreeSet::new();
    for shape in shapes {
        let (x, y) = (number(&shape, "x"), number(&shape, "y"));
        let (right, bottom) = (x + number(&shape, "width"), y + number(&shape, "height"));
        assert!(x >= 0.0 && right <= width && y >= 0.0 && bottom <= height);
        rows.insert(y as u32);
    }
    assert!(rows.len() > 10, "{} rows", rows.len());
}

#[test]
fn words_are_escaped_and_those_from_right_to_left_begin_at_the_right() {
    let line = WordLine::new(
        &["<unk>", "a & \"b\"", "c\u{0}d"],
        &[1.0, f32::MIN_POSITIVE],
        None,
    );
    let svg = WordPicture::new(vec![line]).described("a < b").to_svg();
    let document = Document::parse(&svg).unwrap();
    let step = of_class(&document, "step")[0];
    assert_eq!(words(&step).0, ["<unk>", "a & \"b\"", "cd"]);
    assert_eq!(
        elements(&[step], "rect"),
        1,
        "a weight of nothing has no shade"
    );
    let hebrew = WordLine::new(&["שלום", "עולם"], &[], None);
    let svg = WordPicture::new(vec![hebrew]).to_svg();
    let document = Document::parse(&svg).unwrap();
    let texts = document
        .descendants()
        .filter(|node| node.has_tag_name("text"));
    let places: Vec<f32> = texts
        .map(|text| text.attribute("x").unwrap().parse().unwrap())
        .collect();
    assert!(places[0] > places[1], "{places:?}");
    assert!(svg.contains("unicode-bidi=\"plaintext\""));
    let empty = WordPicture::new(Vec::new()).to_svg();
    assert!(Document::parse(&empty).is_ok());
}

#[test]
fn too_many_words_are_an_error_that_says_what_to_do() {
    let (folder, _) = with_bundle();
    let text = "dog ".repeat(200);
    let args = [
        "attend", "bundle", "--text", &text, "--target", "Hund", "--style", "words", "-o", "-",
    ];
    let ran = infer(folder.path(), &args, b"");
    assert_eq!(ran.code, 1);
    for part in ["at most 128 can be drawn as words", "draw a heatmap"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
}

#[test]
#[cfg(feature = "png")]
fn words_can_be_png() {
    let (folder, _) = with_bundle();
    let args = [
        "attend", "bundle", "--text", TEXT, "--style", "words", "-o", "a.png",
    ];
    let ran = infer(folder.path(), &args, b"");
    assert_eq!((ran.code, &*ran.stdout), (0, "")); // stderr may warn about missing fonts
    let png = std::fs::read(folder.path().join("a.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 1000);
}
