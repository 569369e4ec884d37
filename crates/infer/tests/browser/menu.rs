use serde_json::json;

use crate::browser::{Browser, DOWN, ENTER, ESCAPE, RIGHT, TAB};
use crate::http::request;
use crate::server::Server;
use crate::translation::{output, wait_for};

const FOCUSED: &str = "return document.activeElement.getAttribute('role')";
const ITEMS: &str = "return document.querySelectorAll('#menu [role=menuitemradio]').length";

#[test]
fn other_words_are_chosen_with_the_keyboard() {
    let server = Server::start();
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    let text = "the cat sees a small house";
    browser.type_into("#text", text);
    wait_for(&browser, 0, &server.translate("first", text));
    browser.run("document.querySelector('.copy').focus()");
    browser.press(TAB);
    assert_eq!(browser.text(FOCUSED), "button");

    // Escape returns to the word.
    browser.press(ENTER);
    browser.wait("other words", ITEMS);
    browser.press(ESCAPE);
    assert_eq!(
        browser.run("return document.getElementById('menu').hidden"),
        true
    );
    assert_eq!(
        browser
            .text("return document.activeElement.className")
            .split(' ')
            .next(),
        Some("word")
    );

    // The second word on the list of the API replaces the first word and what follows it.
    let ask = json!({"model": "first", "text": text, "prefix": "", "count": 6});
    let (_, answer) = request(server.port, "POST", "/v1/alternatives", Some(&ask)).unwrap();
    let second = answer["alternatives"][1]["text"].as_str().unwrap();
    browser.press(ENTER);
    browser.wait("other words", ITEMS);
    browser.press(DOWN);
    browser.press(ENTER);
    wait_for(&browser, 0, second);

    // Other translations of the whole sentence are behind the last item.
    browser.wait(
        "the focus on a word",
        "return document.activeElement.matches('.word')",
    );
    browser.press(ENTER);
    browser.wait("other words", ITEMS);
    browser.run("[...document.querySelectorAll('#menu .item')].at(-1).focus()");
    browser.press(ENTER);
    browser.wait(
        "other sentences",
        "return document.getElementById('menu').ariaLabel.includes('sentence') \
         && document.querySelectorAll('#menu [role=menuitemradio]').length",
    );
    browser.press(DOWN);
    let chosen = browser.text("return document.activeElement.querySelector('.label').textContent");
    browser.press(ENTER);
    wait_for(&browser, 0, &chosen);

    // An edit of the source drops the choice.
    browser.type_into("#text", " ");
    wait_for(&browser, 0, &server.translate("first", &format!("{text} ")));
    browser.run("document.querySelector('.output .word').focus()");
    browser.press(RIGHT);
    browser.press(TAB);
    assert_ne!(
        browser.text(FOCUSED),
        "button",
        "no way out of {}",
        browser.text(&output(0))
    );
    assert_eq!(browser.errors(), [""; 0]);
}
