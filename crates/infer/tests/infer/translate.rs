use attend_infer::{DecodeConfig, Translation, Translator, evaluate};
use attend_model::Kernels;

use crate::fixture::{Fixture, LINES};

fn translate(
    fixture: &Fixture,
    decode: &DecodeConfig,
    kernels: Kernels,
    lines: &[&str],
) -> Vec<Translation> {
    let translator = Translator::new(&*fixture.model, &fixture.tokenizers, decode, kernels);
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
fn translations_are_in_order_and_do_not_depend_on_batching() {
    for fixture in [Fixture::joint(), Fixture::separate()] {
        for kernels in Kernels::ALL {
            let whole = translate(&fixture, &fixture.decode, kernels, &LINES);
            assert_eq!(whole.len(), LINES.len());
            for batch_tokens in [1, 24, 60] {
                let decode = DecodeConfig {
                    batch_tokens,
                    ..fixture.decode.clone()
                };
                let parts = translate(&fixture, &decode, kernels, &LINES);
                for (line, (a, b)) in LINES.iter().zip(whole.iter().zip(&parts)) {
                    assert_same(a, b);
                    assert_same(a, &translate(&fixture, &decode, kernels, &[line])[0]);
                }
            }
        }
    }
}

#[test]
fn a_line_without_words_has_an_empty_translation() {
    let fixture = Fixture::joint();
    let translations = translate(&fixture, &fixture.decode, Kernels::Fused, &LINES);
    for (line, translation) in LINES.iter().zip(&translations) {
        if line.trim().is_empty() {
            assert_eq!(translation.text(), "");
            assert_eq!(translation.hypotheses.len(), 1);
            assert!(translation.hypotheses[0].tokens.is_empty());
        } else {
            assert_eq!(translation.hypotheses.len(), fixture.decode.beam)
        }
    }
    assert!(translate(&fixture, &fixture.decode, Kernels::Fused, &[]).is_empty());
}

#[test]
fn hypotheses_are_sorted_end_in_eos_and_respect_max_length() {
    let fixture = Fixture::joint();
    let eos = fixture.tokenizers.target().eos();
    for kernels in Kernels::ALL {
        for translation in translate(&fixture, &fixture.decode, kernels, &LINES) {
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
fn a_line_of_any_length_is_translated() {
    let fixture = Fixture::joint();
    let long = "the dog sees the cat ".repeat(300);
    let translations = translate(
        &fixture,
        &fixture.decode,
        Kernels::Fused,
        &["a", &long, "b"],
    );
    assert_eq!(translations.len(), 3);
    assert!(!translations[1].hypotheses[0].tokens.is_empty());
}

#[test]
fn evaluate_scores_the_best_translations() {
    let fixture = Fixture::joint();
    let translations = translate(&fixture, &fixture.decode, Kernels::Fused, &LINES);
    let perfect: Vec<&str> = translations.iter().map(Translation::text).collect();
    let (model, tokenizers) = (&*fixture.model, &fixture.tokenizers);
    let translator = Translator::new(model, tokenizers, &fixture.decode, Kernels::Fused);
    let evaluation = evaluate(&translator, &LINES, &perfect).unwrap();
    assert_eq!(evaluation.hypotheses, perfect);
    assert!((evaluation.chrf.score - 100.0).abs() < 1e-9);
    assert!((evaluation.bleu.score - 100.0).abs() < 1e-9);
    assert!(evaluate(&translator, &LINES, &perfect[1..]).is_err());
}
