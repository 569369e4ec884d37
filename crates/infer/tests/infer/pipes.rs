use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::command::{command, infer, is_talk};
use crate::fixture::with_bundle;

/// A pipe into a model and one out of it. Errors are not read.
fn start(folder: &std::path::Path, args: &[&str]) -> Child {
    command()
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A value of the process in kilobytes, such as `VmHWM`.
fn memory(child: &Child, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// `ATTEND_PIPE_LINES=100000` makes this the long test.
#[test]
fn lines_stream_through_in_order_and_in_flat_memory() {
    let lines: usize = std::env::var("ATTEND_PIPE_LINES").map_or(3_000, |n| n.parse().unwrap());
    let (folder, _) = with_bundle();
    let args = [
        "translate",
        "bundle",
        "--greedy",
        "--max-length",
        "4",
        "--scores",
    ];
    let mut child = start(folder.path(), &args);
    let mut stdin = child.stdin.take().unwrap();
    let text = |line: usize| ["a dog runs", "", "the small cat sleeps"][line % 3];
    let writer = thread::spawn(move || {
        for line in 0..lines {
            writeln!(stdin, "{}", text(line)).unwrap();
        }
        stdin // open: the end is not needed for the first lines
    });
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut expected = Vec::new();
    let mut early = 0;
    for line in 0..lines {
        let answer = answers.next().unwrap().unwrap();
        // The same three translations again and again. The last digits of scores depend on the batch.
        let words = answer.split_once('\t').unwrap().1.to_string();
        assert_eq!(words.is_empty(), text(line).is_empty());
        if line < 3 {
            expected.push(words);
        } else {
            assert_eq!(words, expected[line % 3], "line {line}");
        }
        if cfg!(target_os = "linux") && line == lines / 4 {
            early = memory(&child, "VmRSS");
        }
    }
    if cfg!(target_os = "linux") {
        let late = memory(&child, "VmRSS");
        assert!(late < early + 32_000, "{early} kB, then {late} kB");
    }
    drop(writer.join().unwrap());
    assert!(answers.next().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_slow_producer_is_answered_line_by_line() {
    let (folder, _) = with_bundle();
    let mut child = start(folder.path(), &["translate", "bundle", "--greedy"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    writeln!(stdin, "a dog runs").unwrap();
    let first = answers.next().unwrap().unwrap();
    // A line every 10 ms never leaves a pause, and is answered within a moment nonetheless.
    let writer = thread::spawn(move || {
        for _ in 0..50 {
            writeln!(stdin, "a dog runs").unwrap();
            thread::sleep(Duration::from_millis(10));
        }
        stdin
    });
    let start = Instant::now();
    assert_eq!(answers.next().unwrap().unwrap(), first);
    assert!(
        start.elapsed() < Duration::from_millis(400),
        "{:?}",
        start.elapsed()
    );
    for _ in 1..50 {
        assert_eq!(answers.next().unwrap().unwrap(), first);
    }
    drop(writer.join().unwrap());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_leaves_ends_endless_input_without_a_word() {
    let (folder, _) = with_bundle();
    let mut child = command()
        .args(["translate", "bundle", "--greedy", "--max-length", "4"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = thread::spawn(move || while writeln!(stdin, "a dog runs").is_ok() {});
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap(); // and closes it
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    let talk: Vec<&str> = talk.lines().filter(is_talk).collect();
    assert!(output.status.success() && talk.is_empty(), "{talk:?}");
}

#[test]
fn whatever_the_line_ends_are_as_many_lines_come_out() {
    let (folder, _) = with_bundle();
    let dog = infer(folder.path(), &["translate", "bundle"], b"a dog\n").stdout;
    for (input, expected) in [
        ("a dog\r\n\r\na dog\r\n", format!("{dog}\n{dog}")),
        ("a dog\n\n\na dog", format!("{dog}\n\n{dog}")),
        ("\n", "\n".into()),
        ("\u{feff}a dog", dog.clone()),
        ("", String::new()),
    ] {
        for options in [
            &[][..],
            &["--sentences"],
            &["--format", "html"],
            &["--protect"],
        ] {
            let args = [&["translate", "bundle"], options].concat();
            let ran = infer(folder.path(), &args, input.as_bytes());
            assert_eq!((ran.code, &*ran.stderr), (0, ""), "{input:?}");
            assert_eq!(ran.stdout, expected, "{input:?} {options:?}");
        }
    }
}

#[test]
fn lines_before_a_bad_line_are_translated_and_the_error_names_it() {
    let (folder, _) = with_bundle();
    let mut input = b"a dog\n".repeat(300);
    input.extend(b"na\xefve\na dog\n");
    let ran = infer(folder.path(), &["translate", "bundle", "--greedy"], &input);
    assert_eq!((ran.code, ran.stdout.lines().count()), (1, 300));
    let error = "error: standard input:301: not valid UTF-8";
    assert!(ran.stderr.contains(error), "{}", ran.stderr);

    let args = ["translate", "bundle", "--greedy", "--prefix-column"];
    let ran = infer(folder.path(), &args, b"a dog\tein\n\na cat\t\ndogs\na\tb\n");
    assert_eq!((ran.code, ran.stdout.lines().count()), (1, 3));
    let error = "error: line 4: has no tab, but --prefix-column needs two columns";
    assert!(ran.stderr.contains(error), "{}", ran.stderr);
    let ran = infer(folder.path(), &args, b"a\tb\tc\n");
    assert!(
        ran.stderr.contains("line 1: has 3 columns"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_line_of_a_megabyte_is_one_line() {
    let (folder, _) = with_bundle();
    let word = "x".repeat((1 << 20) - 1) + "\n";
    let args = [
        "translate",
        "bundle",
        "--greedy",
        "--max-length",
        "4",
        "--protect",
    ];
    let start = Instant::now();
    let ran = infer(folder.path(), &args, word.as_bytes());
    assert_eq!(
        (ran.code, ran.stdout.lines().count()),
        (0, 1),
        "{}",
        ran.stderr
    );
    let warning = "line 1: only the first 1024 of its ";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[test]
fn translations_that_hit_the_limit_are_reported_by_line_and_counted_after_ten() {
    let (folder, _) = with_bundle();
    let child = command()
        .args(["translate", "bundle", "--greedy", "--max-length", "2"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = child;
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"\n").unwrap();
    stdin.write_all(&b"a dog\n".repeat(12)).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    let limit = "cut off at decode.max_length or decode.max_length_ratio";
    for (line, is_said) in [(1, false), (2, true), (11, true), (12, false)] {
        let said = talk.contains(&format!("line {line}: its translation was {limit}"));
        assert_eq!(said, is_said, "{talk}");
    }
    assert!(
        talk.contains(&format!("2 more translations were {limit}")),
        "{talk}"
    );
}
