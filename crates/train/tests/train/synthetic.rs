//! Training data that a model writes.

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use attend_infer::{Bundle, Translator};
use attend_model::{Kernels, Packing};
use candle_core::Device;

use crate::errors::{refuses, refuses_and_leaves};
use crate::tiny::{Tiny, signal};

/// The files of a folder, and when they were written.
fn files(tiny: &Tiny, folder: &str) -> BTreeMap<String, (SystemTime, String)> {
    let entries = fs::read_dir(tiny.path(folder)).unwrap().map(Result::unwrap);
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let text = fs::read_to_string(entry.path()).unwrap();
        (name, (entry.metadata().unwrap().modified().unwrap(), text))
    };
    entries.map(file).collect()
}

fn texts(files: BTreeMap<String, (SystemTime, String)>) -> BTreeMap<String, String> {
    files
        .into_iter()
        .map(|(name, (_, text))| (name, text))
        .collect()
}

/// The pairs of all parts, in order.
fn pairs(tiny: &Tiny, folder: &str) -> Vec<(String, String)> {
    let all: String = texts(files(tiny, folder)).into_values().collect();
    let pair = |line: &str| {
        let pair: BTreeMap<String, String> = serde_json::from_str(line).unwrap();
        assert_eq!(pair.len(), 2);
        (pair["a"].clone(), pair["b"].clone())
    };
    all.lines().map(pair).collect()
}

fn lines(tiny: &Tiny, file: &str) -> Vec<String> {
    let text = String::from_utf8(tiny.read(file)).unwrap();
    text.lines().map(String::from).collect()
}

/// Translations by the best checkpoint of a run; none of those that are cut off, are empty or repeat themselves.
fn translations(tiny: &Tiny, run: &str, lines: &[String]) -> Vec<Option<String>> {
    let (device, kernels) = (Device::Cpu, Kernels::Fused);
    let bundle = Bundle::open_to_translate(&tiny.path(run), &device, kernels, Packing::Float);
    let bundle = bundle.unwrap();
    let translator = Translator::new(&*bundle.model, &bundle.tokenizers, &bundle.decode, kernels);
    let all = translator.translate(lines).unwrap().into_iter();
    all.map(|translation| {
        let text = translation.text().trim().to_string();
        let fit = !translation.cut && !translation.repeats && !text.is_empty();
        fit.then_some(text)
    })
    .collect()
}

#[test]
fn a_student_is_trained_on_the_translations_of_its_teacher() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml", "--set", "out=teacher"]);
    let student = [
        "config.toml",
        "--set",
        "out=student",
        "--set",
        "train.steps=5",
    ];
    tiny.must(&[&["distill", "teacher"], &student[..]].concat());

    let sources = lines(&tiny, "train.a");
    let taught = translations(&tiny, "teacher", &sources).into_iter();
    let expected = sources.into_iter().zip(taught);
    let expected: Vec<_> = expected.filter_map(|(a, b)| Some((a, b?))).collect();
    assert!(expected.len() > 60, "{}", expected.len());
    assert_eq!(pairs(&tiny, "student.distilled/0"), expected);
    assert_eq!(tiny.log("student").last().unwrap().step, 5);
    let config = String::from_utf8(tiny.read("student/config.toml")).unwrap();
    assert!(
        config.contains("student.distilled/0/part-??????-????????????????.jsonl"),
        "{config}"
    );
    assert!(!config.contains("train = \"train\""), "{config}");

    // It is a run like others, and not started twice.
    tiny.must(&["resume", "student", "--set", "train.steps=7"]);
    refuses(
        &tiny,
        &[&["distill", "teacher"], &student[..]].concat(),
        "student",
        "resume",
    );

    let both = [
        "--corpus",
        "student.distilled",
        "--and-original",
        "--no-training",
    ];
    let output = tiny.must(&[&["distill", "teacher"], &student[..], &both[..]].concat());
    let config = String::from_utf8(output.stdout).unwrap();
    assert_eq!(config.matches("[[data.corpora]]").count(), 2, "{config}");
    assert!(config.contains("path = \"train\""), "{config}");
}

#[test]
fn translating_goes_on_where_it_was_killed_and_makes_anew_only_what_has_changed() {
    let tiny = Tiny::with_pairs(6500);
    let teacher = [
        "--set",
        "out=teacher",
        "--set",
        "train.translate_sentences=0",
    ];
    tiny.must(&[&["run", "config.toml"], &teacher[..]].concat());
    let distill = |corpus: &'static str| {
        let more = [
            "--set",
            "decode.beam=1",
            "--no-training",
            "--corpus",
            corpus,
        ];
        [
            &["distill", "teacher", "config.toml", "--beam", "1"],
            &more[..],
        ]
        .concat()
    };
    tiny.must(&distill("whole"));
    let whole = texts(files(&tiny, "whole/0"));
    assert_eq!(whole.len(), 4);

    let mut child = tiny.command(&distill("killed")).spawn().unwrap();
    let parts = || {
        fs::read_dir(tiny.path("killed/0")).map_or(0, |parts| {
            let names = parts.map(|part| part.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name.starts_with("part-")).count()
        })
    };
    while parts() == 0 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    signal(&child, "KILL");
    child.wait().unwrap();
    let before = files(&tiny, "killed/0");
    tiny.must(&distill("killed"));
    let after = files(&tiny, "killed/0");
    assert_eq!(texts(after.clone()), whole);
    for (name, (time, _)) in before.iter().filter(|(name, _)| name.starts_with("part-")) {
        assert_eq!(after[name].0, *time, "{name} was made twice");
    }

    // One of the lines changes, and so does one of the parts.
    let mut sources = lines(&tiny, "train.a");
    sources[2100] = "one two three one two three".into();
    tiny.write("train.a", sources.join("\n") + "\n");
    tiny.must(&distill("killed"));
    let changed = texts(files(&tiny, "killed/0"));
    let kept = changed.keys().filter(|name| whole.contains_key(*name));
    assert_eq!((changed.len(), kept.count()), (4, 3));
}

#[test]
fn text_in_the_target_language_becomes_one_more_corpus_with_a_tag() {
    let tiny = Tiny::new();
    let reverse = ["data.source=b", "data.target=a", "out=reverse"];
    let reverse = reverse.iter().flat_map(|set| ["--set", set]);
    tiny.must(&[&["run", "config.toml"][..], &reverse.collect::<Vec<_>>()].concat());
    let mut text = lines(&tiny, "train.b");
    text.insert(3, String::new());
    tiny.write("news.b", text.join("\n") + "\n");
    let command = [
        "backtranslate",
        "reverse",
        "config.toml",
        "--text",
        "news.b",
        "--set",
    ];
    tiny.must(&[&command[..], &["train.steps=4"]].concat());
    text.retain(|line| !line.is_empty());
    let made = translations(&tiny, "reverse", &text).into_iter().zip(text);
    let expected: Vec<_> = made.filter_map(|(a, b)| Some((a?, b))).collect();
    assert!(expected.len() > 40, "{}", expected.len());
    assert_eq!(pairs(&tiny, "run.backtranslated"), expected);
    let config = String::from_utf8(tiny.read("run/config.toml")).unwrap();
    assert!(config.contains("tag = \">>bt<<\""), "{config}");
    assert_eq!(config.matches("[[data.corpora]]").count(), 2, "{config}");
    let provenance = String::from_utf8(tiny.read("run/last/provenance.json")).unwrap();
    assert!(provenance.contains("run.backtranslated"), "{provenance}");

    let missing = [
        "backtranslate",
        "reverse",
        "config.toml",
        "--text",
        "none.b",
        "--set",
        "out=new",
    ];
    refuses_and_leaves(&tiny, &missing, "none.b", "");
}

#[test]
fn a_teacher_sees_the_tag_of_a_corpus_if_it_has_learnt_it() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml", "--set", "out=plain"]);
    tiny.edit("train = \"train\"\n", "");
    let mut config = String::from_utf8(tiny.read("config.toml")).unwrap();
    config += "\n[[data.corpora]]\npath = \"train\"\ntag = \"2b\"\n";
    tiny.write("config.toml", config);
    tiny.must(&["run", "config.toml", "--set", "out=tagged"]);
    let sources = lines(&tiny, "train.a");
    for (teacher, tag) in [("plain", ""), ("tagged", "2b ")] {
        let corpus = format!("of-{teacher}");
        let distill = ["distill", teacher, "config.toml", "--corpus", &corpus];
        tiny.must(&[&distill[..], &["--no-training"]].concat());
        let seen: Vec<String> = sources.iter().map(|line| format!("{tag}{line}")).collect();
        let taught = translations(&tiny, teacher, &seen).into_iter();
        let expected = sources.iter().cloned().zip(taught);
        let expected: Vec<_> = expected.filter_map(|(a, b)| Some((a, b?))).collect();
        assert!(!expected.is_empty());
        assert_eq!(pairs(&tiny, &format!("{corpus}/0")), expected, "{teacher}");
    }
}

#[test]
fn what_cannot_be_trained_on_is_refused_before_it_is_translated() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml", "--set", "out=model"]);
    let command = ["backtranslate", "model", "config.toml", "--text", "train.b"];
    let weight = [&command[..], &["--weight", "2"]].concat();
    refuses(&tiny, &weight, "weight", "all");
    assert!(!tiny.path("run.backtranslated").exists());

    // A folder's name may end in a slash, and files that look like parts stay.
    fs::create_dir(tiny.path("run.distilled")).unwrap();
    fs::create_dir(tiny.path("run.distilled/0")).unwrap();
    tiny.write("run.distilled/0/part-00000.jsonl", "mine");
    let distill = ["distill", "model", "config.toml", "--set", "out=run/"];
    let quick = ["--set", "train.steps=2", "--beam", "1"];
    tiny.must(&[&distill[..], &quick].concat());
    assert_eq!(tiny.read("run.distilled/0/part-00000.jsonl"), b"mine");

    let untrained = [
        "run",
        "config.toml",
        "--set",
        "out=untrained",
        "--set",
        "train.steps=1",
    ];
    tiny.must(&untrained);
    let distill = ["distill", "untrained", "config.toml", "--set", "out=new"];
    let error = "no translation is fit to be trained on";
    refuses_and_leaves(&tiny, &distill, error, "infer translate");
}
