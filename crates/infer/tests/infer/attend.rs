use std::fs;
use std::path::Path;

use attend_infer::{Aligner, Alignment, Error, Translator};
use attend_model::{AttentionChoice, AttentionConfig, Kernels, Place};
use roxmltree::Document;

use crate::command::{assert_error, infer};
use crate::fixture::{Fixture, with_bundle};
use crate::heatmap::{elements, of_class};

const TEXT: &str = "the small cat sleeps";
const TARGET: &str = "die kleine Katze schläft";

fn align(fixture: &Fixture, text: &str, target: Option<&str>) -> Alignment {
    let (model, tokenizers) = (&*fixture.model, &fixture.tokenizers);
    let aligner = Aligner::new(model, tokenizers, &fixture.decode, Kernels::Fused);
    aligner.align(text, target).unwrap()
}

fn draw(folder: &Path, options: &[&str]) -> String {
    let args = ["attend", "bundle", "--text", TEXT, "-o", "-"];
    let ran = infer(folder, &[&args, options].concat(), b"");
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{options:?}");
    ran.stdout
}

#[test]
fn every_map_has_a_label_for_each_row_and_column_and_rows_sum_to_one() {
    for fixture in [Fixture::joint(), Fixture::separate()] {
        for target in [None, Some(TARGET)] {
            let alignment = align(&fixture, TEXT, target);
            assert_eq!(alignment.maps.len(), 2 + 2 * 4); // 1 encoder and 2 decoder layers, 2 heads
            for map in &alignment.maps {
                let weights: Vec<Vec<f32>> = map.weights.to_vec2().unwrap();
                assert_eq!(weights.len(), alignment.queries(map.place).len());
                for row in &weights {
                    assert_eq!(row.len(), alignment.keys(map.place).len());
                    assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
                }
            }
        }
    }
}

#[test]
fn decoder_self_attention_keys_are_the_shifted_target() {
    let alignment = align(&Fixture::joint(), TEXT, Some(TARGET));
    let rows = alignment.queries(Place::Decoder);
    let columns = alignment.keys(Place::Decoder);
    assert_eq!(rows.last().unwrap(), "</s>");
    assert_eq!(columns[0], "<s>");
    assert_eq!(columns[1..], rows[..rows.len() - 1]);
    assert_eq!(alignment.queries(Place::Cross), rows);
    assert_eq!(alignment.keys(Place::Cross).last().unwrap(), "</s>");
    assert_eq!(
        alignment.keys(Place::Encoder),
        alignment.queries(Place::Encoder)
    );
}

#[test]
fn without_a_target_the_models_own_translation_is_aligned() {
    let fixture = Fixture::joint();
    let alignment = align(&fixture, TEXT, None);
    let target = &alignment.target;
    assert_eq!(target.pieces.len(), target.tokens.len());
    let (model, tokenizers) = (&*fixture.model, &fixture.tokenizers);
    let translator = Translator::new(model, tokenizers, &fixture.decode, Kernels::Fused);
    let own = &translator.translate(&[TEXT]).unwrap()[0];
    assert_eq!(target.text, own.text());
    assert_eq!(target.tokens, own.hypotheses[0].tokens);
}

#[test]
fn an_empty_source_sentence_is_an_error() {
    let fixture = Fixture::joint();
    let (model, tokenizers) = (&*fixture.model, &fixture.tokenizers);
    let aligner = Aligner::new(model, tokenizers, &fixture.decode, Kernels::Fused);
    for text in ["", " \u{3000}"] {
        let error = aligner.align(text, Some("ein Hund")).unwrap_err();
        assert!(matches!(error, Error::Usage { .. }), "{error}");
    }
}

#[test]
fn a_grid_has_a_heatmap_for_every_head_of_every_layer() {
    let (folder, _) = with_bundle();
    let alignment = align(&Fixture::joint(), TEXT, None);
    let cells = alignment.source.tokens.len() * alignment.target.tokens.len();
    for (options, layers, heads) in [
        (&[][..], 2, 2),
        (&["--layer", "2"], 1, 2),
        (&["--head", "1"], 2, 1),
    ] {
        let svg = draw(folder.path(), options);
        let document = Document::parse(&svg).unwrap();
        let maps = of_class(&document, "map");
        assert_eq!(maps.len(), layers * heads, "{options:?}");
        assert_eq!(of_class(&document, "rows").len(), layers);
        assert_eq!(of_class(&document, "columns").len(), heads);
        for map in maps {
            let drawn = elements(&[map], "rect") - 1; // the frame
            assert_eq!(drawn, cells);
            let mut children = map.children();
            let title = children.find(|node| node.attribute("class") == Some("title"));
            let title = title.unwrap().text().unwrap();
            assert!(title.starts_with("layer ") && title.contains(", head "));
        }
    }
}

#[test]
fn a_single_heatmap_has_a_tooltip_for_every_weight_and_a_description() {
    let (folder, _) = with_bundle();
    for options in [
        &["--mean"][..],
        &["--layer", "2", "--head", "1"],
        &["--mean", "--part", "decoder", "--target", TARGET],
        &["--part", "encoder", "--head", "2"],
    ] {
        let svg = draw(folder.path(), options);
        let document = Document::parse(&svg).unwrap();
        let cells = of_class(&document, "cells");
        assert_eq!(cells.len(), 1, "{options:?}");
        assert_eq!(elements(&cells, "rect"), elements(&cells, "title"));
        let (rows, columns) = (of_class(&document, "rows"), of_class(&document, "columns"));
        let weights = elements(&rows, "text") * elements(&columns, "text");
        assert_eq!(elements(&cells, "rect"), weights, "{options:?}");
        let root = document.root_element();
        assert_eq!(root.attribute("role"), Some("img"));
        assert!(root.attribute("aria-label").unwrap().contains(TEXT));
        assert_eq!(svg.contains(TARGET), options.contains(&TARGET));
        assert!(
            !svg.contains("href") && !svg.contains("url(h"),
            "external resources"
        );
    }
}

#[test]
fn a_recurrent_model_has_one_heatmap_and_none_without_attention() {
    let attention = AttentionChoice::Some(AttentionConfig::default());
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle");
    Fixture::recurrent(attention).write(&bundle);
    let svg = draw(folder.path(), &[]);
    let document = Document::parse(&svg).unwrap();
    assert_eq!(of_class(&document, "map").len(), 1);
    assert!(!svg.contains("head 1"), "a single head is not numbered");
    let check = |args: &str, error: &str, hint: &str| {
        let args: Vec<&str> = args.split(' ').collect();
        assert_error(folder.path(), &args, b"", error, hint);
    };
    check(
        "attend bundle --text cat --part encoder -o -",
        "--part encoder: the model has no encoder self-attention",
        "omit --part",
    );
    check(
        "attend bundle --text cat --layer 2 -o -",
        "--layer 2: this attention has 1 layer",
        "omit --layer",
    );
    fs::remove_dir_all(&bundle).unwrap();
    Fixture::recurrent(AttentionChoice::None).write(&bundle);
    check(
        "attend bundle --text cat -o -",
        "the model has no attention to draw",
        "attention = \"none\"",
    );
}

#[test]
fn invalid_layers_heads_and_output_paths_are_errors() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    let check = |args: &str, error: &str, hint: &str| {
        let args: Vec<&str> = args.split(' ').collect();
        assert_error(folder, &args, b"", error, hint);
    };
    let layer = "attend bundle --text cat --layer 9 -o a.svg";
    check(
        layer,
        "--layer 9: this attention has 2 layers",
        "from 1 to 2",
    );
    let head = "attend bundle --text cat --head 3 -o a.svg";
    check(head, "--head 3: this attention has 2 heads", "from 1 to 2");
    // Output paths are checked before the model is opened.
    let name = "attend nowhere --text cat -o a.pdf";
    check(name, "a.pdf: not an .svg or .png file", ".svg");
    let bare = "attend nowhere --text cat -o svg";
    check(bare, "svg: not an .svg or .png file", ".svg");
    let folderless = "attend nowhere --text cat -o no/a.svg";
    check(
        folderless,
        "cannot write no/a.svg: no such folder",
        "mkdir -p no",
    );
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "only the bundle");
}

#[test]
fn an_existing_picture_is_replaced() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    fs::write(folder.join("a.svg"), "x".repeat(1 << 20)).unwrap();
    let args = ["attend", "bundle", "--text", TEXT, "-o", "a.svg"];
    let ran = infer(folder, &args, b"");
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (0, "", ""));
    let svg = fs::read_to_string(folder.join("a.svg")).unwrap();
    assert_eq!(svg, draw(folder, &[]));
    assert_eq!(
        fs::read_dir(folder).unwrap().count(),
        2,
        "no temporary file is left"
    );
}

#[test]
#[cfg(feature = "png")]
fn png_files_have_the_png_signature_and_are_not_empty() {
    let (folder, _) = with_bundle();
    let args = ["attend", "bundle", "--text", TEXT, "-o", "a.PNG"];
    let ran = infer(folder.path(), &args, b"");
    assert_eq!((ran.code, &*ran.stdout), (0, "")); // stderr may warn about missing fonts
    let png = fs::read(folder.path().join("a.PNG")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(png.len() > 2000, "{} bytes", png.len());
}
