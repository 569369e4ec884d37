//! Keys that have no effect, and keys that were renamed.

use std::fs;

use attend_train::Config;

use crate::errors::refuses;
use crate::tiny::Tiny;

const OLD_NAME: &str = "was renamed to `train.translate_sentences`";

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The place of a line in the config, such as `config.toml:12`.
fn place(tiny: &Tiny, line: &str) -> String {
    let text = String::from_utf8(tiny.read("config.toml")).unwrap();
    let index = text.lines().position(|other| other == line);
    format!("config.toml:{}", index.expect(line) + 1)
}

#[test]
fn a_key_without_effect_is_refused_with_its_line_even_if_it_holds_the_default() {
    let tiny = Tiny::new();
    tiny.edit("warmup = 10", "warmup = 10\nminimum = 0.0");
    for command in ["run", "config", "verify-resume"] {
        refuses(
            &tiny,
            &[command, "config.toml"],
            &format!(
                "{}: `train.schedule.minimum` has no effect here",
                place(&tiny, "minimum = 0.0")
            ),
            "leave it out: it belongs to kind = \"linear\" or \"cosine\"",
        );
    }
    let linear = [
        "config",
        "config.toml",
        "--set",
        "train.schedule.kind=linear",
    ];
    tiny.must(&linear);
}

#[test]
fn a_key_without_effect_is_refused_on_the_command_line() {
    let tiny = Tiny::new();
    let set = |value: &'static str| ["run", "config.toml", "--set", value];
    refuses(
        &tiny,
        &set("train.schedule.minimum=0"),
        "--set train.schedule.minimum=0: `train.schedule.minimum` has no effect here",
        "\"cosine\"",
    );
    refuses(
        &tiny,
        &set("data.tokenizer={ kind = \"unigram\", min_frequency = 2 }"),
        "`data.tokenizer.min_frequency` has no effect here",
        "\"bpe\", \"word\" or \"char\"",
    );
    for key in [
        "kind = \"bpe\"",
        "vocab_size = 60",
        "joint = true",
        "min_frequency = 2",
        "lowercase = false",
    ] {
        let value = format!("data.tokenizer={{ file = \"t.json\", {key} }}");
        let name = key.split(' ').next().unwrap();
        refuses(
            &tiny,
            &["run", "config.toml", "--set", &value],
            &format!("`data.tokenizer.{name}` has no effect here"),
            "data.tokenizer.file is set",
        );
    }
}

#[test]
fn a_key_of_the_file_that_an_override_leaves_without_effect_is_refused_unless_it_is_replaced() {
    let tiny = Tiny::new();
    refuses(
        &tiny,
        &["run", "config.toml", "--set", "data.tokenizer.file=t.json"],
        &format!(
            "{}: `data.tokenizer.vocab_size` has no effect here",
            place(&tiny, "vocab_size = 60")
        ),
        "--set 'data.tokenizer={ … }'",
    );
    let whole = "data.tokenizer={ file = \"t.json\" }";
    let output = tiny.must(&["config", "config.toml", "--set", whole]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("vocab_size"), "{text}");
}

#[test]
fn a_config_is_printed_without_keys_that_have_no_effect() {
    let tiny = Tiny::new();
    let output = tiny.must(&["config", "config.toml"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("minimum") && text.contains("min_frequency = 2"));
    let unigram = "data.tokenizer.kind=unigram";
    let output = tiny.must(&["config", "config.toml", "--set", unigram]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("min_frequency"), "{text}");
    tiny.write("printed.toml", &text);
    tiny.must(&["config", "printed.toml"]);
}

#[test]
fn an_old_name_is_understood_with_one_warning() {
    let tiny = Tiny::new();
    let new = tiny.must(&[
        "config",
        "config.toml",
        "--set",
        "train.translate_sentences=5",
    ]);
    assert_eq!(said(&new), "");

    let set = tiny.must(&["config", "config.toml", "--set", "train.translate=5"]);
    tiny.edit("samples = 1", "samples = 1\ntranslate = 5");
    let file = tiny.must(&["config", "config.toml"]);
    for (output, place) in [
        (&set, "--set train.translate=5: "),
        (&file, &format!("{}: ", place(&tiny, "translate = 5"))),
    ] {
        let said = said(output);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(place) && said.contains(OLD_NAME), "{said}");
        assert_eq!(output.stdout, new.stdout);
    }

    // The command line goes before the file, whichever names they use.
    let set = ["--set", "train.translate_sentences=7"];
    let output = tiny.must(&[&["config", "config.toml"][..], &set].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("translate_sentences = 7"), "{text}");
}

#[test]
fn an_old_name_beside_the_new_one_is_refused() {
    let tiny = Tiny::new();
    let both = ["train.translate=5", "train.translate_sentences=5"];
    refuses(
        &tiny,
        &["run", "config.toml", "--set", both[0], "--set", both[1]],
        "--set train.translate=5: `train.translate` was renamed",
        "keep `train.translate_sentences` only",
    );
    tiny.edit(
        "samples = 1",
        "translate = 5\ntranslate_sentences = 5\nsamples = 1",
    );
    refuses(
        &tiny,
        &["run", "config.toml"],
        &format!(
            "{}: `train.translate` {OLD_NAME}, which is set too",
            place(&tiny, "translate = 5")
        ),
        "keep `train.translate_sentences` only",
    );
}

#[test]
fn a_mistake_beside_an_old_name_still_has_its_line() {
    let tiny = Tiny::new();
    tiny.edit("samples = 1", "translate = 5\nsample = 1");
    let output = tiny.train(&["run", "config.toml"]);
    let said = said(&output);
    assert!(
        said.contains(&format!(
            "{}: unknown key `sample` in [train]",
            place(&tiny, "sample = 1")
        )),
        "{said}"
    );
}

/// What earlier versions wrote: every key, whether it has an effect or not, with its name of then.
fn in_old_words(config: &str) -> String {
    let old = config
        .replace("translate_sentences =", "translate =")
        .replace("warmup = 10\n", "warmup = 10\nminimum = 0.0\n");
    assert!(old.contains("\ntranslate = 1000\n") && old.contains("\nminimum = 0.0\n"));
    old
}

#[test]
fn a_run_that_was_written_by_an_earlier_version_resumes_without_a_word() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml", "--set", "out=whole"]);
    tiny.must(&["run", "config.toml", "--set", "train.steps=30"]);
    let text = |name: &str| String::from_utf8(tiny.read(name)).unwrap();
    tiny.write("run/config.toml", in_old_words(&text("run/config.toml")));
    let names = fs::read_dir(tiny.path("run")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    for name in names.filter(|name| name.starts_with("checkpoint-")) {
        let folder = format!("run/{name}");
        let config = in_old_words(&text(&format!("{folder}/config.toml")));
        tiny.write(&format!("{folder}/config.toml"), config);
        tiny.accept_changes(&folder);
    }
    let steps = ["--set", "train.steps=60"];
    for arguments in [
        &["doctor", "run"][..],
        &["average", "run", "--last", "2"],
        &[&["resume", "run"][..], &steps].concat(),
    ] {
        let output = tiny.must(arguments);
        let said = said(&output);
        assert!(
            !said.contains("WARN") && !said.contains("renamed"),
            "{said}"
        );
    }
    assert!(tiny.outcome("run") == tiny.outcome("whole"));
    let config = Config::read(&tiny.path("run/config.toml"), &[]);
    config.expect("a resumed run has a config with the present names");
}

#[test]
fn an_old_name_can_be_set_and_allowed_when_resuming() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml", "--set", "train.steps=10"]);
    let set = "train.translate=3";
    let allow = ["--allow", "train.translate"];
    let output = tiny.must(&[&["resume", "run", "--set", set][..], &allow].concat());
    assert!(said(&output).contains(OLD_NAME), "{}", said(&output));
    let text = String::from_utf8(tiny.read("run/config.toml")).unwrap();
    assert!(text.contains("translate_sentences = 3"), "{text}");
}
