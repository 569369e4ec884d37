//! Models on the Hugging Face Hub: a hub on loopback, and the binary.

use std::path::Path;
use std::process::Command;

use attend_hub::testing::{Fault, TestHub};
use tempfile::TempDir;

use crate::command::{Ran, program};
use crate::fixture::{LINES, with_bundle};

/// Environment variables.
type Vars<'a> = &'a [(&'a str, &'a str)];

/// Runs `infer` with this hub, and a cache in the folder.
fn infer(hub: &TestHub, folder: &Path, args: &[&str], variables: Vars) -> Ran {
    let output = Command::new(program())
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("HF_ENDPOINT", hub.endpoint())
        .env("HF_HOME", folder.join("home"))
        .env("HF_HUB_DOWNLOAD_TIMEOUT", "1")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A hub with the model `owner/model`, and a folder with the same bundle and with `input.txt`.
fn world() -> (TestHub, TempDir) {
    let (folder, _) = with_bundle();
    std::fs::write(folder.path().join("input.txt"), LINES.join("\n")).unwrap();
    let hub = TestHub::start();
    hub.put_folder("owner/model", &folder.path().join("bundle"));
    hub.put("owner/model", "main", "pytorch_model.bin", b"a pickle");
    hub.put("owner/model", "main", "training.log", b"for nobody");
    (hub, folder)
}

#[test]
fn a_model_of_the_hub_translates_like_its_folder() {
    let (hub, folder) = world();
    let translate = |model| infer(&hub, folder.path(), &["translate", model, "input.txt"], &[]);
    let remote = translate("hf://owner/model");
    assert_eq!(
        (remote.code, &remote.stdout),
        (0, &translate("bundle").stdout),
        "{}",
        remote.stderr
    );
    assert_eq!(remote.stdout.lines().count(), LINES.len());
    let requests = hub.requests();
    assert!(
        requests
            .iter()
            .all(|request| !request.path.ends_with(".bin") && !request.path.ends_with(".log"))
    );
    // Once downloaded, it works offline, and without a hub.
    let offline = [("HF_HUB_OFFLINE", "1")];
    let again = infer(
        &hub,
        folder.path(),
        &["translate", "hf://owner/model", "input.txt"],
        &offline,
    );
    assert_eq!(
        (again.code, &again.stdout),
        (0, &remote.stdout),
        "{}",
        again.stderr
    );
    assert_eq!(hub.requests().len(), requests.len());
    hub.fault("/", Fault::Status(503, ""));
    let again = translate("hf://owner/model");
    assert_eq!((again.code, &again.stdout), (0, &remote.stdout));
    assert!(
        again.stderr.contains("the cached files are used"),
        "{}",
        again.stderr
    );
}

#[test]
fn an_error_of_the_hub_is_one_line_and_a_hint() {
    let (hub, folder) = world();
    let secret = [("HF_TOKEN", "hf_verysecret")];
    let offline = [("HF_HUB_OFFLINE", "true")];
    let cases: [(&str, Vars, &str); 5] = [
        (
            "hf://owner/none",
            &[],
            "hf://owner/none: there is no such repository, or it is private",
        ),
        (
            "hf://owner/model@v2",
            &secret,
            "hf://owner/model: there is no revision `v2`",
        ),
        ("hf://owner", &[], "hf://owner: the name is missing"),
        ("hf://owner/model", &offline, "is not in the cache"),
        (
            "hf://owner/model",
            &[("HF_ENDPOINT", "http://127.0.0.1:1")],
            "cannot reach the hub",
        ),
    ];
    for (model, variables, expected) in cases {
        let ran = infer(
            &hub,
            folder.path(),
            &["translate", model, "input.txt"],
            variables,
        );
        let lines: Vec<_> = ran.stderr.lines().collect();
        assert_eq!((ran.code, lines.len()), (1, 3), "{}", ran.stderr);
        assert!(
            lines[0].starts_with("error: ") && lines[0].contains(expected),
            "{}",
            ran.stderr
        );
        assert!(
            lines[2].starts_with("hint: ") && !ran.stderr.contains("secret"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_model_is_pushed_as_an_export_and_can_be_used_from_there() {
    let (hub, folder) = world();
    let token = hub.require_token("hf_verysecret");
    assert!(token.is_some());
    let secret = [("HF_TOKEN", "hf_verysecret")];
    let push = ["push", "bundle", "me/new", "--license", "mit", "--private"];
    // Nobody can be asked.
    let refused = infer(&hub, folder.path(), &push, &secret);
    assert!(
        refused.code == 1 && refused.stderr.contains("--yes"),
        "{}",
        refused.stderr
    );
    assert!(hub.requests().is_empty());

    let args = [&push[..], &["--yes", "--revision", "dev/1"]].concat();
    let pushed = infer(&hub, folder.path(), &args, &secret);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    assert!(
        pushed
            .stderr
            .contains("hf://me/new@dev%2F1 (private, if it is new)"),
        "{}",
        pushed.stderr
    );
    assert!(
        pushed.stdout.starts_with(&hub.endpoint()),
        "{}",
        pushed.stdout
    );
    let file = |name| hub.contents("me/new", "dev/1", name).expect(name);
    let card = String::from_utf8(file("README.md")).unwrap();
    assert!(
        card.contains("license: \"mit\"") && card.contains("from_pretrained(\"me/new\")"),
        "{card}"
    );
    assert!(!file("model.safetensors").is_empty() && !file("tokenizer.json").is_empty());

    let translate = |model| {
        let args = [
            "translate",
            model,
            "input.txt",
            "--greedy",
            "--max-length",
            "9",
        ];
        let ran = infer(&hub, folder.path(), &args, &secret);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    assert_eq!(translate("hf://me/new@dev%2F1"), translate("bundle"));
}

#[test]
fn an_upload_that_is_refused_is_one_line_and_names_the_token() {
    let (hub, folder) = world();
    hub.require_token("hf_right");
    for (variables, expected) in [
        (&[][..], "HF_TOKEN"),
        (
            &[("HF_TOKEN", "hf_wrong")][..],
            "does not accept the token from HF_TOKEN",
        ),
    ] {
        let args = ["push", "bundle", "me/new", "--yes"];
        let ran = infer(&hub, folder.path(), &args, variables);
        assert!(
            ran.code == 1 && ran.stderr.contains(expected),
            "{}",
            ran.stderr
        );
        assert!(
            !ran.stderr.contains("hf_wrong")
                && hub.contents("me/new", "main", "README.md").is_none()
        );
    }
    let ran = infer(
        &hub,
        folder.path(),
        &["push", "bundle", "me/new/deep", "--yes"],
        &[],
    );
    assert!(
        ran.stderr.contains("not the repository of a model"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_marian_model_of_the_hub_is_imported() {
    let (hub, folder) = world();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/marian/separate");
    hub.put_folder("opus/en-de", &golden);
    let import = |place| {
        infer(
            &hub,
            folder.path(),
            &["import", "hf://opus/en-de", "-o", place],
            &[],
        )
    };
    let ran = import("imported");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let golden = golden.to_str().unwrap();
    let translate =
        |model| infer(&hub, folder.path(), &["translate", model, "input.txt"], &[]).stdout;
    assert_eq!(translate("imported"), translate(golden));
    assert_eq!(translate("hf://opus/en-de"), translate(golden));
    // A file that is not what the hub announced is not used.
    hub.put("opus/en-de", "main", "config.json", b"{}");
    hub.fault("vocab.json", Fault::Status(500, ""));
    let ran = import("other");
    assert!(
        ran.code == 1 && !folder.path().join("other").exists(),
        "{}",
        ran.stderr
    );
}
