//! Corpora, tokenizers and models on the Hugging Face Hub: a hub on loopback.

use attend_hub::testing::TestHub;

use crate::tiny::Tiny;

/// Runs `train` with this hub, and a cache in the folder.
fn train(tiny: &Tiny, hub: &TestHub, arguments: &[&str]) -> std::process::Output {
    let mut command = tiny.command(arguments);
    let command = command
        .env("HF_ENDPOINT", hub.endpoint())
        .env("HF_HOME", tiny.path("home"))
        .env("HF_HUB_DOWNLOAD_TIMEOUT", "1");
    command.output().unwrap()
}

#[test]
fn a_run_with_data_tokenizer_and_init_on_the_hub_is_that_with_local_files_and_resumes() {
    let tiny = Tiny::new();
    tiny.must(&[
        "run",
        "config.toml",
        "--set",
        "out=base",
        "--set",
        "train.steps=10",
    ]);
    let hub = TestHub::start();
    for side in ["train.a", "train.b", "valid.a", "valid.b"] {
        hub.put("datasets/me/text", "main", side, &tiny.read(side));
    }
    hub.put_folder("me/base", &tiny.path("base/best"));
    let config = |out: &str, data: &str, init: &str| {
        format!(
            "out = \"{out}\"\n[data]\nsource = \"a\"\ntarget = \"b\"\nbatch_tokens = 60\n\
             train = \"{data}train\"\nvalid = {{ source = \"{data}valid.a\", target = \"{data}valid.b\" }}\n\
             [train]\ninit = \"{init}\"\nsteps = 6\nsave_every = 3\n"
        )
    };
    tiny.write("local.toml", config("local", "", "base"));
    tiny.write(
        "remote.toml",
        config("remote", "hf://datasets/me/text/", "hf://me/base"),
    );
    tiny.must(&["run", "local.toml"]);
    let run = |arguments: &[&str]| {
        let output = train(&tiny, &hub, arguments);
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{talk}");
    };
    run(&["run", "remote.toml", "--set", "train.steps=3"]);
    let kept = String::from_utf8(tiny.read("remote/config.toml")).unwrap();
    assert!(kept.contains("hf://datasets/me/text/train") && kept.contains("hf://me/base"));
    run(&["resume", "remote", "--set", "train.steps=6"]);
    assert!(tiny.outcome("local") == tiny.outcome("remote"));
}

#[test]
fn a_corpus_on_the_hub_can_be_a_table_or_a_compressed_prefix() {
    let tiny = Tiny::new();
    let hub = TestHub::start();
    let text = |side: &str| String::from_utf8(tiny.read(side)).unwrap();
    let (source, target) = (text("train.a"), text("train.b"));
    let rows = source.lines().zip(target.lines());
    let rows = rows.map(|(a, b)| {
        let pair = serde_json::json!({"translation": {"a": a, "b": b}});
        format!("{pair}\n")
    });
    let rows: String = rows.collect();
    hub.put(
        "datasets/me/text",
        "main",
        "a-b/train.jsonl",
        rows.as_bytes(),
    );
    for side in ["train.a", "train.b"] {
        // Told by its content: the file is not compressed.
        hub.put(
            "datasets/me/text",
            "main",
            &format!("{side}.zst"),
            &tiny.read(side),
        );
    }
    let fingerprint = |out: &str, path: &str| {
        let corpora = format!("data.corpora=[{{ path = \"{path}\" }}]");
        let out_key = format!("out={out}");
        let arguments = ["run", "hub.toml", "--set", &corpora, "--set", &out_key];
        let output = train(&tiny, &hub, &arguments);
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{talk}");
        let provenance = tiny.read(&format!("{out}/last/provenance.json"));
        let provenance: serde_json::Value = serde_json::from_slice(&provenance).unwrap();
        assert_eq!(provenance["corpora"][0]["pairs"]["kept"], 120);
        provenance["data"].clone()
    };
    tiny.edit("train = \"train\"\n", "");
    tiny.edit("steps = 60", "steps = 1");
    std::fs::rename(tiny.path("config.toml"), tiny.path("hub.toml")).unwrap();
    let local = fingerprint("local", "train");
    assert_eq!(
        fingerprint("table", "hf://datasets/me/text/a-b/train.jsonl"),
        local
    );
    assert_eq!(fingerprint("prefix", "hf://datasets/me/text/train"), local);
}

#[test]
fn what_the_hub_does_not_have_is_one_error_before_anything_is_written() {
    let tiny = Tiny::new();
    let hub = TestHub::start();
    hub.put("datasets/me/text", "main", "train.a", b"one\n");
    for (key, value, expected) in [
        (
            "data.train",
            "hf://datasets/me/text/train",
            "there is no such file",
        ),
        (
            "data.train",
            "hf://datasets/me/none/train",
            "there is no such repository",
        ),
        ("data.train", "hf://datasets/me", "the name is missing"),
        ("train.init", "hf://me/none", "there is no such repository"),
    ] {
        let set = format!("{key}={value}");
        let arguments = [
            "run",
            "config.toml",
            "--set",
            "data.tokenizer={}",
            "--set",
            &set,
        ];
        let output = train(&tiny, &hub, &arguments);
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && talk.contains(expected),
            "{talk}"
        );
        assert!(!tiny.path("run").exists());
    }
}
