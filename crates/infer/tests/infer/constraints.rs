//! What a line asks of its translation, on the level of text.

use std::collections::BTreeSet;

use attend_infer::{DecodeConfig, Error, Request, Translation, Translator};
use attend_model::Kernels;

use crate::fixture::{Fixture, LINES};

fn greedy(decode: &DecodeConfig) -> DecodeConfig {
    DecodeConfig {
        beam: 1,
        ..decode.clone()
    }
}

fn sampling(decode: &DecodeConfig) -> DecodeConfig {
    DecodeConfig {
        sampling: true,
        ..decode.clone()
    }
}

fn translator<'a>(fixture: &'a Fixture, decode: &'a DecodeConfig) -> Translator<'a> {
    Translator::new(&*fixture.model, &fixture.tokenizers, decode, Kernels::Fused)
}

fn requests(change: impl Fn(&mut Request)) -> Vec<Request> {
    let requests = (0..).zip(LINES).map(|(number, line)| {
        let mut request = Request::new(number, line);
        change(&mut request);
        request
    });
    requests.collect()
}

fn texts(translations: &[Translation]) -> impl Iterator<Item = &str> {
    let hypotheses = translations.iter().flat_map(|t| &t.hypotheses);
    hypotheses.map(|hypothesis| &*hypothesis.text)
}

/// The words of a text: the longest runs of letters and digits.
fn words(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty()).collect()
}

#[test]
fn every_translation_begins_with_its_prefix() {
    for fixture in [Fixture::joint(), Fixture::separate()] {
        let beam = &fixture.decode;
        for decode in [beam.clone(), greedy(beam), sampling(beam)] {
            let translator = translator(&fixture, &decode);
            // The last ones have letters that the vocabulary lacks.
            for prefix in [
                "ein",
                "die kleine",
                "Katze, die",
                "  Hund ",
                "Ωmega",
                "x ☃ y",
            ] {
                let requests = requests(|request| request.prefix = Some(prefix.into()));
                let translations = translator.translate_requests(&requests).unwrap();
                for text in texts(&translations) {
                    assert!(text.starts_with(prefix.trim()), "{prefix}: {text}");
                }
            }
        }
    }
}

#[test]
fn a_prefix_changes_nothing_if_the_model_says_the_same_and_its_score_counts() {
    let fixture = Fixture::joint();
    for decode in [fixture.decode.clone(), greedy(&fixture.decode)] {
        let translator = translator(&fixture, &decode);
        let line = Request::new(0, LINES[0]);
        let free = translator
            .translate_requests(std::slice::from_ref(&line))
            .unwrap();
        let best = &free[0].hypotheses[0];
        let word = best.text.split(' ').next().unwrap().to_string();
        let prefix = Some(word);
        let forced = translator
            .translate_requests(&[Request { prefix, ..line }])
            .unwrap();
        let tokens: Vec<_> = forced[0].hypotheses.iter().map(|h| &h.tokens).collect();
        // The tokens of a random model are rarely the tokenizer's own.
        if tokens[0] == &best.tokens {
            assert!((forced[0].hypotheses[0].score - best.score).abs() < 1e-5);
        }
        assert!(forced[0].hypotheses.iter().all(|h| h.score < 0.0));
    }
}

#[test]
fn a_prefix_that_is_too_long_is_refused_with_its_line() {
    let fixture = Fixture::joint();
    let translator = translator(&fixture, &fixture.decode);
    let mut requests = requests(|_| {});
    requests[2].prefix = Some("die kleine Katze ".repeat(20));
    let error = translator.translate_requests(&requests).unwrap_err();
    assert!(
        error.to_string().starts_with("line 3: the prefix has"),
        "{error}"
    );
    assert!(error.hint().is_some());
}

#[test]
fn a_forbidden_word_is_never_in_a_translation() {
    for fixture in [Fixture::joint(), Fixture::separate()] {
        let beam = DecodeConfig {
            max_length: 12,
            ..fixture.decode.clone()
        };
        let warm = DecodeConfig {
            temperature: 1.5,
            ..sampling(&beam)
        };
        for decode in [beam.clone(), greedy(&beam), warm] {
            let lines = requests(|_| {});
            let mut forbidden = BTreeSet::new();
            let mut phrases: Vec<String> = Vec::new();
            // What is left to say is forbidden in turn, each time.
            for round in 0..6 {
                let translator = translator(&fixture, &decode).with_samples(8);
                let translator = translator.forbidding(&phrases).unwrap();
                let translations = translator.translate_requests(&lines).unwrap();
                // None had to be dropped or cut off: the search found others.
                let full = translations
                    .iter()
                    .filter(|t| !t.hypotheses[0].tokens.is_empty());
                assert!(
                    full.clone()
                        .all(|t| t.hypotheses.len() == translator.hypotheses())
                );
                for text in texts(&translations) {
                    let found: Vec<_> = words(text)
                        .into_iter()
                        .filter(|w| forbidden.contains(*w))
                        .collect();
                    assert!(found.is_empty(), "{found:?} in {text}");
                    for phrase in phrases.iter().filter(|phrase| phrase.contains(' ')) {
                        assert!(
                            !format!(" {text} ").contains(&format!(" {phrase} ")),
                            "{phrase}: {text}"
                        );
                    }
                }
                let said: Vec<String> = texts(&translations).map(String::from).collect();
                for text in said {
                    if round % 2 == 0 {
                        for word in words(&text) {
                            forbidden.insert(word.to_string());
                            phrases.push(word.to_string());
                        }
                    } else if let Some((pair, _)) = text.rsplit_once(' ') {
                        phrases.push(pair.to_string());
                    }
                }
            }
            assert!(forbidden.len() > 5, "{forbidden:?}");
        }
    }
}

#[test]
fn a_prefix_with_a_forbidden_word_is_refused_with_its_line() {
    let fixture = Fixture::joint();
    let translator = translator(&fixture, &fixture.decode);
    let translator = translator.forbidding(&["kleine Katze".into()]).unwrap();
    let mut requests = requests(|request| request.prefix = Some("kleine Katzen".into()));
    assert!(translator.translate_requests(&requests).is_ok());
    requests[4].prefix = Some("die  kleine Katze, die".into());
    let error = translator.translate_requests(&requests).unwrap_err();
    let message = "line 5: the prefix has `kleine Katze`, which is forbidden";
    assert!(
        matches!(error, Error::Usage { .. }) && error.to_string() == message,
        "{error}"
    );
}

/// Phrases of one to three words, of words that the tokenizer knows and of made-up ones.
fn phrase(number: usize) -> String {
    const WORDS: [&str; 12] = [
        "Hund", "Katze", "kleines", "Haus", "am", "Fluss", "die", "rennt", "schläft", "Hunde",
        "Kater", "n",
    ];
    let count = 1 + number % 3;
    let words: Vec<&str> = (0..count)
        .map(|i| WORDS[(number * 7 + i * 5) % 12])
        .collect();
    words.join(" ")
}

#[test]
fn a_translation_that_claims_a_term_has_it_as_whole_words() {
    let fixture = Fixture::joint();
    let lines: Vec<&str> = LINES
        .into_iter()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let (mut claimed, mut missing) = (0, 0);
    for beam in [1, 4] {
        for max_length in [6, 30] {
            let decode = DecodeConfig {
                beam,
                max_length,
                ..fixture.decode.clone()
            };
            let requests = (0..40).map(|i| {
                let mut request = Request::new(i as u64, lines[i % lines.len()]);
                request.terms = (0..1 + i % 2).map(|j| phrase(3 * i + j)).collect();
                request
            });
            let requests: Vec<Request> = requests.collect();
            let translator = translator(&fixture, &decode);
            let translations = translator.translate_requests(&requests).unwrap();
            for (request, translation) in requests.iter().zip(&translations) {
                let said = words(translation.text()).join(" ");
                assert!(translation.hypotheses.len() <= beam && !translation.hypotheses.is_empty());
                for term in &request.terms {
                    let has = format!(" {said} ").contains(&format!(" {term} "));
                    let claims = !translation.missing_terms.contains(term);
                    assert_eq!(has, claims, "{term}: {}", translation.text());
                    claimed += usize::from(claims);
                    missing += usize::from(!claims);
                    // There is room for all of it.
                    assert!(claims || max_length == 6, "{term}: {}", translation.text());
                }
            }
        }
    }
    assert!(claimed > 100 && missing > 10, "{claimed} and {missing}");
}

#[test]
fn a_term_that_cannot_be_written_is_missing_and_the_others_are_not() {
    let fixture = Fixture::joint();
    let translator = translator(&fixture, &fixture.decode);
    let mut request = Request::new(0, "a dog runs");
    request.terms = vec![
        "☃".into(),
        "Hund".into(),
        "  ".into(),
        "kleine  Katze".into(),
    ];
    let translations = translator.translate_requests(&[request]).unwrap();
    assert_eq!(translations[0].missing_terms, ["☃"]);
    let text = translations[0].text();
    assert!(
        text.contains("Hund") && text.contains("kleine Katze"),
        "{text}"
    );
    // An empty line has no translation, and so none of its terms.
    let mut empty = Request::new(1, " ");
    empty.terms = vec!["Hund".into()];
    let translations = translator.translate_requests(&[empty]).unwrap();
    assert_eq!(translations[0].missing_terms, ["Hund"]);
}

#[test]
fn terms_and_a_prefix_and_forbidden_words_go_together() {
    let fixture = Fixture::joint();
    let translator = translator(&fixture, &fixture.decode);
    let translator = translator.forbidding(&["Hunde".into()]).unwrap();
    let mut request = Request::new(0, "a dog runs");
    request.prefix = Some("die Katze".into());
    request.terms = vec!["Hund".into(), "Katze".into()];
    let translations = translator.translate_requests(&[request.clone()]).unwrap();
    let text = translations[0].text();
    assert!(
        text.starts_with("die Katze") && words(text).contains(&"Hund"),
        "{text}"
    );
    assert!(!words(text).contains(&"Hunde") && translations[0].missing_terms.is_empty());
    request.terms.push("die Hunde".into());
    let error = translator.translate_requests(&[request]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1: the term has `Hunde`, which is forbidden"
    );
}

#[test]
fn terms_are_refused_where_translations_are_drawn() {
    let fixture = Fixture::joint();
    let decode = sampling(&fixture.decode);
    let mut request = Request::new(6, "a dog runs");
    request.terms = vec!["Hund".into()];
    let error = translator(&fixture, &decode).translate_requests(&[request]);
    let error = error.unwrap_err().to_string();
    assert_eq!(
        error,
        "line 7: required terms need a search, but this is sampling"
    );
}
