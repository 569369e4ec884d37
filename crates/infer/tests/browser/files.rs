use std::fs;

use crate::browser::Browser;
use crate::server::Server;

#[test]
fn a_file_is_translated_line_by_line_and_downloaded() {
    let server = Server::start();
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<&str> = ["a dog runs", "", "the small cat sleeps"].repeat(30);
    let file = folder.path().join("animals.txt");
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    browser.type_into("#file", file.to_str().unwrap());
    let download = "const link = document.getElementById('file-download'); \
                    return !link.hidden && link.textContent === 'Download'";
    browser.wait("end of the file", download);
    browser.click("#file-download");
    let translated = browser.downloads().join("animals.de.txt");
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !translated.is_file() {
        assert!(end > std::time::Instant::now(), "nothing was downloaded");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let translated = fs::read_to_string(translated).unwrap();
    assert!(translated.ends_with('\n'));
    let translated: Vec<&str> = translated.lines().collect();
    assert_eq!(translated.len(), lines.len());
    assert_eq!(translated[0], server.translate("first", lines[0]));
    assert_eq!(translated[1], "");
    assert_eq!(translated[89], server.translate("first", lines[89]));
    assert_eq!(browser.errors(), [""; 0]);
}

#[test]
fn a_file_that_is_not_utf_8_is_refused() {
    let server = Server::start();
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("latin.txt");
    fs::write(&file, b"f\xfcr").unwrap();
    browser.type_into("#file", file.to_str().unwrap());
    let message = "const error = document.getElementById('file-error'); return !error.hidden && error.textContent";
    let message = browser.wait("message", message).to_string();
    assert!(
        message.contains("latin.txt is not text in UTF-8"),
        "{message}"
    );
    assert_eq!(
        browser.run("return document.getElementById('file-download').hidden"),
        true
    );
}
