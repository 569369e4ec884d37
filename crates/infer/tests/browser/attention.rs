use serde_json::json;

use crate::browser::Browser;
use crate::http::request;
use crate::server::Server;

#[test]
fn pointing_at_a_word_of_either_side_colours_the_other() {
    let server = Server::start();
    let Some(browser) = Browser::open(server.port) else {
        return;
    };
    let text = "the small cat sleeps";
    browser.type_into("#text", text);
    browser.wait(
        "a translation",
        "return document.querySelector('.output .word') !== null",
    );
    browser.point_at("return document.querySelector('.output .word')");
    let marked = "return document.querySelectorAll('#mirror .word.marked').length";
    browser.wait("marked source words", marked);
    assert_eq!(browser.run(marked), 4);

    // The heaviest word is the darkest, and it is the one that the server's weights name.
    let darkest = "const words = [...document.querySelectorAll('#mirror .word.marked')]; \
                   const weight = (it) => Number(it.style.getPropertyValue('--weight')); \
                   return words.sort((a, b) => weight(b) - weight(a))[0].textContent";
    assert_eq!(browser.text(darkest), heaviest(&server, text));
    let said = browser.text("return document.querySelector('.attends').textContent");
    assert!(said.contains("looks at"), "{said}");

    // One layer and one head instead of the mean.
    browser.choose(".layer", "1");
    browser.choose(".head-select", "0");
    browser.point_at("return document.querySelector('.output .word')");
    browser.wait("marked source words", marked);

    browser.point_at("return document.querySelectorAll('#mirror .word')[2]");
    browser.wait(
        "marked target words",
        "return document.querySelectorAll('.output .word.marked').length",
    );
    let said = browser.text("return document.querySelector('.attends').textContent");
    assert!(said.starts_with("cat is seen by"), "{said}");
    browser.point_at("return document.querySelector('h1')");
    browser.wait(
        "an end of marks",
        "return document.querySelector('.marked') === null",
    );
    assert_eq!(browser.errors(), [""; 0]);
}

/// The source word that the first word of the translation attends to most: the mean over layers, heads and the
/// tokens of that word, summed over the tokens of each source word.
fn heaviest(server: &Server, text: &str) -> String {
    let ask = json!({"model": "first", "text": text, "attention": true, "sentences": false});
    let (_, answer) = request(server.port, "POST", "/v1/translate", Some(&ask)).unwrap();
    let attention = &answer["translations"][0]["sentences"][0]["attention"];
    let tokens =
        |side: &str| -> Vec<String> { serde_json::from_value(attention[side].clone()).unwrap() };
    let (source, target) = (tokens("source"), tokens("target"));
    let weights: Vec<Vec<Vec<Vec<f64>>>> =
        serde_json::from_value(attention["weights"].clone()).unwrap();
    let rest = |token: &&String| !token.starts_with(' ') && *token != "</s>";
    let first_word = 1 + target[1..].iter().take_while(rest).count();
    let mut words: Vec<(String, f64)> = Vec::new();
    for (s, token) in source[..source.len() - 1].iter().enumerate() {
        let heads = weights.iter().flatten();
        let weight: f64 = heads
            .flat_map(|head| head[..first_word].iter().map(move |row| row[s]))
            .sum();
        match words.last_mut() {
            Some((word, sum)) if !token.starts_with(' ') => {
                word.push_str(token);
                *sum += weight;
            }
            _ => words.push((token.trim().to_string(), weight)),
        }
    }
    let heaviest = words.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    heaviest.unwrap().0
}
