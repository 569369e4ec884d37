use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use attend_hub::Settings;

use crate::message;

/// Names and values.
type Vars<'a> = &'a [(&'a str, &'a str)];

fn settings(vars: Vars) -> attend_hub::Result<Settings> {
    let vars: HashMap<_, _> = vars
        .iter()
        .map(|(name, value)| (*name, OsString::from(value)))
        .collect();
    Settings::from_vars(|name| vars.get(name).cloned())
}

fn origin(settings: &Settings) -> Option<&str> {
    settings.token.as_ref().map(|token| token.origin())
}

#[test]
fn the_cache_is_where_python_puts_it() {
    let home = ("HOME", "/home/me");
    let cases: [(Vars, &str); 7] = [
        (&[home], "/home/me/.cache/huggingface/hub"),
        (&[home, ("XDG_CACHE_HOME", "/x")], "/x/huggingface/hub"),
        (
            &[home, ("XDG_CACHE_HOME", "/x"), ("HF_HOME", "/h")],
            "/h/hub",
        ),
        (&[home, ("HF_HOME", "/h"), ("HF_HUB_CACHE", "/c")], "/c"),
        (&[home, ("HF_HOME", "~/h")], "/home/me/h/hub"),
        (&[home, ("HF_HOME", "")], "/home/me/.cache/huggingface/hub"),
        (&[("HF_HUB_CACHE", "/c")], "/c"),
    ];
    for (vars, expected) in cases {
        assert_eq!(
            settings(vars).unwrap().cache,
            Path::new(expected),
            "{vars:?}"
        );
    }
    assert!(message(&settings(&[]).unwrap_err()).contains("HF_HOME"));
}

#[test]
fn the_token_is_found_where_python_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let (stored, other) = (folder.path().join("token"), folder.path().join("other"));
    fs::write(&stored, "hf_stored\n").unwrap();
    fs::write(&other, "hf_other").unwrap();
    let (stored, other) = (stored.to_str().unwrap(), other.to_str().unwrap());
    let home = ("HF_HOME", home);
    let cases: [(Vars, Option<&str>); 6] = [
        (&[home], Some(stored)),
        (&[home, ("HF_TOKEN_PATH", other)], Some(other)),
        (&[home, ("HF_TOKEN", " hf_variable\n")], Some("HF_TOKEN")),
        (
            &[
                home,
                ("HF_TOKEN", "hf_x"),
                ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"),
            ],
            None,
        ),
        (
            &[
                home,
                ("HF_TOKEN", "hf_x"),
                ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "0"),
            ],
            Some("HF_TOKEN"),
        ),
        (&[("HF_HOME", "/nowhere")], None),
    ];
    for (vars, expected) in cases {
        assert_eq!(origin(&settings(vars).unwrap()), expected, "{vars:?}");
    }
}

#[test]
fn a_token_is_never_printed() {
    let good = settings(&[("HF_HOME", "/h"), ("HF_TOKEN", "hf_secret")]).unwrap();
    assert!(!format!("{good:?}").contains("secret"));
    assert!(!format!("{:?}", attend_hub::Hub::new(good)).contains("secret"));
    let error = settings(&[("HF_HOME", "/h"), ("HF_TOKEN", "hf_secret\nX-Evil: 1")]).unwrap_err();
    assert!(!format!("{error:?} {error} {:?}", error.hint()).contains("secret"));
    assert!(message(&error).contains("HF_TOKEN"));
}

#[test]
fn offline_is_what_python_takes_for_true() {
    for value in ["1", "true", "TRUE", "Yes", "on"] {
        assert!(
            settings(&[("HF_HOME", "/h"), ("HF_HUB_OFFLINE", value)])
                .unwrap()
                .offline,
            "{value}"
        );
    }
    for value in ["", "0", "false", "no", "off", "2"] {
        assert!(
            !settings(&[("HF_HOME", "/h"), ("HF_HUB_OFFLINE", value)])
                .unwrap()
                .offline,
            "{value}"
        );
    }
}

#[test]
fn the_timeout_is_a_number_of_seconds() {
    let timeout = |value| settings(&[("HF_HOME", "/h"), ("HF_HUB_DOWNLOAD_TIMEOUT", value)]);
    assert_eq!(timeout("30").unwrap().timeout, Duration::from_secs(30));
    for value in ["0", "-1", "soon", "1e9"] {
        assert!(
            message(&timeout(value).unwrap_err()).contains("HF_HUB_DOWNLOAD_TIMEOUT"),
            "{value}"
        );
    }
}

#[test]
fn an_endpoint_must_be_the_address_of_a_hub() {
    let path = crate::at("hf://o/n/f");
    for endpoint in [
        "",
        "huggingface.co",
        "file:///etc",
        "http://me:secret@host",
        "http://host/?x",
        "http://",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(folder.path());
        settings.endpoint = endpoint.into();
        let error = attend_hub::Hub::new(settings).file(&path, &()).unwrap_err();
        let message = message(&error);
        assert!(
            message.contains("HF_ENDPOINT") && !message.contains("secret"),
            "{endpoint}: {message}"
        );
    }
}
