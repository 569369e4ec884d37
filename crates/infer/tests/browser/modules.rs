//! The modules of the page by themselves, for what tiny models cannot show.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::server::Server;

/// Runs the body of an async function in the page, with the exports of a module in `it`.
fn with(browser: &Browser, module: &str, body: &str) -> Value {
    browser.run(&format!(
        "return (async () => {{ const it = await import('/{module}'); {body} }})()"
    ))
}

#[test]
fn words_are_found_in_scripts_with_and_without_spaces() {
    let server = Server::start();
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    let words = |text: &str, tokens: Value| {
        let (text, tokens) = (json!(text), tokens.to_string());
        let body = format!(
            "const text = {text}, tokens = {tokens}; \
             const ranges = tokens && it.locateTokens(text, tokens); \
             return it.units(text, ranges).map(({{ start, end }}) => text.slice(start, end))"
        );
        with(&browser, "text.js", &body)
    };
    // Tokens divide words only where there are no spaces.
    assert_eq!(
        words("a  dog runs.", json!(["a", " ", " do", "g", " runs", "."])),
        json!(["a", "dog", "runs."])
    );
    assert_eq!(
        words("犬が走る。", json!(["犬", "が走", "る", "。"])),
        json!(["犬", "が走", "る", "。"])
    );
    // A character of two tokens is the text of the second.
    assert_eq!(words("犬が", json!(["", "犬", "が"])), json!(["犬", "が"]));
    assert_eq!(
        words("Attend は犬", json!(["At", "tend", " は", "犬"])),
        json!(["Attend", "は", "犬"])
    );
    assert_eq!(words("", Value::Null), json!([]));
}

#[test]
fn weights_of_words_add_up_those_of_their_tokens() {
    let server = Server::start();
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    let found = with(
        &browser,
        "attention.js",
        "const answer = { layers: 1, heads: 2, source: ['a', ' do', 'g', '</s>'], target: ['Hun', 'd', '</s>'], \
           weights: [[[[0.5, 0.25, 0.25, 0], [0, 1, 0, 0], [0, 0, 0, 1]], [[1, 0, 0, 0], [0, 0.5, 0, 0.5], [0, 0, 0, 1]]]] }; \
         const attention = new it.Attention(answer, 'a dog', 'Hund'); \
         const [a, dog, hund] = [{ start: 0, end: 1 }, { start: 2, end: 5 }, { start: 0, end: 4 }]; \
         return [attention.toSource(hund, [a, dog], 0, 0), attention.toSource(hund, [a, dog], null, null), \
                 attention.toTarget(dog, [hund], 0, 1)]",
    );
    // "Hund" is two tokens: the mean of their rows. "dog" is two tokens: the sum of their columns.
    assert_eq!(found, json!([[0.25, 0.75], [0.375, 0.5], [0.25]]));
}

#[test]
fn batches_respect_the_limits_of_the_server() {
    let server = Server::start();
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    let batches = |lines: Value, limits: Value| {
        let body = format!(
            "const lines = {lines}, ends = []; \
             for (let at = 0; at < lines.length; ends.push(at)) at = it.endOfBatch(lines, at, {limits}); \
             return ends"
        );
        with(&browser, "text.js", &body)
    };
    let lines = json!(["one", "two", "", "three", "\u{1f600}\u{1f600}"]);
    let wide = json!({"texts": 2, "characters": 1000, "body": 1_000_000});
    assert_eq!(batches(lines.clone(), wide), json!([2, 4, 5]));
    let short = json!({"texts": 9, "characters": 7, "body": 1_000_000});
    assert_eq!(batches(lines.clone(), short), json!([3, 5]));
    // A line that is too long for itself is left to the server to refuse.
    let least = json!({"texts": 9, "characters": 1, "body": 1_000_000});
    assert_eq!(batches(lines, least), json!([1, 2, 3, 4, 5]));
}

#[test]
fn a_glossary_is_read_up_to_its_first_mistake() {
    let server = Server::start();
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    let read = |text: &str| {
        let body = format!("return it.parseGlossary({})", json!(text));
        with(&browser, "options.js", &body)
    };
    assert_eq!(
        read("dog = Hund\n\n  cat=Katze ")["terms"],
        json!({"dog": "Hund", "cat": "Katze"})
    );
    assert_eq!(
        read("dog = Hund = Tier")["terms"],
        json!({"dog": "Hund = Tier"})
    );
    let problem = read("dog = Hund\ncat")["problem"].to_string();
    assert!(problem.contains("Line 2"), "{problem}");
}
