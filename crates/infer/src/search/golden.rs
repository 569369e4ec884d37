//! What Hugging Face's `generate` finds, from files that `scripts/golden/transformer.py` wrote, and
//! what else must hold of every search.

use std::path::PathBuf;

use attend_model::{ModelConfig, Packed, Pass, Path, Seq2Seq, TransformerConfig, Vocabularies};
use candle_core::{Device, Tensor};
use serde::Deserialize;

use super::{Beam, Found, Greedy, Last, Rules, search};
use crate::{Error, LengthMeasure};

#[derive(Deserialize)]
struct Golden {
    eos: u32,
    pad: u32,
    max_new_tokens: usize,
    sources: Vec<Vec<u32>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    num_beams: usize,
    length_penalty: f32,
    forced_eos: bool,
    results: Vec<Vec<Hypothesis>>,
}

#[derive(Deserialize)]
struct Hypothesis {
    tokens: Vec<u32>,
    score: f64,
}

/// The model whose translations are in `beam.json`: as said in `post_norm.json`.
fn model() -> Box<dyn Seq2Seq> {
    let config = ModelConfig::Transformer(TransformerConfig {
        encoder_layers: 2,
        decoder_layers: 3,
        d_model: 24,
        heads: 4,
        d_ff: 40,
        ..TransformerConfig::default()
    });
    let vocabularies = Vocabularies {
        source: 37,
        target: 37,
        joint: true,
    };
    let model = config.build(vocabularies, 1, &Device::Cpu).unwrap();
    let file = "../model/tests/golden/post_norm.safetensors";
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
    let tensors = candle_core::safetensors::load(file, &Device::Cpu).unwrap();
    let params = tensors.into_iter().filter_map(|(name, tensor)| {
        let name = name.strip_prefix("param.")?;
        Some((name.to_string(), tensor))
    });
    model.params().load(&params.collect()).unwrap();
    model
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../tests/golden/beam.json")).unwrap()
}

fn rules(limit: usize) -> Rules {
    Rules {
        eos: 0,
        length_penalty: 1.0,
        length_measure: LengthMeasure::Tokens,
        limit,
        last: Last::Eos,
    }
}

fn greedy(model: &dyn Seq2Seq, sources: &[Vec<u32>], rules: Rules, path: Path) -> Vec<Vec<Found>> {
    let strategies = sources.iter().map(|_| Greedy::new(rules)).collect();
    let packed = Packed::of_sentences(sources);
    search(model, &packed, strategies, &Pass::eval(path)).unwrap()
}

fn beam(
    model: &dyn Seq2Seq,
    sources: &[Vec<u32>],
    width: usize,
    rules: Rules,
    path: Path,
) -> Vec<Vec<Found>> {
    let strategies = sources.iter().map(|_| Beam::new(width, rules)).collect();
    let packed = Packed::of_sentences(sources);
    search(model, &packed, strategies, &Pass::eval(path)).unwrap()
}

/// Sentences of up to 16 tokens, `</s>` included, from a linear congruential generator.
fn sentences(count: usize) -> Vec<Vec<u32>> {
    let mut state = 1u64;
    let mut draw = move |n: u32| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as u32 % n
    };
    (0..count)
        .map(|_| {
            let words = draw(16);
            let mut ids: Vec<u32> = (0..words).map(|_| 1 + draw(35)).collect();
            ids.push(0);
            ids
        })
        .collect()
}

fn assert_close(ours: &[Found], theirs: &[Found], tolerance: f64) {
    let tokens = |found: &[Found]| found.iter().map(|f| f.tokens.clone()).collect::<Vec<_>>();
    assert_eq!(tokens(ours), tokens(theirs));
    for (ours, theirs) in ours.iter().zip(theirs) {
        let error = (ours.score - theirs.score).abs();
        assert!(error < tolerance, "{ours:?} and {theirs:?}");
    }
}

#[test]
fn every_search_finds_what_hugging_face_finds() {
    let (model, golden) = (model(), golden());
    assert_eq!(golden.pad, model.start_token());
    assert_eq!(golden.cases.len(), 32);
    for path in Path::ALL {
        for case in &golden.cases {
            let rules = Rules {
                eos: golden.eos,
                length_penalty: case.length_penalty,
                length_measure: LengthMeasure::Tokens,
                limit: golden.max_new_tokens,
                last: match case.forced_eos {
                    true => Last::Eos,
                    false => Last::Any,
                },
            };
            let mut searches = vec![beam(&*model, &golden.sources, case.num_beams, rules, path)];
            if case.num_beams == 1 {
                searches.push(greedy(&*model, &golden.sources, rules, path));
            }
            for ours in searches {
                assert_eq!(ours.len(), case.results.len());
                for (ours, theirs) in ours.iter().zip(&case.results) {
                    let theirs = theirs.iter().map(|theirs| Found {
                        tokens: theirs.tokens.clone(),
                        score: theirs.score,
                    });
                    assert_close(ours, &theirs.collect::<Vec<_>>(), 2e-5);
                }
            }
        }
    }
}

#[test]
fn a_beam_of_one_is_greedy_search() {
    let (model, sentences) = (model(), sentences(200));
    for path in Path::ALL {
        for limit in [1, 2, 7, 30] {
            let greedy = greedy(&*model, &sentences, rules(limit), path);
            let beam = beam(&*model, &sentences, 1, rules(limit), path);
            for (greedy, beam) in greedy.iter().zip(&beam) {
                assert_eq!(greedy, beam);
            }
        }
    }
}

#[test]
fn what_a_sentence_becomes_does_not_depend_on_its_batch_mates() {
    let (model, sentences) = (model(), sentences(40));
    for path in Path::ALL {
        let together = beam(&*model, &sentences, 3, rules(20), path);
        let backwards: Vec<Vec<u32>> = sentences.iter().rev().cloned().collect();
        let backwards = beam(&*model, &backwards, 3, rules(20), path);
        for (i, sentence) in sentences.iter().enumerate() {
            let alone = beam(&*model, std::slice::from_ref(sentence), 3, rules(20), path);
            assert_close(&together[i], &alone[0], 1e-5);
            assert_close(&backwards[sentences.len() - 1 - i], &alone[0], 1e-5);
        }
    }
}

#[test]
fn each_sentence_has_its_own_limit_and_ends_there() {
    let (model, sentences) = (model(), sentences(30));
    let limit = |i: usize| 1 + i % 9;
    let strategies = (0..30).map(|i| Beam::new(4, rules(limit(i)))).collect();
    let packed = Packed::of_sentences(&sentences);
    let found = search(&*model, &packed, strategies, &Pass::eval(Path::Fused)).unwrap();
    for (i, found) in found.iter().enumerate() {
        assert!(!found.is_empty() && found.is_sorted_by(|a, b| a.score >= b.score));
        for Found { tokens, .. } in found {
            assert!(tokens.len() <= limit(i));
            assert_eq!(tokens.iter().position(|&t| t == 0), Some(tokens.len() - 1));
        }
    }
}

#[test]
fn a_beam_wider_than_the_vocabulary_still_finds_something() {
    let (model, sentences) = (model(), sentences(5));
    for found in beam(&*model, &sentences, 100, rules(4), Path::Fused) {
        assert_eq!(found.len(), 100);
    }
}

#[test]
fn a_model_with_broken_weights_is_an_error_and_not_an_endless_search() {
    let (model, sentences) = (model(), sentences(3));
    let weight = model.params().get("model.shared.weight").unwrap();
    for broken in [f32::NAN, f32::INFINITY] {
        let values = Tensor::full(broken, weight.value().shape(), &Device::Cpu).unwrap();
        weight.set(&values).unwrap();
        for path in Path::ALL {
            let strategies = (0..3).map(|_| Beam::new(4, rules(20))).collect();
            let packed = Packed::of_sentences(&sentences);
            let found = search(&*model, &packed, strategies, &Pass::eval(path));
            assert!(matches!(found, Err(Error::NotANumber)), "{found:?}");
        }
    }
}
