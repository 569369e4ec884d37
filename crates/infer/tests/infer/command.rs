use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fixture::{LINES, with_bundle};

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program that is tested: this version, or the one that `ATTEND_INFER` names.
pub(crate) fn program() -> PathBuf {
    let other = std::env::var_os("ATTEND_INFER");
    other.unwrap_or(env!("CARGO_BIN_EXE_infer").into()).into()
}

pub(crate) fn command() -> Command {
    let mut command = Command::new(program());
    command.env_remove("RUST_LOG");
    command
}

/// Runs `infer` in a folder, with `input` on stdin.
pub(crate) fn infer(folder: &Path, args: &[&str], input: &[u8]) -> Ran {
    let mut child = command()
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A process that fails early does not read its input, so the write may fail.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: stderr.split_inclusive('\n').filter(is_talk).collect(),
    }
}

/// Whether a line is about anything else than the quality of a translation: an untrained model rarely predicts
/// `</s>`, so most of its translations are cut off, or repeat themselves.
pub(crate) fn is_talk(line: &&str) -> bool {
    !["cut off at decode.max_length", "repeat"]
        .iter()
        .any(|about| line.contains(about))
}

fn input() -> String {
    LINES.map(|line| format!("{line}\n")).concat()
}

#[test]
fn every_input_line_gives_one_output_line_from_stdin_and_from_files() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    let piped = infer(folder, &["translate", "bundle"], input().as_bytes());
    assert_eq!((piped.code, &*piped.stderr), (0, ""));
    assert_eq!(piped.stdout.lines().count(), LINES.len());
    for (line, translation) in LINES.iter().zip(piped.stdout.lines()) {
        assert_eq!(line.trim().is_empty(), translation.is_empty());
    }

    fs::write(folder.join("a"), input()).unwrap();
    fs::write(folder.join("b"), "dogs").unwrap(); // no final newline
    let args = ["translate", "bundle", "a", "-", "b", "-o", "out"];
    let ran = infer(folder, &args, input().as_bytes());
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (0, "", ""));
    let out = fs::read_to_string(folder.join("out")).unwrap();
    let last = piped.stdout.lines().nth(4).unwrap();
    assert_eq!(out, format!("{0}{0}{last}\n", piped.stdout));

    let empty = infer(folder, &["translate", "bundle"], b"");
    assert_eq!((empty.code, &*empty.stdout), (0, ""));
}

#[test]
fn a_line_from_stdin_is_translated_before_the_next_one_arrives() {
    let (folder, _) = with_bundle();
    let mut child = command()
        .args(["translate", "bundle"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        stdin.write_all(b"a dog runs\n").unwrap();
        assert!(!answers.next().unwrap().unwrap().is_empty());
    }
    drop(stdin);
    assert!(answers.next().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn n_best_translations_are_printed_in_moses_format() {
    let (folder, _) = with_bundle();
    let args = ["translate", "bundle", "--n-best", "3"];
    let ran = infer(folder.path(), &args, input().as_bytes());
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let mut counts = [0; LINES.len()];
    let mut before = (0, f32::INFINITY);
    for line in ran.stdout.lines() {
        let fields: Vec<&str> = line.split(" ||| ").collect();
        let [index, _text, score] = fields[..] else {
            panic!("{line}")
        };
        let now: (usize, f32) = (index.parse().unwrap(), score.parse().unwrap());
        assert!(now.0 > before.0 || now.1 <= before.1, "{}", ran.stdout);
        counts[now.0] += 1;
        before = now;
    }
    assert_eq!(counts, [3, 1, 3, 1, 3, 3, 1]);
}

#[test]
fn search_options_take_effect() {
    let (folder, _) = with_bundle();
    let run = |options: &[&str]| {
        let args = [&["translate", "bundle"], options].concat();
        let ran = infer(folder.path(), &args, b"a dog runs\n");
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{options:?}");
        ran.stdout
    };
    assert_eq!(run(&["--greedy"]), run(&["--beam", "1"]));
    let best = run(&["--n-best", "1"]);
    let fields: Vec<&str> = best.trim_end().split(" ||| ").collect();
    assert_eq!(
        run(&["--scores"]),
        format!("{}\t{}\n", fields[2], fields[1])
    );
    assert_eq!(
        run(&["--composed", "--threads", "1", "--device", "cpu"]),
        run(&[])
    );
    let penalty = ["--scores", "--length-penalty", "4"];
    let stopped = |early| run(&[&penalty[..], &["--early-stopping", early]].concat());
    assert_eq!(stopped("false"), run(&penalty));
    let score = |line: String| -> f64 { line.split('\t').next().unwrap().parse().unwrap() };
    assert!(score(stopped("true")) <= score(stopped("false")));
    let penalised = |a| run(&["--length-penalty", a, "--scores"]);
    assert_ne!(penalised("-1"), penalised("2"));
    // Of one translation with n tokens, log-probability / ((5 + n) / 6) and log-probability / n.
    let score = |measure| -> f64 {
        let options = ["--greedy", "--scores", "--length-penalty", "1"];
        let line = run(&[&options[..], &["--length-measure", measure]].concat());
        line.split('\t').next().unwrap().parse().unwrap()
    };
    let ratio = score("gnmt") / score("tokens"); // 6 n / (5 + n)
    let n = 5.0 * ratio / (6.0 - ratio);
    assert!(n > 1.5 && (n - n.round()).abs() < 0.01, "{n} tokens");
}

/// Asserts that a program was refused with this in its message, and this in its hint.
pub(crate) fn assert_refused(ran: &Ran, message: &str, hint: &str) {
    assert_eq!((ran.code, &*ran.stdout), (1, ""), "{}", ran.stderr);
    for part in [message, hint] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

/// Asserts exit code 1, and on stderr the error, a blank line and a hint, one line each.
pub(crate) fn assert_error(folder: &Path, args: &[&str], input: &[u8], error: &str, hint: &str) {
    let ran = infer(folder, args, input);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let expected = format!("error: {error}\n\nhint: ");
    assert!(ran.stderr.starts_with(&expected), "{}", ran.stderr);
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 3, "{}", ran.stderr);
}

#[test]
fn errors_name_the_problem_and_its_location_and_have_a_hint() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    fs::create_dir(folder.join("fresh")).unwrap();
    fs::write(folder.join("latin1"), b"a dog\nna\xefve\n").unwrap();
    fs::write(folder.join("one"), "a dog\n").unwrap();
    fs::write(folder.join("two"), "ein Hund\neine Katze\n").unwrap();
    fs::write(folder.join("three"), "ein Hund\n").unwrap();
    let check = |args: &str, error: &str, hint: &str| {
        let args: Vec<&str> = args.split(' ').collect();
        assert_error(folder, &args, b"a dog\n", error, hint);
    };
    check(
        "translate nowhere",
        "no such folder: nowhere",
        "`train` wrote",
    );
    check(
        "translate fresh",
        "`fresh` has no checkpoint",
        "train it first",
    );
    check(
        "translate bundle no.txt",
        "no such file: no.txt",
        "relative",
    );
    check(
        "translate bundle latin1",
        "latin1:2: not valid UTF-8",
        "iconv",
    );
    check(
        "translate bundle --n-best 9",
        "--n-best 9: a beam of 4 finds at most 4 translations",
        "--beam 9",
    );
    check(
        "translate bundle --beam 100000",
        "decode.beam: is 100000",
        "from 1",
    );
    check(
        "translate bundle one -o one",
        "one: is both input and output",
        "another",
    );
    check(
        "evaluate bundle --src one --ref two",
        "one has 1 lines but two has 2",
        "line n",
    );
    if !cfg!(feature = "cuda") {
        let error = "this build has no CUDA";
        let hint = "cargo build --release --features cuda";
        check("translate bundle --device cuda", error, hint);
        check(
            "evaluate bundle --src one --ref three --device cuda:1",
            error,
            hint,
        );
    }
    assert_eq!(fs::read(folder.join("one")).unwrap(), b"a dog\n");
}

#[test]
fn lines_before_an_invalid_line_are_translated() {
    let (folder, _) = with_bundle();
    let ran = infer(folder.path(), &["translate", "bundle"], b"a dog\n\xff\n");
    assert_eq!((ran.code, ran.stdout.lines().count()), (1, 1));
    let error = "error: standard input:2: not valid UTF-8";
    assert!(ran.stderr.starts_with(error), "{}", ran.stderr);
}

#[test]
fn invalid_usage_exits_with_code_2() {
    let (folder, _) = with_bundle();
    for args in [
        "",
        "translate",
        "translate bundle --device gpu",
        "translate bundle --device cuda:x",
        "translate bundle --beam 0",
        "translate bundle --greedy --beam 4",
        "translate bundle --n-best 0",
        "translate bundle --n-best 2 --sentences",
        "translate bundle --n-best 2 --protect",
        "translate bundle --n-best 2 --format html",
        "translate bundle --n-best 2 --alignments a",
        "translate bundle --format html --alignments a",
        "translate bundle --format xml",
        "translate bundle --lang english",
        "translate bundle --protect=names",
        "evaluate bundle --src a",
        "attend bundle --text a",
        "attend bundle --text a -o a.svg --layer 0",
        "attend bundle --text a -o a.svg --part middle",
    ] {
        let args: Vec<&str> = args.split_whitespace().collect();
        let ran = infer(folder.path(), &args, b"");
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{args:?}");
    }
    let help = infer(folder.path(), &["translate", "--help"], b"");
    assert_eq!(help.code, 0);
    assert!(help.stdout.contains("Examples:") && !help.stdout.contains("--composed"));
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let (folder, _) = with_bundle();
    fs::write(folder.path().join("lines"), "a dog runs\n".repeat(20_000)).unwrap();
    let mut child = command()
        .args(["translate", "bundle", "--greedy", "lines"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && talk.lines().filter(is_talk).count() == 0);
}

#[test]
fn a_translation_that_repeats_itself_is_reported_with_its_line() {
    let (folder, _) = with_bundle();
    let mut child = command()
        .args(["translate", "bundle", "--greedy"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(b"\na dog runs\n");
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(
        talk.contains("line 2: its translation repeats itself"),
        "{talk}"
    );
    assert!(!talk.contains("line 1:"), "{talk}");
}

#[test]
fn evaluate_prints_bleu_and_chrf_and_writes_the_translations() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    fs::write(folder.join("src"), input()).unwrap();
    let translated = infer(folder, &["translate", "bundle", "src"], b"").stdout;
    fs::write(folder.join("ref"), &translated).unwrap();
    let args = ["evaluate", "bundle", "--src", "src", "--ref", "ref"];
    let text = infer(folder, &[&args[..], &["-o", "hyp"]].concat(), b"");
    assert_eq!((text.code, &*text.stderr), (0, ""));
    assert_eq!(fs::read_to_string(folder.join("hyp")).unwrap(), translated);
    let lines: Vec<&str> = text.stdout.lines().collect();
    assert!(
        lines.len() == 2 && lines[0].contains("BLEU|nrefs:1|"),
        "{lines:?}"
    );
    assert!(lines[1].contains("chrF2|nrefs:1|") && lines[1].ends_with("= 100.00"));

    let json = infer(folder, &[&args[..], &["--json"]].concat(), b"").stdout;
    let scores: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(scores[0]["name"], "BLEU");
    assert_eq!(scores[1]["score"], 100.0);
}
