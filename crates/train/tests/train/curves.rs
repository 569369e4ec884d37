//! What a training looks like: curves, reports and files for TensorBoard.

use std::fs;

use crate::errors::refuses_and_leaves;
use crate::tiny::{Tiny, wait_for_step};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A run of 60 steps in `run`.
fn trained() -> Tiny {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml"]);
    tiny
}

/// The names of TensorBoard's files in a run.
fn event_files(tiny: &Tiny, run: &str) -> Vec<String> {
    let entries = fs::read_dir(tiny.path(run)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("tfevents")).collect()
}

#[test]
fn a_run_is_drawn_in_every_format() {
    let tiny = trained();
    let shown = tiny.must(&["plot", "run", "-o", "-"]);
    let svg = text(&shown.stdout);
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    for title in [
        "Training loss",
        "Validation loss",
        "Validation BLEU",
        "Validation chrF2",
        "Learning rate",
        "Gradient norm",
        "Speed",
    ] {
        assert_eq!(svg.matches(&format!(">{title}<")).count(), 1, "{title}");
    }
    tiny.must(&["plot", "run", "-o", "curves.svg"]);
    assert_eq!(text(&tiny.read("curves.svg")), svg, "the same on both ways");
    tiny.must(&["plot", "run", "-o", "curves.html", "--x", "hours"]);
    let page = text(&tiny.read("curves.html"));
    assert!(page.contains(">hours of training<") && !page.contains(">step<"));
    for external in ["<link", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(external), "{external}");
    }
    if cfg!(feature = "png") {
        tiny.must(&["plot", "run", "-o", "curves.png", "--x", "tokens"]);
        assert!(tiny.read("curves.png").starts_with(b"\x89PNG"));
    }
    let first = tiny
        .log("run")
        .into_iter()
        .find(|line| line.event == "validation");
    let first: serde_json::Value = serde_json::from_str(&first.unwrap().json).unwrap();
    let value = format!("\"step 25\",\"{:.4}\"", first["loss"].as_f64().unwrap());
    tiny.must(&["plot", "run", "-o", "steps.html"]);
    let page = text(&tiny.read("steps.html"));
    assert!(page.contains(&value), "{value} is a value to hover over");
}

#[test]
fn runs_of_the_same_name_are_told_apart_and_names_are_only_text() {
    let tiny = trained();
    for folder in ["a", "b"] {
        fs::create_dir(tiny.path(folder)).unwrap();
        fs::create_dir(tiny.path(&format!("{folder}/<b>&"))).unwrap();
        let log = tiny.read("run/metrics.jsonl");
        tiny.write(&format!("{folder}/<b>&/metrics.jsonl"), log);
    }
    let shown = tiny.must(&["plot", "a/<b>&", "b/<b>&", "run", "-o", "-"]);
    let svg = text(&shown.stdout);
    for name in ["a/&lt;b&gt;&amp;", "b/&lt;b&gt;&amp;", "run"] {
        assert!(svg.contains(&format!(">{name}</text>")), "{name}");
    }
    tiny.must(&["plot", "a/<b>&", "run", "-o", "x.html"]);
    assert!(!text(&tiny.read("x.html")).contains("<b>&"));
}

#[test]
fn a_log_without_validations_or_with_a_damaged_end_is_drawn_as_far_as_it_goes() {
    let tiny = trained();
    let log = text(&tiny.read("run/metrics.jsonl"));
    let steps = log
        .lines()
        .filter(|line| line.contains("\"event\":\"step\""));
    let steps: Vec<&str> = steps.take(5).collect();
    fs::create_dir(tiny.path("part")).unwrap();
    let damaged = format!("{}\n{{\"event\":\"step\",\"st\u{fffd}", steps.join("\n"));
    tiny.write("part/metrics.jsonl", damaged);
    let svg = text(&tiny.must(&["plot", "part", "-o", "-"]).stdout);
    assert!(
        svg.contains(">Training loss<") && !svg.contains(">Validation"),
        "{svg}"
    );
}

#[test]
fn what_cannot_be_drawn_is_an_error_and_nothing_is_written() {
    let tiny = trained();
    fs::create_dir_all(tiny.path("empty")).unwrap();
    tiny.write("empty/metrics.jsonl", "");
    fs::hard_link(tiny.path("run/metrics.jsonl"), tiny.path("log.svg")).unwrap();
    let before = tiny.read("run/metrics.jsonl");
    for (arguments, error, hint) in [
        (
            ["no-such", "-o", "x.svg"],
            "no-such is not the folder of a run",
            "train ls",
        ),
        (
            ["empty", "-o", "x.svg"],
            "empty has no numbers yet",
            "train.log_every",
        ),
        (
            ["run", "-o", "x.pdf"],
            "x.pdf: not an .svg, .png or .html file",
            ".svg",
        ),
        (
            ["run", "-o", "no/x.svg"],
            "cannot write no/x.svg: no such folder",
            "mkdir",
        ),
        (
            ["run", "-o", "log.svg"],
            "log.svg: is run/metrics.jsonl",
            "another file",
        ),
    ] {
        let arguments = [&["plot"][..], &arguments].concat();
        refuses_and_leaves(&tiny, &arguments, error, hint);
        assert!(!tiny.path("x.svg").exists());
    }
    for folder in ["empty", "run/best", "no-such"] {
        let error = format!("{folder} is not the folder of a run");
        refuses_and_leaves(&tiny, &["report", folder], &error, "train ls");
    }
    let arguments = ["report", "run", "-o", "report.txt"];
    refuses_and_leaves(&tiny, &arguments, "report.txt: not an .html file", ".html");
    assert_eq!(tiny.read("run/metrics.jsonl"), before);
}

#[test]
fn a_training_ends_with_a_report_in_which_all_text_is_only_text() {
    let tiny = Tiny::new();
    let valid = text(&tiny.read("valid.a"));
    tiny.write("valid.a", valid.replacen("", "<script>x</script> & ", 1));
    tiny.must(&["run", "config.toml"]);
    let page = text(&tiny.read("run/report.html"));
    let sample = "&lt;script&gt;x&lt;/script&gt; &amp; ";
    assert!(page.contains(&format!("class=\"source\">{sample}")));
    assert!(!page.contains("<script>x"));
    let test = tiny
        .log("run")
        .into_iter()
        .find(|line| line.event == "test");
    let test: serde_json::Value = serde_json::from_str(&test.unwrap().json).unwrap();
    let bleu = format!(
        "<b>{:.2}</b><small>test set, step 60</small>",
        test["bleu"].as_f64().unwrap()
    );
    for part in [
        &bleu[..],
        test["bleu_signature"].as_str().unwrap(),
        "<td dir=\"auto\">train.a and train.b</td><td dir=\"auto\">120</td>",
        "infer translate run<",
        "mean of 4 heads",
        "fill=\"url(#weight-0)\"",
        "vocab_size = 60",
        "version of the kernels",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // Opened anywhere, it needs nothing else.
    for external in ["<link", " src=", " href=", "@import"] {
        assert!(!page.contains(external), "{external}");
    }
    fs::remove_file(tiny.path("run/report.html")).unwrap();
    let written = tiny.must(&["report", "run"]);
    assert_eq!(text(&written.stdout), "run/report.html\n");
    assert_eq!(text(&tiny.read("run/report.html")), page);
}

#[test]
fn a_run_is_drawn_and_reported_while_it_trains() {
    let tiny = Tiny::new();
    let long = ["run", "config.toml", "--set", "train.steps=1000000"];
    let mut child = tiny.command(&long).spawn().unwrap();
    wait_for_step(&mut child, &tiny.path("run"), 27);
    tiny.must(&["plot", "run", "-o", "curves.svg"]);
    tiny.must(&["report", "run", "-o", "report.html"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(text(&tiny.read("curves.svg")).contains(">Validation loss<"));
    assert!(text(&tiny.read("report.html")).contains("in training, step "));
}

#[test]
fn a_report_of_a_damaged_run_says_what_is_missing() {
    let tiny = trained();
    tiny.write("run/best/model.safetensors", "damage");
    fs::remove_file(tiny.path("run/config.toml")).unwrap();
    let log = text(&tiny.read("run/metrics.jsonl"));
    let log = log.replace("\"samples\"", "\"older\""); // as earlier versions wrote it
    tiny.write("run/metrics.jsonl", log);
    tiny.must(&["report", "run", "-o", "report.html"]);
    let page = text(&tiny.read("report.html"));
    for part in [
        ">Training loss<",
        "No translations were kept.",
        "Nothing is drawn: ",
        "config.toml is missing",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_model_without_attention_has_a_report_without_heatmaps() {
    let tiny = Tiny::new();
    let config = text(&tiny.read("config.toml"));
    let (before, rest) = config.split_once("[model.transformer]").unwrap();
    let (_, after) = rest.split_once("[train]").unwrap();
    let model = "[model.recurrent]\nd_embed = 8\nd_hidden = 8\nattention = \"none\"\n";
    tiny.write("config.toml", format!("{before}{model}[train]{after}"));
    tiny.must(&["run", "config.toml", "--set", "train.steps=5"]);
    let page = text(&tiny.read("run/report.html"));
    assert!(
        page.contains("the model has no attention to draw"),
        "{page}"
    );
}

#[test]
fn a_report_that_cannot_be_written_does_not_fail_the_training() {
    let tiny = trained();
    fs::remove_file(tiny.path("run/report.html")).unwrap();
    fs::create_dir(tiny.path("run/report.html")).unwrap();
    let output = tiny.must(&["resume", "run", "--set", "train.steps=70"]);
    let talk = text(&output.stderr);
    assert!(
        talk.contains("no report of the run: run/report.html is a folder"),
        "{talk}"
    );
    tiny.must(&["doctor", "run"]);
}

#[test]
fn there_is_one_file_for_tensorboard_and_none_if_the_config_says_so() {
    let tiny = trained();
    assert_eq!(
        event_files(&tiny, "run"),
        ["events.out.tfevents.0000000000"]
    );
    fs::remove_file(tiny.path("run/events.out.tfevents.0000000000")).unwrap(); // as in an older run
    tiny.write(
        "run/events.out.tfevents.0000000007",
        "a file that is not of this log",
    );
    tiny.must(&["resume", "run", "--set", "train.steps=63"]);
    assert_eq!(
        event_files(&tiny, "run"),
        ["events.out.tfevents.0000000008"]
    );
    let off = ["--set", "train.tensorboard=false"];
    tiny.must(&[&["resume", "run", "--set", "train.steps=66"][..], &off].concat());
    assert!(event_files(&tiny, "run").is_empty());
    tiny.must(&["resume", "run", "--set", "train.tensorboard=true"]);
    assert_eq!(
        event_files(&tiny, "run"),
        ["events.out.tfevents.0000000000"]
    );
    tiny.must(&[
        "run",
        "config.toml",
        "--overwrite",
        "--set",
        "train.steps=3",
    ]);
    assert_eq!(
        event_files(&tiny, "run"),
        ["events.out.tfevents.0000000000"]
    );
}

#[test]
fn a_validation_keeps_as_many_samples_as_the_config_says() {
    let tiny = trained();
    let samples = |run: &str| -> Vec<usize> {
        let log = text(&tiny.read(&format!("{run}/metrics.jsonl")));
        let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
        let validations = lines.filter(|line: &serde_json::Value| line["event"] == "validation");
        validations
            .map(|line| line["samples"].as_array().map_or(0, Vec::len))
            .collect()
    };
    assert_eq!(samples("run"), [1, 1, 1]);
    let more = [
        "run",
        "config.toml",
        "--set",
        "out=more",
        "--set",
        "train.samples=2",
    ];
    tiny.must(&more);
    assert_eq!(samples("more"), [2, 2, 2]);
    // They change no line but their own, so that runs with more or fewer of them can be compared.
    let found = text(&tiny.train(&["diff", "run", "more"]).stdout);
    assert!(found.contains("train.samples: 1 → 2"), "{found}");
    assert!(found.contains("logs: no difference"), "{found}");
}
