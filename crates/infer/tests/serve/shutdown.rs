use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::client::{JSON, connect, read, request};
use crate::server::{LONG, Server, long_text, wait_until};

#[test]
fn a_signal_lets_running_requests_finish_and_no_new_ones_begin() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::start(&LONG);
        let text = "the cat sees a small house by the river\n".repeat(2000);
        let body = json!({ "text": text }).to_string();
        let mut running = connect(server.port);
        running
            .write_all(&request("POST", "/v1/translate", JSON, body.as_bytes()))
            .unwrap();
        let mut begun = connect(server.port);
        begun
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: loc")
            .unwrap();
        let mut idle = connect(server.port);
        idle.write_all(&request("GET", "/healthz", "", b""))
            .unwrap();
        assert_eq!(read(&mut idle).unwrap().status, 200);
        wait_until(|| server.metric("attend_requests_translating") == 1);
        server.signal(signal);
        wait_until(|| server.log().contains("stopping"));
        begun.write_all(b"alhost\r\n\r\n").unwrap();
        let refused = read(&mut begun).unwrap();
        assert_eq!(
            (refused.status, refused.header("connection")),
            (503, Some("close"))
        );
        assert!(read(&mut idle).is_none());
        let answer = read(&mut running).unwrap();
        assert_eq!(answer.status, 200);
        let translation = &answer.json()["translations"][0]["text"];
        assert_eq!(translation.as_str().unwrap().lines().count(), 2000);
        assert_eq!(server.wait().code(), Some(0));
    }
}

#[test]
fn a_second_signal_or_the_end_of_grace_ends_what_is_running() {
    let body = json!({"text": long_text()}).to_string();
    for (grace, code) in [("60", 1), ("0.3", 0)] {
        let mut server = Server::start(&[&LONG[..], &["--grace", grace]].concat());
        let mut running = connect(server.port);
        running
            .write_all(&request("POST", "/v1/translate", JSON, body.as_bytes()))
            .unwrap();
        wait_until(|| server.metric("attend_requests_translating") == 1);
        server.signal("TERM");
        wait_until(|| server.log().contains("stopping"));
        if code == 1 {
            server.signal("TERM");
        }
        assert_eq!(server.wait().code(), Some(code));
    }
}

#[test]
fn a_server_that_was_killed_under_load_starts_again_on_its_port() {
    let server = Server::start(&[]);
    let port = server.port;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let body = br#"{"text": "the cat sees a small house by the river"}"#;
                    let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else {
                        std::thread::sleep(std::time::Duration::from_millis(5));
                        continue;
                    };
                    let _ = stream.write_all(&request("POST", "/v1/translate", JSON, body));
                    let _ = read(&mut stream);
                }
            });
        }
        wait_until(|| server.metric("attend_translated_characters_total{model=\"bundle\"}") > 400);
        let folder = server.kill();
        let number = port.to_string();
        let server = Server::start_in(folder, &["en-de=bundle", "--port", &number]);
        assert_eq!(server.port, port);
        server.assert_works();
        stop.store(true, Ordering::Relaxed);
    });
}
