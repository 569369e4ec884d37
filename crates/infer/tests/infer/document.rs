use std::fs;

use crate::command::{assert_error, infer};
use crate::fixture::with_bundle;

#[test]
fn the_sentences_of_a_line_are_translated_as_lines_of_their_own() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    let run = |options: &[&str], input: &str| {
        let args = [&["translate", "bundle"], options].concat();
        let ran = infer(folder, &args, input.as_bytes());
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{options:?}");
        ran.stdout
    };
    let alone = run(&["--scores"], "A dog runs.\nThe cat sleeps!\n");
    let alone: Vec<(f32, &str)> = alone
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(score, text)| (score.parse().unwrap(), text.trim()))
        .collect();
    let input = " A dog runs.   The cat sleeps!\t\n";
    let together = run(&["--scores", "--sentences", "--lang", "en-GB"], input);
    let (score, text) = together.trim_end_matches('\n').split_once('\t').unwrap();
    assert_eq!(text, format!(" {}   {}\t", alone[0].1, alone[1].1));
    let mean = (alone[0].0 + alone[1].0) / 2.0;
    assert!((score.parse::<f32>().unwrap() - mean).abs() < 1e-4);
    assert_eq!(run(&["--sentences"], "a dog\n\n"), run(&[], "a dog\n\n"));
}

#[test]
fn a_line_that_is_too_long_is_translated_in_pieces_and_said() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    let long = "a dog, ".repeat(60);
    let input = format!("a dog\n{long}\n");
    let ran = infer(
        folder,
        &["translate", "bundle", "--greedy"],
        input.as_bytes(),
    );
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 2));
    let warning = "line 2: it has more than the 64 tokens of the longest sentences, and is";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    let whole = infer(
        folder,
        &["translate", "bundle", "--greedy", "--no-split"],
        input.as_bytes(),
    );
    assert!(whole.stderr.contains("line 2: it has "), "{}", whole.stderr);
    assert!(ran.stdout.len() > whole.stdout.len());
    let best = ["translate", "bundle", "--n-best", "1"];
    let best = infer(folder, &best, input.as_bytes());
    assert!(best.stderr.contains("line 2: it has "), "{}", best.stderr);
    assert_eq!(best.stdout.lines().count(), 2);
}

#[test]
fn markup_comes_out_balanced_and_protected_text_as_it_was() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    let input =
        "<p>a <b>dog</b> &amp; <a href=\"x\">cats<br></p>\n\nsee https://a.org/b?c=1 or 3.50\n";
    let args = ["translate", "bundle", "--format", "html", "--protect"];
    let ran = infer(folder, &args, input.as_bytes());
    let warning = " WARN line 1: <a> has no other half on the line";
    assert!(
        ran.code == 0 && ran.stderr.starts_with(warning),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    for tag in [
        "<p>",
        "<b>",
        "</b>",
        "<a href=\"x\">",
        "</a>",
        "<br>",
        "</p>",
    ] {
        assert_eq!(lines[0].matches(tag).count(), 1, "{}", lines[0]);
    }
    assert_eq!(lines[1], "");
    assert!(lines[2].contains("https://a.org/b?c=1") && lines[2].contains("3.50"));
    let text = infer(
        folder,
        &["translate", "bundle", "--protect=numbers"],
        b"3.50 dogs\n",
    );
    assert!(text.stdout.contains("3.50"), "{}", text.stdout);
}

#[test]
fn alignments_have_a_line_for_each_line() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    let args = [
        "translate",
        "bundle",
        "--alignments",
        "links",
        "--sentences",
    ];
    let ran = infer(folder, &args, b"a dog runs\n\nThe dog. A cat.\n");
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let links = fs::read_to_string(folder.join("links")).unwrap();
    let lines: Vec<&str> = links.split('\n').collect();
    assert_eq!((lines.len(), lines[1], lines[3]), (4, "", ""));
    let translations: Vec<&str> = ran.stdout.lines().collect();
    for (line, sources) in [(0, 3), (2, 4)] {
        let targets = translations[line].split_whitespace().count();
        assert!(!lines[line].is_empty());
        for link in lines[line].split(' ') {
            let (source, target) = link.split_once('-').unwrap();
            assert!(source.parse::<usize>().unwrap() < sources, "{link}");
            assert!(target.parse::<usize>().unwrap() < targets, "{link}");
        }
    }
}

#[test]
fn options_that_cannot_work_are_refused_by_name() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    fs::write(folder.join("in"), "a dog\n").unwrap();
    let check = |args: &str, error: &str, hint: &str| {
        let args: Vec<&str> = args.split(' ').collect();
        assert_error(folder, &args, b"a dog\n", error, hint);
    };
    check(
        "translate bundle --placeholder <ph>",
        "--placeholder <ph>: nothing is protected",
        "--protect",
    );
    check(
        "translate bundle --protect --placeholder <ph>",
        "--placeholder <ph>: not a token of the model's vocabulary",
        "omit --placeholder",
    );
    check(
        "translate bundle in -o out --alignments out",
        "--alignments out: translations go there",
        "another file",
    );
    check(
        "translate bundle in --alignments in",
        "in: is both input and output",
        "another",
    );
    assert_eq!(fs::read(folder.join("in")).unwrap(), b"a dog\n");
}

#[test]
fn an_error_in_a_later_sentence_names_the_line() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    fs::write(folder.join("terms.tsv"), "cat\tKatze\n").unwrap();
    let args = [
        "translate",
        "bundle",
        "--sentences",
        "--glossary",
        "terms.tsv",
    ];
    let args = [&args[..], &["--forbid", "Katze"]].concat();
    let input = "\nA dog runs. The cat sleeps.\n";
    let ran = infer(folder, &args, input.as_bytes());
    let error = "line 2: the term has `Katze`, which is forbidden";
    assert!(
        ran.code == 1 && ran.stderr.contains(error),
        "{}",
        ran.stderr
    );
}
