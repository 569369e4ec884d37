//! What a server asks of models: `attend_infer::serve`, without HTTP.

use std::path::Path;
use std::thread;

use attend_infer::document::{Format, Kind};
use attend_infer::serve::{
    AlternativesAsk, Answer, Ask, Catalogue, Choice, LanguagePair, Limits, Served, Texts,
};
use attend_infer::{DecodeConfig, Ensemble, Error, Models, Translator};
use attend_model::{AttentionChoice, Kernels, Packing};
use candle_core::Device;
use serde_json::{Value, json};

use crate::fixture::{Fixture, LINES};

fn open(fixture: &Fixture) -> Models {
    let folder = tempfile::tempdir().unwrap();
    fixture.write(folder.path());
    let (device, kernels) = (Device::Cpu, Kernels::Fused);
    Ensemble::open(&[folder.path()], &device, kernels, Packing::Float).unwrap()
}

fn served(fixture: &Fixture, name: &str, source: &str, target: &str) -> Served {
    let languages = LanguagePair {
        source: source.into(),
        target: target.into(),
    };
    Served::new(Path::new(name), languages, open(fixture), Kernels::Fused).unwrap()
}

fn catalogue() -> Catalogue {
    let models = vec![
        served(&Fixture::joint(), "runs/a", "en", "de"),
        served(&Fixture::separate(), "other/a", "en", "de"),
        served(&Fixture::joint(), "runs/back", "de", "en"),
    ];
    Catalogue::new(models, Limits::default())
}

/// A request, from JSON as a client writes it.
fn ask(json: Value) -> Ask {
    serde_json::from_value(json).unwrap()
}

fn texts(answer: &Answer) -> Vec<&str> {
    answer.translations.iter().map(|it| &*it.text).collect()
}

#[test]
fn many_requests_at_once_get_what_the_translator_gives() {
    let catalogue = catalogue();
    let models = open(&Fixture::joint());
    for (decode, options) in [
        (
            DecodeConfig {
                beam: 1,
                ..models.decode.clone()
            },
            json!({"beam": 1}),
        ),
        (
            DecodeConfig {
                beam: 5,
                ..models.decode.clone()
            },
            json!({"beam": 5}),
        ),
        (
            DecodeConfig {
                sampling: true,
                seed: 3,
                ..models.decode.clone()
            },
            json!({"sampling": true, "seed": 3}),
        ),
    ] {
        let (ensemble, tokenizers) = (&models.ensemble, &models.tokenizers);
        let translator = Translator::new(ensemble, tokenizers, &decode, Kernels::Fused);
        let expected = translator.translate(&LINES).unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let ask = ask(json!({"text": LINES, "decode": options, "sentences": false}));
                    let answer = catalogue.translate(&ask, &()).unwrap();
                    for (ours, theirs) in answer.translations.iter().zip(&expected) {
                        assert_eq!(ours.text.trim(), theirs.text());
                        for sentence in &ours.sentences {
                            assert_eq!(sentence.score, theirs.hypotheses[0].score);
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn lines_and_line_breaks_of_a_text_are_kept() {
    let catalogue = catalogue();
    let lines = ["a dog runs", "", "the cat sees a house", "dogs"];
    let each = catalogue
        .translate(&ask(json!({"text": lines})), &())
        .unwrap();
    let each = texts(&each);
    let whole = catalogue
        .translate(&ask(json!({"text": lines.join("\r\n")})), &())
        .unwrap();
    assert_eq!(texts(&whole), [each.join("\r\n")]);
    let places = whole.translations[0].sentences.iter().map(|it| it.line);
    assert_eq!(places.collect::<Vec<_>>(), [0, 2, 3]);
    let empty = catalogue.translate(&ask(json!({"text": ""})), &()).unwrap();
    assert_eq!(texts(&empty), [""]);
    // One character of 1,200 code points cannot be split, so that only its beginning is translated.
    let giant = format!("a dog\ne{}", "\u{301}".repeat(1200));
    let giant = catalogue
        .translate(&ask(json!({"text": giant})), &())
        .unwrap();
    assert!(giant.translations[0].truncated && !whole.translations[0].truncated);
    assert!(empty.translations[0].sentences.is_empty());
    let none = catalogue.translate(&ask(json!({"text": []})), &()).unwrap();
    assert!(none.translations.is_empty());
}

#[test]
fn a_model_is_chosen_by_name_or_by_languages() {
    let catalogue = catalogue();
    let names: Vec<&str> = catalogue
        .models()
        .iter()
        .map(|model| &*model.name)
        .collect();
    assert_eq!(names, ["a", "a-2", "back"]);
    assert_eq!(
        catalogue.languages(),
        [("en", vec!["de"]), ("de", vec!["en"])]
    );
    let choose = |json: Value| {
        let Ask {
            model,
            source,
            target,
            ..
        } = ask(json);
        let choice = Choice {
            model,
            source,
            target,
        };
        let text = "der Hund sieht die kleine Katze im Haus";
        catalogue
            .choose(&choice, text)
            .map(|model| model.name.clone())
    };
    for (json, name) in [
        (json!({"text": ""}), "a"),
        (json!({"text": "", "model": "a-2"}), "a-2"),
        (json!({"text": "", "source": "DE"}), "back"),
        (json!({"text": "", "source": "en-US", "target": "de"}), "a"),
        (json!({"text": "", "source": "auto"}), "back"),
        (
            json!({"text": "", "source": "auto", "target": "en"}),
            "back",
        ),
        (
            json!({"text": "", "source": "en", "target": "de", "model": "a-2"}),
            "a-2",
        ),
    ] {
        assert_eq!(choose(json.clone()).unwrap(), name, "{json}");
    }
    for json in [
        json!({"text": "", "model": "b"}),
        json!({"text": "", "source": "fr"}),
        json!({"text": "", "model": "back", "target": "de"}),
    ] {
        let error = choose(json.clone()).unwrap_err();
        assert!(error.hint().unwrap().contains("back (de to en)"), "{json}");
    }
}

#[test]
fn attention_has_a_weight_for_every_pair_of_tokens_and_tokens_make_up_the_text() {
    let catalogue = catalogue();
    let text = "the cat sees a small house\na dog runs";
    let answer = catalogue
        .translate(&ask(json!({"text": text, "attention": true})), &())
        .unwrap();
    let sentences = &answer.translations[0].sentences;
    assert!(!sentences.is_empty());
    for sentence in sentences {
        let attention = sentence.attention.as_ref().unwrap().as_ref().unwrap();
        for (tokens, text) in [
            (&attention.source, &sentence.source),
            (&attention.target, &sentence.text),
        ] {
            let (end, rest) = tokens.split_last().unwrap();
            assert_eq!((&**end, rest.concat().trim()), ("</s>", &**text));
        }
        assert_eq!((attention.layers, attention.heads), (2, 2));
        for rows in attention.weights.iter().flatten() {
            assert_eq!(rows.len(), attention.target.len());
            for row in rows {
                assert_eq!(row.len(), attention.source.len());
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-2, "{row:?}");
            }
        }
    }
    let plain = served(
        &Fixture::recurrent(AttentionChoice::None),
        "plain",
        "en",
        "de",
    );
    assert_eq!(plain.attention(), None);
    let plain = Catalogue::new(vec![plain], Limits::default());
    let answer = plain
        .translate(&ask(json!({"text": "a dog", "attention": true})), &())
        .unwrap();
    assert_eq!(answer.translations[0].sentences[0].attention, Some(None));
    let aligned = plain.translate(&ask(json!({"text": "a dog", "alignments": true})), &());
    assert!(matches!(aligned, Err(Error::NotAligned)));
}

#[test]
fn what_is_asked_for_is_in_the_answer_and_nothing_else() {
    let catalogue = catalogue();
    let text = "a dog runs\nthe small cat sees 42 dogs";
    let plain = catalogue
        .translate(&ask(json!({"text": text})), &())
        .unwrap();
    let json = serde_json::to_value(&plain).unwrap();
    let sentence = &json["translations"][0]["sentences"][0];
    assert!(json["translations"][0].get("alignments").is_none());
    assert!(sentence.get("n_best").is_none() && sentence.get("attention").is_none());

    let all = json!({
        "text": text, "n_best": 3, "alignments": true, "forbid": ["Hund"],
        "protect": ["numbers"], "glossary": {"cat": "Katze"}
    });
    let answer = catalogue.translate(&ask(all), &()).unwrap();
    let translation = &answer.translations[0];
    assert!(translation.text.contains("42") && translation.text.contains("Katze"));
    assert!(translation.missing_terms.is_empty());
    for sentence in &translation.sentences {
        let best = sentence.n_best.as_ref().unwrap();
        assert!(!best.is_empty() && best.len() <= 3);
        assert_eq!(
            (&best[0].text, best[0].score),
            (&sentence.text, sentence.score)
        );
    }
    let words = |text: &str| text.split_whitespace().count();
    let links = translation.alignments.as_ref().unwrap();
    assert!(!links.is_empty() && links.is_sorted());
    for (source, target) in links {
        assert!(*source < words(text) && *target < words(&translation.text));
        // Words of different lines do not stand for each other.
        let line = words(translation.text.lines().next().unwrap());
        assert_eq!(*source < 3, *target < line);
    }
    let html = Ask {
        format: Format::Html,
        protect: vec![Kind::Urls],
        ..ask(json!({"text": "<b>a dog</b> runs"}))
    };
    let html = catalogue.translate(&html, &()).unwrap();
    assert!(texts(&html)[0].contains("</b>"), "{html:?}");
}

#[test]
fn a_prefix_is_kept_and_alternatives_continue_it() {
    let catalogue = catalogue();
    let prefixed = json!({"text": "a dog runs", "prefix": "die Katze"});
    let answer = catalogue.translate(&ask(prefixed), &()).unwrap();
    assert!(texts(&answer)[0].starts_with("die Katze"));
    let blank = json!({"text": ["a dog", "dogs"], "prefix": " "});
    let blank = catalogue.translate(&ask(blank), &()).unwrap();
    assert_eq!(blank.translations.len(), 2);
    for prefix in ["", "die Katze"] {
        let ask: AlternativesAsk =
            serde_json::from_value(json!({"text": "a dog runs", "prefix": prefix, "count": 6}))
                .unwrap();
        let answer = catalogue.alternatives(&ask, &()).unwrap();
        let found = &answer.alternatives;
        assert!(found.len() > 1 && found.len() <= 6, "{found:?}");
        assert!(found.is_sorted_by(|a, b| a.probability >= b.probability));
        let total: f32 = found.iter().map(|it| it.probability).sum();
        assert!(total > 0.0 && total < 1.001);
        for (i, alternative) in found.iter().enumerate() {
            assert!(alternative.text.starts_with(prefix), "{alternative:?}");
            let rest = alternative.text[prefix.len()..].trim_start();
            assert!(rest.starts_with(&alternative.word), "{alternative:?}");
            assert!(
                found[..i]
                    .iter()
                    .all(|other| other.word != alternative.word)
            );
        }
        // The likeliest continuation is that of greedy search.
        let greedy =
            self::ask(json!({"text": "a dog runs", "prefix": prefix, "decode": {"beam": 1}}));
        let greedy = catalogue.translate(&greedy, &()).unwrap();
        assert_eq!(found[0].text, texts(&greedy)[0]);
    }
}

#[test]
fn what_cannot_be_done_is_refused_with_a_hint() {
    let catalogue = catalogue();
    for (json, message) in [
        (
            json!({"text": "a", "n_best": 5}),
            "n_best: is 5, but the beam is 4",
        ),
        (json!({"text": "a", "n_best": 0}), "n_best: is 0"),
        (
            json!({"text": "a", "decode": {"beam": 17}}),
            "decode.beam: 17 is more than",
        ),
        (
            json!({"text": "a", "decode": {"max_length_ratio": 4.0}}),
            "decode.max_length_ratio: is 4",
        ),
        (
            json!({"text": "a", "decode": {"repetition_penalty": 1e-38}}),
            "decode.repetition_penalty: is",
        ),
        (
            json!({"text": "a 5", "prefix": "b", "protect": ["numbers"]}),
            "prefix: what is put back could change it",
        ),
        (
            json!({"text": "a", "decode": {"max_length": 31}}),
            "decode.max_length: 31",
        ),
        (
            json!({"text": "a", "decode": {"beem": 2}}),
            "decode: unknown field `beem`",
        ),
        (
            json!({"text": "a", "decode": {"beam": "two"}}),
            "decode: invalid type",
        ),
        (
            json!({"text": "a", "decode": {"batch_tokens": 1}}),
            "batch_tokens is set by the server",
        ),
        (json!({"text": "a", "decode": {"beam": 0}}), "decode.beam"),
        (
            json!({"text": "a\nb", "prefix": "c"}),
            "prefix: there is more than one line",
        ),
        (
            json!({"text": ["a", "b"], "prefix": "c"}),
            "prefix: there is more than one line",
        ),
        (
            json!({"text": vec!["a"; 129]}),
            "texts: 129 is more than this server's limit of 128",
        ),
        (
            json!({"text": "ä".repeat(20_001)}),
            "characters: 20001 is more than",
        ),
        (
            json!({"text": "a", "glossary": {"": "b"}}),
            "glossary, entry 1: the term is empty",
        ),
    ] {
        let error = catalogue.translate(&ask(json.clone()), &()).unwrap_err();
        assert!(error.to_string().contains(message), "{json}: {error}");
        assert!(error.hint().is_some(), "{json}: {error}");
    }
    for (json, message) in [
        (json!({"text": 1}), "expected a string or a list of strings"),
        (json!({"text": "a", "beam": 1}), "unknown field `beam`"),
        (json!({}), "missing field `text`"),
        (
            json!({"text": "a", "protect": ["names"]}),
            "unknown variant `names`",
        ),
    ] {
        let error = serde_json::from_value::<Ask>(json).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    let many = Texts::Many(vec!["ab".into(), "c".into()]);
    assert_eq!((many.as_slice().len(), many.characters()), (2, 3));
}
