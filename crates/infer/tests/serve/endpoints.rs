use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::client::{connect, form, get, post, read, request, send};
use crate::fixture::{Fixture, LINES};
use crate::server::{Server, infer, wait_until};

/// What `infer translate` makes of lines.
fn translated(server: &Server, options: &[&str], lines: &[&str]) -> Vec<String> {
    let mut child = infer(
        server.folder.path(),
        "translate",
        &[&["bundle"], options].concat(),
    )
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    output.lines().map(String::from).collect()
}

#[test]
fn thirty_two_clients_at_once_get_what_the_command_prints() {
    let server = Server::start(&["--max-requests", "8"]);
    let lines: Vec<&str> = LINES
        .into_iter()
        .filter(|it| !it.trim().is_empty())
        .collect();
    let by_line = translated(&server, &[], &lines);
    let two = "the small cat sleeps. a dog runs";
    let by_sentence = translated(&server, &["--sentences"], &[two]);
    let expected: BTreeMap<&str, String> = lines.iter().copied().zip(by_line).collect();
    std::thread::scope(|scope| {
        for client in 0..32 {
            let (server, lines, expected) = (&server, &lines, &expected);
            let by_sentence = &by_sentence;
            scope.spawn(move || {
                let mut own = lines.clone();
                own.rotate_left(client % lines.len());
                let body = json!({"text": own, "sentences": client % 2 == 0});
                let answer = post(server.port, "/v1/translate", &body).json();
                for (line, found) in own.iter().zip(answer["translations"].as_array().unwrap()) {
                    assert_eq!(found["text"], expected[line][..], "{line}");
                }
                let q = two.replace(' ', "+");
                let body = format!("q={q}&source=en&target=de");
                let answer = form(server.port, "/translate", &body).json();
                assert_eq!(answer["translatedText"], by_sentence[0][..]);
            });
        }
    });
    assert_eq!(server.metric("attend_requests_waiting"), 0);
}

#[test]
fn every_path_answers_and_none_other() {
    let server = Server::start(&[]);
    let port = server.port;
    let models = get(port, "/v1/models").json();
    assert_eq!(models["models"][0]["name"], "bundle");
    assert_eq!(
        models["models"][0]["attention"],
        json!({"layers": 2, "heads": 2})
    );
    assert_eq!(models["limits"]["body"], 1 << 20);
    for path in ["/healthz", "/health"] {
        assert_eq!(get(port, path).json(), json!({"status": "ok"}));
    }
    let document = get(port, "/openapi.json");
    assert_eq!(document.body, get(port, "/spec").body);
    let paths = document.json()["paths"].as_object().unwrap().clone();
    for (path, methods) in &paths {
        if methods.get("get").is_some() {
            assert_eq!(get(port, path).status, 200, "{path}");
        } else {
            assert_eq!(post(port, path, &json!({})).status, 400, "{path}");
            let wrong = get(port, path);
            assert_eq!(
                (wrong.status, wrong.header("allow")),
                (405, Some("POST")),
                "{path}"
            );
            assert!(!wrong.error().is_empty());
        }
    }
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/page.css", "text/css; charset=utf-8"),
        ("/page.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
    ] {
        let page = get(port, path);
        assert_eq!(
            (page.status, page.header("content-type")),
            (200, Some(kind))
        );
        assert!(
            page.header("content-security-policy")
                .unwrap()
                .contains("default-src 'self'")
        );
        let tag = page.header("etag").unwrap();
        let again = request("GET", path, &format!("If-None-Match: {tag}\r\n"), b"");
        assert_eq!(send(port, &again).status, 304);
        let mut stream = connect(port);
        stream
            .write_all(&request("HEAD", path, "Connection: close\r\n", b""))
            .unwrap();
        let mut head = String::new();
        std::io::Read::read_to_string(&mut stream, &mut head).unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"));
    }
    for path in ["/nothing", "/v1", "/v1/", "/page/page.js", "//"] {
        let missing = get(port, path);
        assert_eq!(missing.status, 404, "{path}");
        assert!(missing.json()["hint"].is_string());
    }
    wait_until(|| server.log().contains("route=\"/v1/models\" status=200"));
}

#[test]
fn a_request_may_ask_for_all_that_a_model_can_do() {
    let server = Server::start(&[]);
    let body = json!({
        "text": ["a dog runs", ""], "model": "bundle", "source": "EN", "target": "de", "n_best": 3.0,
        "alignments": true, "attention": true, "decode": {"beam": 3},
    });
    let answer = post(server.port, "/v1/translate", &body).json();
    let texts = answer["translations"].as_array().unwrap();
    let sentence = &texts[0]["sentences"][0];
    assert_eq!(sentence["n_best"].as_array().unwrap().len(), 3);
    let weights = &sentence["attention"]["weights"];
    assert_eq!(weights.as_array().unwrap().len(), 2);
    assert!(texts[0]["alignments"].is_array());
    assert_eq!(
        (&texts[1]["text"], &texts[1]["sentences"]),
        (&json!(""), &json!([]))
    );

    let body = json!({"text": "a dog runs", "prefix": "ein", "count": 4});
    let answer = post(server.port, "/v1/alternatives", &body).json();
    let all = answer["alternatives"].as_array().unwrap();
    assert!(!all.is_empty());
    let is_prefixed = |it: &Value| it["text"].as_str().unwrap().starts_with("ein");
    assert!(all.iter().all(is_prefixed), "{all:?}");
}

#[test]
fn what_is_wrong_with_a_request_is_said() {
    let server = Server::start(&["--max-characters", "40", "--max-texts", "2"]);
    let cases = [
        (json!({}), "missing field `text`"),
        (
            json!({"text": 7}),
            "text: expected a string or a list of strings",
        ),
        (json!({"text": "a", "txet": 1}), "unknown field `txet`"),
        (
            json!({"text": "a", "decode": {"batch_tokens": 1}}),
            "set by the server",
        ),
        (json!({"text": "a", "decode": {"beam": 0}}), "beam"),
        (json!({"text": "a", "decode": {"beam": 17}}), "limit of 16"),
        (json!({"text": "a", "n_best": 5}), "n_best"),
        (json!({"text": ["a", "a", "a"]}), "limit of 2"),
        (json!({"text": "a".repeat(41)}), "limit of 40"),
        (json!({"text": "a", "model": "other"}), "no such model"),
        (json!({"text": "a", "target": "fr"}), "no such model"),
    ];
    for (body, said) in cases {
        let answer = post(server.port, "/v1/translate", &body);
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.error().contains(said), "{body}: {answer:?}");
    }
    let body = json!({"text": "a", "count": 0});
    assert_eq!(post(server.port, "/v1/alternatives", &body).status, 400);
    let plain = request(
        "POST",
        "/v1/translate",
        "Content-Type: text/plain\r\n",
        b"{}",
    );
    assert_eq!(send(server.port, &plain).status, 415);
}

#[test]
fn a_connection_serves_many_requests_also_if_they_are_sent_at_once() {
    let server = Server::start(&[]);
    let mut stream = connect(server.port);
    for _ in 0..3 {
        stream
            .write_all(&request("GET", "/healthz", "", b""))
            .unwrap();
        assert_eq!(read(&mut stream).unwrap().status, 200);
    }
    let both = [
        request("GET", "/healthz", "", b""),
        request("GET", "/no", "", b""),
    ]
    .concat();
    stream.write_all(&both).unwrap();
    let mut text = String::new();
    let mut buffer = [0; 1024];
    while !(text.contains("200 OK") && text.contains("404 Not Found")) {
        let count = std::io::Read::read(&mut stream, &mut buffer).unwrap();
        assert!(count > 0, "{text}");
        text += std::str::from_utf8(&buffer[..count]).unwrap();
    }
}

#[test]
fn a_folder_that_does_not_say_its_languages_is_an_error_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    Fixture::joint().write(&folder.path().join("bundle"));
    let ran = infer(folder.path(), "serve", &["bundle", "--port", "0"])
        .output()
        .unwrap();
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(
        stderr.contains("hint: say it, such as: infer serve en-de=bundle"),
        "{stderr}"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let args = ["en-de=bundle", "--port", &port];
    let ran = infer(folder.path(), "serve", &args).output().unwrap();
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert!(
        stderr.contains("cannot listen on 127.0.0.1") && stderr.contains("--port 0"),
        "{stderr}"
    );
}
