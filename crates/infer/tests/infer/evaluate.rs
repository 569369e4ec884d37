use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::command::{Ran, infer};
use crate::fixture::with_bundle;

const HYPOTHESES: &str = "The dog runs home.\nA cat sat there\n\n";

/// A folder with translations and two files of references.
fn with_files() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("hyp", HYPOTHESES);
    write("ref", "The dog ran home.\nA cat sat here\n\n");
    write("ref2", "the dog runs home\nThe cat sat there\nwell\n");
    folder
}

fn evaluate(folder: &Path, args: &str) -> Ran {
    let args: Vec<&str> = ["evaluate"].into_iter().chain(args.split(' ')).collect();
    infer(folder, &args, b"")
}

#[test]
fn a_file_of_translations_is_scored_without_a_model() {
    let folder = with_files();
    let folder = folder.path();
    let ran = evaluate(folder, "--hyp hyp --ref ref --metrics ter,chrf++,bleu,chrf");
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let names: Vec<&str> = ran.stdout.lines().map(|line| line.trim_start()).collect();
    for (line, name) in names.iter().zip(["BLEU|", "chrF2|", "chrF2++|", "TER|"]) {
        assert!(
            line.starts_with(name) && line.contains("nrefs:1|"),
            "{line}"
        );
    }
    // Two of the eight words of the references are wrong.
    assert!(names[3].ends_with("= 25.00"), "{}", names[3]);
    let both = evaluate(
        folder,
        "--hyp hyp --ref ref --ref ref2 --lowercase --tokenize intl",
    );
    let lines: Vec<&str> = both.stdout.lines().collect();
    assert!(lines[0].contains("BLEU|nrefs:2|case:lc|eff:no|tok:intl|smooth:exp|"));
    assert!(lines[1].contains("chrF2|nrefs:2|case:lc|"));
    assert_eq!(both.code, 0);
}

#[test]
fn references_can_be_compressed_and_the_source_is_optional_beside_translations() {
    let folder = with_files();
    let folder = folder.path();
    let plain = evaluate(folder, "--hyp hyp --ref ref --src ref2");
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    let zip = std::process::Command::new("gzip")
        .arg("ref")
        .current_dir(folder)
        .status();
    assert!(zip.unwrap().success());
    let zipped = evaluate(folder, "--hyp hyp --ref ref.gz");
    assert_eq!((zipped.code, zipped.stdout), (0, plain.stdout));
}

#[test]
fn translations_can_come_from_standard_input() {
    let folder = with_files();
    let folder = folder.path();
    let file = evaluate(folder, "--hyp hyp --ref ref");
    let args = ["evaluate", "--hyp", "-", "--ref", "ref"];
    let piped = infer(folder, &args, HYPOTHESES.as_bytes());
    assert_eq!((piped.code, piped.stdout), (0, file.stdout));
    let short = infer(folder, &args, b"one\n");
    let error = "standard input has 1 lines but ref has 3";
    assert!(short.stderr.contains(error), "{}", short.stderr);
}

#[test]
fn confidence_intervals_are_printed_with_their_seed() {
    let folder = with_files();
    let folder = folder.path();
    let ran = evaluate(folder, "--hyp hyp --ref ref --confidence --confidence-n 50");
    let lines: Vec<&str> = ran.stdout.lines().map(|line| line.trim_start()).collect();
    assert!(
        lines[0].starts_with("BLEU|nrefs:1|bs:50|seed:12345|case:mixed|"),
        "{lines:?}"
    );
    assert!(
        lines[0].contains(" (μ = ") && lines[0].contains(" ± "),
        "{lines:?}"
    );
    let other = evaluate(
        folder,
        "--hyp hyp --ref ref --confidence --confidence-n 50 --confidence-seed 1",
    );
    assert_ne!(ran.stdout, other.stdout);
    let json = evaluate(
        folder,
        "--hyp hyp --ref ref --confidence --metrics chrf --json",
    )
    .stdout;
    let score: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&score["bs"], &score["seed"]),
        (&"1000".into(), &"12345".into())
    );
    assert!(score["confidence_mean"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_model_and_a_file_are_not_evaluated_together() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    fs::write(folder.join("hyp"), HYPOTHESES).unwrap();
    for args in [
        "bundle --hyp hyp --ref hyp",
        "--hyp hyp --ref hyp --quantize int8",
        "--hyp hyp --ref hyp --forbid a",
        "--hyp hyp --ref hyp -o out",
        "--hyp hyp --ref hyp --confidence-n 5",
        "--hyp hyp --ref hyp --metrics rouge",
        "--hyp hyp --ref hyp --tokenize spm",
        "--hyp hyp",
        "--ref hyp",
        "bundle --ref hyp",
    ] {
        let ran = evaluate(folder, args);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{args}");
    }
}

#[test]
fn no_option_of_search_is_ignored_beside_translations() {
    let folder = with_files();
    let folder = folder.path();
    let help = infer(folder, &["evaluate", "--help"], b"").stdout;
    let search = help.split("Search options").nth(1).unwrap();
    let search = search.split("Constraints:").next().unwrap();
    let options: Vec<&str> = search
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("--"))
        .collect();
    assert!(options.len() > 15, "{options:?}");
    for option in options {
        let (name, value) = option.split_once(' ').unwrap_or((option, ""));
        let value = match name {
            _ if value.is_empty() => "",
            "early-stopping" => " true",
            "length-measure" => " tokens",
            _ => " 1",
        };
        let ran = evaluate(folder, &format!("--hyp hyp --ref ref --{name}{value}"));
        assert_eq!(ran.code, 2, "--{name}");
        assert!(!ran.stderr.contains("invalid value"), "{}", ran.stderr);
    }
}

#[test]
fn every_reference_needs_a_line_for_each_translation() {
    let folder = with_files();
    let folder = folder.path();
    fs::write(folder.join("short"), "one\n").unwrap();
    fs::write(folder.join("none"), "").unwrap();
    let ran = evaluate(folder, "--hyp hyp --ref ref --ref short");
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("hyp has 3 lines but short has 1"),
        "{}",
        ran.stderr
    );
    let ran = evaluate(folder, "--hyp none --ref none");
    assert!(
        ran.code == 1 && ran.stderr.contains("none"),
        "{}",
        ran.stderr
    );
    let ran = evaluate(folder, "--hyp missing --ref ref");
    assert!(
        ran.code == 1 && ran.stderr.contains("missing"),
        "{}",
        ran.stderr
    );
}
