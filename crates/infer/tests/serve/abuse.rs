use std::io::{Read, Write};
use std::net::Shutdown;

use serde_json::json;

use crate::client::{JSON, connect, form, get, post, read, request, send};
use crate::server::{LONG, Server, long_text, wait_until};

#[test]
fn a_body_that_is_too_large_is_refused_before_it_is_read() {
    let server = Server::start(&[]);
    let large = vec![b'a'; 10 << 20];
    let answer = send(server.port, &request("POST", "/v1/translate", JSON, &large));
    assert_eq!(answer.status, 413);
    assert!(answer.error().contains("1048576 bytes"));
    // Only the head: the answer does not wait for the body.
    let head = format!("POST /translate HTTP/1.1\r\nHost: localhost\r\n{JSON}");
    let endless = format!("{head}Content-Length: 99999999999\r\n\r\n");
    assert_eq!(send(server.port, endless.as_bytes()).status, 413);
    // Without a length.
    let mut stream = connect(server.port);
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    stream.write_all(chunked.as_bytes()).unwrap();
    let chunk = [&b"10000\r\n"[..], &[b' '; 0x10000], b"\r\n"].concat();
    for _ in 0..32 {
        if stream.write_all(&chunk).is_err() {
            break;
        }
    }
    assert_eq!(read(&mut stream).unwrap().status, 413);
    server.assert_works();
}

#[test]
fn bodies_that_are_not_json_text_are_refused() {
    let server = Server::start(&[]);
    let port = server.port;
    let deep = [&b"{\"text\":"[..], &[b'['; 200_000], b"}"].concat();
    let deep_object = [b"{\"decode\":".to_vec(), b"{\"a\":".repeat(100_000)].concat();
    let not_utf8 = b"{\"text\": \"\xff\xfe\"}".to_vec();
    let bodies = [
        deep,
        deep_object,
        not_utf8,
        b"".to_vec(),
        b"{".to_vec(),
        b"\0".to_vec(),
    ];
    for body in &bodies {
        for path in ["/v1/translate", "/v1/alternatives", "/translate", "/detect"] {
            let answer = send(port, &request("POST", path, JSON, body));
            assert_eq!(
                answer.status,
                400,
                "{path} {:?}",
                &body[..body.len().min(20)]
            );
            assert!(!answer.error().is_empty());
        }
    }
    assert_eq!(
        form(port, "/translate", "q=%ff&source=en&target=de").status,
        400
    );
    let parts = request(
        "POST",
        "/translate",
        "Content-Type: multipart/form-data\r\n",
        b"x",
    );
    assert_eq!(send(port, &parts).status, 400);
    let zipped = format!("{JSON}Content-Encoding: gzip\r\n");
    assert_eq!(
        send(port, &request("POST", "/v1/translate", &zipped, b"x")).status,
        415
    );
    server.assert_works();
}

#[test]
fn heads_that_are_wrong_or_too_large_are_refused() {
    let server = Server::start(&[]);
    let long = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "a".repeat(100_000)
    );
    let many = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "a: b\r\n".repeat(500)
    );
    for (bytes, status) in [
        (long.as_bytes(), 431),
        (many.as_bytes(), 431),
        (&b"nonsense\r\n\r\n"[..], 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (
            b"POST /detect HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
            400,
        ),
    ] {
        let mut stream = connect(server.port);
        let _ = stream.write_all(bytes); // it may be closed before all was sent
        assert_eq!(read(&mut stream).map(|it| it.status), Some(status));
    }
    // The beginning of TLS.
    let mut stream = connect(server.port);
    stream
        .write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        .unwrap();
    assert_eq!(read(&mut stream).map(|it| it.status), Some(400));
    server.assert_works();
}

#[test]
fn no_path_leads_out_of_the_page() {
    let server = Server::start(&[]);
    for path in [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/page/..",
        "/page.js/../../Cargo.toml",
        "/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/page.js%00",
        "/\\..\\..",
    ] {
        let answer = get(server.port, path);
        assert!([400, 404].contains(&answer.status), "{path}: {answer:?}");
        assert!(!answer.body.contains("root:"));
    }
    server.assert_works();
}

#[test]
fn slow_clients_are_given_up_and_hold_up_nobody() {
    let server = Server::start(&["--header-timeout", "1.5", "--body-timeout", "1.5"]);
    // As many as this process may have open, with some for the rest of it.
    let mut slow = Vec::new();
    for i in 0..1000 {
        let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", server.port)) else {
            break;
        };
        let sent: &[u8] = match i % 3 {
            0 => b"",
            1 => b"POST /v1/translate HTTP/1.1\r\nHost: loc",
            _ => b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                   Content-Length: 100\r\n\r\n{\"te",
        };
        stream.write_all(sent).unwrap();
        slow.push(stream);
    }
    drop(slow.split_off(slow.len().min(980)));
    assert!(slow.len() > 200, "only {} connections", slow.len());
    server.assert_works();
    let mut late = 0;
    for stream in &mut slow {
        // Each is closed; who has sent a head is told why.
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(20)))
            .unwrap();
        let mut text = String::new();
        if stream.read_to_string(&mut text).is_ok() && text.starts_with("HTTP/1.1 408") {
            late += 1;
        }
    }
    assert!(late > slow.len() / 4, "{late} of {}", slow.len());
    drop(slow);
    wait_until(|| server.metric("attend_connections") <= 2);
    server.assert_works();
}

#[test]
fn who_goes_away_is_not_translated_for() {
    let server = Server::start(&LONG);
    let body = json!({"text": long_text()}).to_string();
    for how in [Some(Shutdown::Write), Some(Shutdown::Both), None] {
        let mut stream = connect(server.port);
        stream
            .write_all(&request("POST", "/v1/translate", JSON, body.as_bytes()))
            .unwrap();
        wait_until(|| server.metric("attend_requests_translating") == 1);
        match how {
            Some(how) => stream.shutdown(how).unwrap(),
            None => drop(stream),
        }
        wait_until(|| server.metric("attend_requests_translating") == 0);
    }
    wait_until(|| server.log().matches("status=499").count() == 3);
    server.assert_works();
}

#[test]
fn requests_beyond_the_queue_are_refused_and_the_others_are_not() {
    let server = Server::start(&[&LONG[..], &["--max-requests", "1", "--max-queue", "1"]].concat());
    let body = json!({"text": long_text()}).to_string();
    let mut running = connect(server.port);
    running
        .write_all(&request("POST", "/v1/translate", JSON, body.as_bytes()))
        .unwrap();
    wait_until(|| server.metric("attend_requests_translating") == 1);
    let ask = json!({"text": "a dog runs"});
    let short = ask.to_string();
    let mut waiting = connect(server.port);
    waiting
        .write_all(&request("POST", "/v1/translate", JSON, short.as_bytes()))
        .unwrap();
    wait_until(|| server.metric("attend_requests_waiting") == 1);
    let refused = post(server.port, "/v1/translate", &ask);
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("2"));
    assert_eq!(server.metric("attend_failures_total{kind=\"queue\"}"), 1);
    drop(running); // whose turn ends then
    assert_eq!(read(&mut waiting).unwrap().status, 200);
    server.assert_works();
}

#[test]
fn a_request_that_takes_too_long_is_given_up() {
    let server = Server::start(
        &[
            &LONG[..],
            &["--request-timeout", "1", "--max-requests", "1"],
        ]
        .concat(),
    );
    let answer = post(server.port, "/v1/translate", &json!({"text": long_text()}));
    assert_eq!(answer.status, 503);
    assert!(answer.error().contains("longer than 1 s"), "{answer:?}");
    wait_until(|| server.metric("attend_requests_translating") == 0);
    server.assert_works();
}
