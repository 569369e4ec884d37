use crate::browser::Browser;
use crate::server::Server;

/// The translation in a column, counted from 0.
pub(crate) fn output(column: usize) -> String {
    format!("return document.querySelectorAll('.output')[{column}].textContent")
}

/// Waits until a column shows a text.
pub(crate) fn wait_for(browser: &Browser, column: usize, expected: &str) {
    let expected = serde_json::to_string(expected).unwrap();
    let what = format!("{expected} in column {column}");
    browser.wait(&what, &format!("{} === {expected}", output(column)));
}

#[test]
fn typing_shows_what_the_api_answers() {
    let server = Server::start();
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    let text = "the small cat sleeps. a dog runs.\n\nthe cat sees a house";
    let expected = server.translate("first", text);
    assert!(!expected.trim().is_empty());
    browser.type_into("#text", text);
    wait_for(&browser, 0, &expected);
    // What is typed later replaces it.
    browser.type_into("#text", " by the river");
    wait_for(
        &browser,
        0,
        &server.translate("first", &format!("{text} by the river")),
    );
    browser.click("#clear");
    wait_for(&browser, 0, "");
    assert_eq!(browser.errors(), [""; 0]);
}

#[test]
fn markup_in_a_text_is_text() {
    let server = Server::start();
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    browser.type_into("#text", "<img src=x onerror=document.title='no'> a dog");
    browser.wait(
        "a translation",
        "return document.querySelector('.output .word') !== null",
    );
    assert_eq!(
        browser.run("return document.querySelectorAll('.panes img').length"),
        0
    );
    assert_eq!(browser.text("return document.title"), "Attend: translate");
    assert_eq!(browser.errors(), [""; 0]);
}

#[test]
fn models_can_be_switched_compared_and_swapped() {
    let server = Server::start();
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    let text = "the small cat sleeps";
    let (first, second) = (
        server.translate("first", text),
        server.translate("second", text),
    );
    assert_ne!(first, second);
    browser.type_into("#text", text);
    wait_for(&browser, 0, &first);
    browser.choose(".model", "second");
    wait_for(&browser, 0, &second);

    browser.click("#compare");
    wait_for(&browser, 1, &first);
    assert_eq!(browser.text(&output(0)), second);
    let differ = "return document.querySelectorAll('.word.differs').length";
    browser.wait("marks of differences", differ);
    browser.choose(".column:nth-of-type(3) .model", "second");
    wait_for(&browser, 1, &second);
    assert_eq!(browser.run(differ), 0);

    // The choice outlives the page.
    browser.run("location.reload()");
    browser.wait(
        "two columns",
        "return document.querySelectorAll('.column').length === 2",
    );
    let models = "return [...document.querySelectorAll('.model')].map(it => it.value).join()";
    assert_eq!(browser.text(models), "second,second");

    browser.type_into("#text", text);
    wait_for(&browser, 0, &second);
    browser.click("#swap");
    wait_for(&browser, 0, &server.translate("back", &second));
    assert_eq!(
        browser.text("return document.getElementById('text').value"),
        second
    );
    assert_eq!(browser.errors(), [""; 0]);
}
