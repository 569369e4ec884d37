use serde_json::json;

use crate::client::{JSON, form, get, request, send};
use crate::fixture::Fixture;
use crate::server::Server;

const ASK: &[u8] = br#"{"text": "a dog runs"}"#;

fn with_keys() -> Server {
    let folder = tempfile::tempdir().unwrap();
    Fixture::joint().write(&folder.path().join("bundle"));
    std::fs::write(folder.path().join("keys"), "# two\nfirst-key\nsecond-key\n").unwrap();
    Server::start_in(
        folder,
        &["en-de=bundle", "--port", "0", "--api-key-file", "keys"],
    )
}

fn ask(server: &Server, headers: &str) -> u16 {
    let headers = format!("{JSON}{headers}");
    send(
        server.port,
        &request("POST", "/v1/translate", &headers, ASK),
    )
    .status
}

#[test]
fn with_keys_only_who_has_one_is_translated_for() {
    let server = with_keys();
    for (header, status) in [
        ("", 401),
        ("Authorization: Bearer\r\n", 401),
        ("Authorization: Basic first-key\r\n", 401),
        ("Authorization: Bearer wrong\r\n", 403),
        ("Authorization: Bearer first-ke\r\n", 403),
        ("Authorization: Bearer first-key\r\n", 200),
        ("authorization: bearer second-key\r\n", 200),
    ] {
        assert_eq!(ask(&server, header), status, "{header}");
    }
    let fields = "q=dogs&source=en&target=de";
    for (more, status) in [
        ("", 400),
        ("&api_key=wrong", 403),
        ("&api_key=second-key", 200),
    ] {
        let answer = form(server.port, "/translate", &format!("{fields}{more}"));
        assert_eq!(answer.status, status, "{more}");
        let answer = form(server.port, "/detect", &format!("{fields}{more}"));
        assert_eq!(answer.status, status, "{more}");
    }
    let wrong = form(
        server.port,
        "/translate",
        &format!("{fields}&api_key=wrong"),
    );
    assert_eq!(wrong.json(), json!({"error": "Invalid API key"}));
    for path in [
        "/",
        "/healthz",
        "/health",
        "/languages",
        "/v1/models",
        "/openapi.json",
        "/metrics",
    ] {
        assert_eq!(get(server.port, path).status, 200, "{path}");
    }
    assert_eq!(get(server.port, "/v1/models").json()["key_required"], true);
    let log = server.log();
    assert!(
        !log.contains("-key") && !log.contains("dogs") && !log.contains("wrong"),
        "{log}"
    );
}

#[test]
fn pages_of_other_sites_and_other_names_of_this_machine_are_refused() {
    let server = Server::start(&[]);
    let own = format!("Origin: http://localhost:{}\r\n", server.port);
    let host = format!("Host: localhost:{}\r\n", server.port);
    let same =
        format!("POST /v1/translate HTTP/1.1\r\n{host}{own}{JSON}Content-Length: 22\r\n\r\n");
    let same = [same.as_bytes(), ASK].concat();
    assert_eq!(send(server.port, &same).status, 200);
    assert_eq!(ask(&server, "Origin: https://evil.example\r\n"), 403);
    assert_eq!(ask(&server, "Origin: null\r\n"), 403);
    let rebound = b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    let refused = send(server.port, rebound);
    assert_eq!(refused.status, 403);
    assert!(
        refused.json()["hint"]
            .as_str()
            .unwrap()
            .contains("--allow-host")
    );
    let none = send(server.port, b"GET /healthz HTTP/1.1\r\n\r\n");
    assert_eq!(none.status, 400);
    let old = send(server.port, b"GET /healthz HTTP/1.0\r\n\r\n");
    assert_eq!(old.status, 200);
    let refused = ask(&server, "Origin: https://evil.example\r\n");
    assert_eq!(refused, 403);
    assert!(!get(server.port, "/healthz").head.contains("access-control"));
}

#[test]
fn sites_and_names_that_are_allowed_are_served() {
    let server = Server::start(&[
        "--cors-origin",
        "https://friend.example",
        "--allow-host",
        "translate.example",
    ]);
    let preflight = "Origin: https://friend.example\r\nAccess-Control-Request-Method: POST\r\n\
                     Access-Control-Request-Headers: content-type\r\n";
    let answer = send(
        server.port,
        &request("OPTIONS", "/v1/translate", preflight, b""),
    );
    let allowed = answer.header("access-control-allow-origin");
    assert_eq!(
        (answer.status, allowed),
        (200, Some("https://friend.example"))
    );
    assert_eq!(ask(&server, "Origin: https://friend.example\r\n"), 200);
    assert_eq!(ask(&server, "Origin: https://evil.example\r\n"), 403);
    assert_eq!(ask(&server, "Origin: https://translate.example\r\n"), 200);
    let named = b"GET /healthz HTTP/1.1\r\nHost: translate.example\r\n\r\n";
    assert_eq!(send(server.port, named).status, 200);
}
