use std::fs;

use crate::browser::Browser;
use crate::server::Server;
use crate::translation::wait_for;

const ERROR: &str =
    "const error = document.getElementById('error'); return !error.hidden && error.innerText";

#[test]
fn a_server_that_is_gone_is_an_error_until_it_is_back() {
    let mut server = Server::start();
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    server.stop();
    browser.type_into("#text", "a dog runs");
    let message = browser.wait("error", ERROR).to_string();
    assert!(message.contains("does not answer"), "{message}");
    // Nobody has to do anything.
    server.restart();
    wait_for(&browser, 0, &server.translate("first", "a dog runs"));
    browser.wait(
        "an end of the error",
        "return document.getElementById('error').hidden",
    );
    assert_eq!(browser.errors(), [""; 0]);
}

#[test]
fn a_key_is_asked_for_where_the_server_needs_one() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    fs::write(&keys, "open sesame\n").unwrap();
    let server = Server::with(&["--api-key-file", keys.to_str().unwrap()]);
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    browser.type_into("#text", "a dog runs");
    let message = browser.wait("error", ERROR).to_string();
    assert!(message.contains("key"), "{message}");
    assert_eq!(
        browser.run("return document.querySelector('.output').textContent"),
        ""
    );
    browser.type_into("#key", "open sesame");
    browser.wait(
        "a translation",
        "return document.querySelector('.output .word') !== null",
    );
    browser.wait(
        "an end of the error",
        "return document.getElementById('error').hidden",
    );
    assert_eq!(browser.errors(), [""; 0]);
}
