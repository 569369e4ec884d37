use attend_infer::{DecodeConfig, Translation, Translator, evaluate};
use attend_model::Path;

use crate::fixture::{Fixture, LINES};

fn translate(
    fixture: &Fixture,
    decode: &DecodeConfig,
    path: Path,
    lines: &[&str],
) -> Vec<Translation> {
    let translator = Translator::new(&*fixture.model, &fixture.tokenizers, decode, path);
    translator.translate(lines).unwrap()
}

fn assert_same(a: &Translation, b: &Translation) {
    assert_eq!(a.hypotheses.len(), b.hypotheses.len());
    for (a, b) in a.hypotheses.iter().zip(&b.hypotheses) {
        assert_eq!((&a.tokens, &a.text), (&b.tokens, &b.text));
        assert!((a.score - b.score).abs() < 1e-5, "{a:?} and {b:?}");
    }
}

#[test]
fn every_line_has_one_translation_in_its_place_whatever_the_batches() {
    for fixture in [Fixture::joint(), Fixture::separate()] {
        for path in Path::ALL {
            let whole = translate(&fixture, &fixture.decode, path, &LINES);
            assert_eq!(whole.len(), LINES.len());
            for batch_tokens in [1, 24, 60] {
                let decode = DecodeConfig {
                    batch_tokens,
                    ..fixture.decode.clone()
                };
                let parts = translate(&fixture, &decode, path, &LINES);
                for (line, (a, b)) in LINES.iter().zip(whole.iter().zip(&parts)) {
                    assert_same(a, b);
                    assert_same(a, &translate(&fixture, &decode, path, &[line])[0]);
                }
            }
        }
    }
}

#[test]
fn a_line_without_words_has_an_empty_translation() {
    let fixture = Fixture::joint();
    let translations = translate(&fixture, &fixture.decode, Path::Fused, &LINES);
    for (line, translation) in LINES.iter().zip(&translations) {
        match line.trim().is_empty() {
            true => {
                assert_eq!(translation.text(), "");
                assert_eq!(translation.hypotheses.len(), 1);
                assert!(translation.hypotheses[0].tokens.is_empty());
            }
            false => assert_eq!(translation.hypotheses.len(), fixture.decode.beam),
        }
    }
    assert!(translate(&fixture, &fixture.decode, Path::Fused, &[]).is_empty());
}

#[test]
fn hypotheses_are_sorted_end_in_eos_and_keep_to_their_limit() {
    let fixture = Fixture::joint();
    let eos = fixture.tokenizers.target().eos();
    for path in Path::ALL {
        for translation in translate(&fixture, &fixture.decode, path, &LINES) {
            let hypotheses = &translation.hypotheses;
            assert!(hypotheses.is_sorted_by(|a, b| a.score >= b.score));
            for hypothesis in hypotheses.iter().filter(|h| !h.tokens.is_empty()) {
                assert!(hypothesis.tokens.len() <= fixture.decode.max_length);
                assert_eq!(hypothesis.tokens.last(), Some(&eos));
                assert!(!hypothesis.text.contains(['\n', '\r']));
            }
        }
    }
}

#[test]
fn a_line_is_never_too_long_to_translate() {
    let fixture = Fixture::joint();
    let long = "the dog sees the cat ".repeat(300);
    let translations = translate(&fixture, &fixture.decode, Path::Fused, &["a", &long, "b"]);
    assert_eq!(translations.len(), 3);
    assert!(!translations[1].hypotheses[0].tokens.is_empty());
}

#[test]
fn evaluating_scores_the_best_translations() {
    let fixture = Fixture::joint();
    let translations = translate(&fixture, &fixture.decode, Path::Fused, &LINES);
    let perfect: Vec<&str> = translations.iter().map(Translation::text).collect();
    let (model, tokenizers) = (&*fixture.model, &fixture.tokenizers);
    let translator = Translator::new(model, tokenizers, &fixture.decode, Path::Fused);
    let evaluation = evaluate(&translator, &LINES, &perfect).unwrap();
    assert_eq!(evaluation.hypotheses, perfect);
    assert!((evaluation.chrf.score - 100.0).abs() < 1e-9);
    assert!((evaluation.bleu.score - 100.0).abs() < 1e-9);
    assert!(evaluate(&translator, &LINES, &perfect[1..]).is_err());
}
