use serde_json::{Value, json};

use crate::client::{JSON, form, get, post, request, send};
use crate::server::Server;

#[test]
fn the_same_request_in_every_form_has_the_same_answer() {
    let server = Server::start(&[]);
    let port = server.port;
    let ask = json!({"q": "a dog runs", "source": "en", "target": "de"});
    let expected = post(port, "/translate", &ask).json();
    assert_eq!(
        expected.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["translatedText"]
    );
    let with_nulls = json!({
        "q": "a dog runs", "source": "EN", "target": "DE", "api_key": null, "format": "text",
    });
    assert_eq!(post(port, "/translate", &with_nulls).json(), expected);
    let query = "q=a+dog%20runs&source=en&target=de";
    assert_eq!(form(port, "/translate", query).json(), expected);
    assert_eq!(
        form(port, &format!("/translate?{query}"), "").json(),
        expected
    );
    let parts = "--x\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\na dog runs\r\n\
                 --x\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nen\r\n\
                 --x\r\nContent-Disposition: form-data; name=\"target\"\r\n\r\nde\r\n--x--\r\n";
    let kind = "Content-Type: multipart/form-data; boundary=x\r\n";
    let sent = send(port, &request("POST", "/translate", kind, parts.as_bytes()));
    assert_eq!(sent.json(), expected);
}

#[test]
fn alternatives_and_detected_languages_are_there_if_they_are_asked_for() {
    let server = Server::start(&[]);
    let port = server.port;
    let ask = json!({
        "q": ["the cat sees a small house", "🙂 "], "source": "auto", "target": "de",
        "alternatives": 5,
    });
    let answer = post(port, "/translate", &ask).json();
    assert_eq!(answer["translatedText"][1], "🙂 ");
    assert_eq!(answer["alternatives"][1], json!([]));
    assert_eq!(answer["detectedLanguage"].as_array().unwrap().len(), 2);
    assert_eq!(answer["detectedLanguage"][0]["language"], "en");
    let all = answer["alternatives"][0].as_array().unwrap();
    assert!((1..=5).contains(&all.len()), "{answer}");
    assert!(!all.contains(&answer["translatedText"][0]));
    let one = form(
        port,
        "/translate",
        "q=dogs&source=en&target=de&alternatives=2",
    )
    .json();
    assert!(
        one["alternatives"]
            .as_array()
            .unwrap()
            .iter()
            .all(Value::is_string)
    );
    let html = json!({
        "q": "<b>dogs</b>", "source": "en", "target": "de", "format": "html", "alternatives": 2,
    });
    let html = post(port, "/translate", &html).json();
    assert_eq!(html["alternatives"], json!([]));
    assert!(
        html["translatedText"].as_str().unwrap().contains("<b>"),
        "{html}"
    );
    let lines = form(port, "/translate", "q=dogs%0D%0Adogs&source=en&target=de").json();
    let lines = lines["translatedText"].as_str().unwrap();
    assert!(lines.contains('\n') && !lines.contains('\r'), "{lines:?}");
}

#[test]
fn errors_are_those_of_libretranslate() {
    let server = Server::start(&[]);
    let port = server.port;
    for (body, said) in [
        (json!({}), "Invalid request: missing q parameter"),
        (json!({"q": ""}), "Invalid request: missing q parameter"),
        (json!({"q": []}), "Invalid request: missing q parameter"),
        (
            json!({"q": "a"}),
            "Invalid request: missing source parameter",
        ),
        (
            json!({"q": "a", "source": "en"}),
            "Invalid request: missing target parameter",
        ),
        (
            json!({"q": "a", "source": "xx", "target": "de"}),
            "xx is not supported",
        ),
        (
            json!({"q": "a", "source": "en", "target": "xx"}),
            "xx is not supported",
        ),
        (
            json!({"q": "a", "source": "en", "target": "de", "format": "md"}),
            "md format is not supported",
        ),
        (
            json!({"q": "a", "source": "en", "target": "de", "alternatives": "many"}),
            "Invalid request: alternatives parameter is not a number",
        ),
        (
            json!({"q": "a", "source": "en", "target": "de", "alternatives": 99}),
            "Invalid request: alternatives parameter (99) exceeds limit (15)",
        ),
        (json!([1]), "Invalid JSON format"),
    ] {
        let answer = post(port, "/translate", &body);
        assert_eq!((answer.status, &*answer.error()), (400, said), "{body}");
    }
    let file = send(port, &request("POST", "/translate_file", JSON, b"{}"));
    assert_eq!(file.status, 501);
}

#[test]
fn languages_settings_and_detection_answer_as_clients_expect() {
    let server = Server::start(&[]);
    let port = server.port;
    let expected = json!([{"code": "en", "name": "English", "targets": ["de"]}]);
    assert_eq!(get(port, "/languages").json(), expected);
    // As libretranslatepy sends it: a GET with the body of a form.
    let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
    let odd = request("GET", "/languages", kind, b"api_key=xyz");
    assert_eq!(send(port, &odd).json(), expected);
    let settings = get(port, "/frontend/settings").json();
    assert_eq!(settings["keyRequired"], false);
    assert_eq!(
        settings["language"]["target"],
        json!({"code": "de", "name": "German"})
    );
    let found = form(
        port,
        "/detect",
        "q=der+Hund+sieht+eine+kleine+Katze+im+Haus",
    )
    .json();
    assert_eq!(found[0]["language"], "de");
    let found = post(port, "/detect", &json!({"q": "1234"})).json();
    assert_eq!(found, json!([{"confidence": 0.0, "language": "en"}]));
    assert_eq!(
        post(port, "/detect", &json!({})).error(),
        "Invalid request: missing q parameter"
    );
}
