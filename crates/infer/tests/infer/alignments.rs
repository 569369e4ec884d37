use std::fs;
use std::path::Path;

use attend_infer::{AlignWords, Bundle, Heads, Pair, Translator, WordAligner};
use attend_model::{AttentionChoice, Kernels};
use candle_core::Device;
use tempfile::TempDir;

use crate::command::{assert_error, infer};
use crate::fixture::{Fixture, LINES};
use crate::score::recurrent;

const SOURCE: &str = "a dog runs\n\nthe small cat sleeps\ndogs  run\n \n";
const TARGET: &str = "ein Hund rennt\n\ndie kleine Katze schläft\n\nHunde\n";

fn write(folder: &Path) {
    fs::write(folder.join("src"), SOURCE).unwrap();
    fs::write(folder.join("ref"), TARGET).unwrap();
}

/// A bundle whose heads attend to few words each: those of small random weights attend to all alike.
fn decided() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::joint();
    let mut tensors = fixture.tensors();
    for (name, tensor) in &mut tensors {
        if name.contains("encoder_attn.") && name.ends_with("weight") {
            *tensor = (&*tensor * 30.0).unwrap();
        }
    }
    fixture.write_with(&folder.path().join("bundle"), &tensors);
    write(folder.path());
    folder
}

fn run(folder: &Path, options: &[&str]) -> String {
    let args = ["alignments", "bundle", "--src", "src", "--ref", "ref"];
    let ran = infer(folder, &[&args[..], options].concat(), b"");
    assert_eq!(ran.code, 0, "{options:?}: {}", ran.stderr);
    ran.stdout
}

#[test]
fn every_pair_gives_one_line_of_links_between_words_that_exist() {
    for fixture in [Fixture::joint(), Fixture::separate(), recurrent()] {
        let folder = tempfile::tempdir().unwrap();
        fixture.write(&folder.path().join("bundle"));
        write(folder.path());
        let printed = run(folder.path(), &[]);
        assert_eq!(printed.lines().count(), 5);
        let texts = SOURCE.lines().zip(TARGET.lines());
        for (line, (source, target)) in printed.lines().zip(texts) {
            let [source, target] = [source, target].map(|text| text.split_whitespace().count());
            let links: Vec<(usize, usize)> = line
                .split_whitespace()
                .map(|link| link.split_once('-').unwrap())
                .map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap()))
                .collect();
            assert!(
                links.is_sorted() && links.iter().all(|(a, _)| *a < source),
                "{line}"
            );
            // Attention is never 0 here, so that every word of the target has a link.
            let mut targets: Vec<usize> = links.iter().map(|(_, b)| *b).collect();
            targets.sort();
            let expected = if source == 0 { 0 } else { target };
            assert_eq!(targets, (0..expected).collect::<Vec<_>>(), "{line}");
        }
    }
}

#[test]
fn translations_are_linked_by_the_tokens_that_the_model_gave() {
    let fixture = Fixture::joint();
    let (model, tokenizers) = (&*fixture.model, &fixture.tokenizers);
    let translator = Translator::new(model, tokenizers, &fixture.decode, Kernels::Fused);
    let translations = translator.translate(&LINES).unwrap();
    let pairs: Vec<Pair> = LINES
        .iter()
        .zip(&translations)
        .map(|(source, translation)| Pair {
            source,
            target: &translation.hypotheses[0],
        })
        .collect();
    for kernels in Kernels::ALL {
        let aligner = WordAligner::new(model, tokenizers, None, kernels).unwrap();
        assert_eq!(aligner.heads(), Heads::Layer(0)); // the last but one of two
        let links = aligner.links(&pairs).unwrap();
        assert_eq!(links.len(), LINES.len());
        for (pair, links) in pairs.iter().zip(links) {
            let words = pair.target.text.split_whitespace().count();
            assert_eq!(links.len(), words, "{pair:?}");
        }
    }
}

#[test]
fn layers_and_heads_are_counted_from_one_and_must_exist() {
    let folder = decided();
    let folder = folder.path();
    assert_eq!(run(folder, &["--layer", "1"]), run(folder, &[]));
    let heads = ["1", "2"].map(|head| run(folder, &["--layer", "2", "--head", head]));
    assert_ne!(heads[0], heads[1]);
    let check = |args: &str, error: &str, hint: &str| {
        let args = format!("alignments bundle --src src --ref ref {args}");
        let args: Vec<&str> = args.split(' ').collect();
        assert_error(folder, &args, b"", error, hint);
    };
    check(
        "--layer 3",
        "the mean of the heads of layer 3: the model attends to the source in 2 layers of 2 heads",
        "that exist",
    );
    check(
        "--layer 2 --head 3",
        "layer 2, head 3: the model attends to the source in 2 layers of 2 heads",
        "that exist",
    );
    check(
        "--choose --diagonal 101",
        "--diagonal 101: must be from 0 to 100",
        "omit",
    );
    let args = [
        "alignments",
        "bundle",
        "--src",
        "src",
        "--ref",
        "ref",
        "--head",
        "1",
    ];
    assert_eq!(infer(folder, &args, b"").code, 2);
}

#[test]
fn a_model_without_attention_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    Fixture::recurrent(AttentionChoice::None).write(&folder.join("bundle"));
    write(folder);
    assert_error(
        folder,
        &["alignments", "bundle", "--src", "src", "--ref", "ref"],
        b"",
        "the model has no attention to the source, so words cannot be aligned",
        "Transformer",
    );
}

#[test]
fn the_head_that_is_chosen_is_the_best_of_the_table_and_the_default_from_then_on() {
    let folder = decided();
    let folder = folder.path();
    let bundle = folder.join("bundle");
    fs::write(folder.join("src"), SOURCE.repeat(3)).unwrap();
    fs::write(folder.join("ref"), TARGET.repeat(3)).unwrap();
    let table = run(folder, &["--choose"]);
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(
        rows[0],
        ["layer", "head", "precision", "recall", "F1", "best"]
    );
    let names: Vec<String> = rows[1..].iter().map(|row| row[..2].join(" ")).collect();
    assert_eq!(names, ["1 1", "1 2", "1 mean", "2 1", "2 2", "2 mean"]);
    let f1 = |row: &Vec<&str>| row[4].parse::<f64>().unwrap();
    let best: Vec<_> = rows[1..].iter().filter(|row| row[5] == "*").collect();
    assert_eq!(best.len(), 1);
    assert!(
        rows[1..].iter().all(|row| f1(row) <= f1(best[0])),
        "{table}"
    );
    assert_eq!(run(folder, &["--choose"]), table, "it is deterministic");

    let mut options = vec!["--layer", best[0][0]];
    if best[0][1] != "mean" {
        options.extend(["--head", best[0][1]]);
    }
    assert_eq!(run(folder, &[]), run(folder, &options));
    Heads::One { layer: 1, head: 1 }.save(&bundle).unwrap();
    assert_eq!(
        run(folder, &[]),
        run(folder, &["--layer", "2", "--head", "2"])
    );
    assert!(Bundle::open(&bundle, &Device::Cpu).is_ok());
    fs::write(bundle.join(Heads::FILE), "{").unwrap();
    assert_error(
        folder,
        &["alignments", "bundle", "--src", "src", "--ref", "ref"],
        b"",
        "bundle/alignment.json: EOF while parsing an object at line 1 column 1",
        "--choose",
    );
}
