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
