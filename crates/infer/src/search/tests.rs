//! What Hugging Face's `generate` finds, from files that `scripts/golden/transformer.py` wrote, and other properties of every search.

mod coverage;
mod sampling;

use std::path::PathBuf;

use attend_batch::Packed;
use attend_model::{Kernels, ModelConfig, Pass, Seq2Seq, Step, TransformerConfig, Vocabularies};
use candle_core::{Device, Tensor};
use serde::Deserialize;

use super::{
    Beam, Criteria, EndAtLimit, Found, Greedy, Group, Listed, MinLength, NoRepeatNgram,
    RepetitionPenalty, Rule, Search, Strategy, search,
};
use crate::{EarlyStopping, Ensemble, Error, LengthMeasure};

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
pub(crate) fn model() -> Box<dyn Seq2Seq> {
    let config = ModelConfig::Transformer(TransformerConfig {
        encoder_layers: 2,
        decoder_layers: 3,
        d_model: 24,
        heads: 4,
        d_ff: 40,
        ..TransformerConfig::default()
    });
    let vocabularies = Vocabularies {
        source: Some(37),
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
    model.weights().load(&params.collect()).unwrap();
    model
}

/// The results of Hugging Face with this `early_stopping`.
fn golden(early_stopping: EarlyStopping) -> Golden {
    serde_json::from_str(match early_stopping {
        EarlyStopping::Yes => include_str!("../../tests/golden/beam_early.json"),
        EarlyStopping::No => include_str!("../../tests/golden/beam.json"),
        EarlyStopping::Never => include_str!("../../tests/golden/beam_never.json"),
    })
    .unwrap()
}

pub(crate) fn criteria(limit: usize) -> Criteria {
    Criteria {
        eos: 0,
        length_penalty: 1.0,
        length_measure: LengthMeasure::Tokens,
        early_stopping: EarlyStopping::No,
        coverage_penalty: 0.0,
        limit,
    }
}

/// Whether the last token that the limit allows must be `</s>`.
#[derive(Clone, Copy)]
enum Last {
    Eos,
    /// Hugging Face's default.
    Any,
}

impl Last {
    fn rules(self, criteria: Criteria) -> Vec<Box<dyn Rule>> {
        let Criteria { eos, limit, .. } = criteria;
        match self {
            Last::Eos => vec![Box::new(EndAtLimit { eos, limit })],
            Last::Any => Vec::new(),
        }
    }
}

/// Translates every sentence by the strategy that `strategy` makes.
fn run(
    model: &dyn Step,
    sources: &[Vec<u32>],
    strategy: impl Fn() -> Box<dyn Strategy>,
    rules: impl Fn() -> Vec<Box<dyn Rule>>,
    kernels: Kernels,
) -> crate::Result<Vec<Vec<Found>>> {
    let searches = sources.iter().map(|_| Search {
        rules: rules(),
        strategy: strategy(),
        cost: 1,
    });
    search_all(model, sources, searches.collect(), &Pass::eval(kernels))
}

/// Translates sentences as one group.
pub(crate) fn search_all(
    model: &dyn Step,
    sources: &[Vec<u32>],
    searches: Vec<Search>,
    pass: &Pass,
) -> crate::Result<Vec<Vec<Found>>> {
    let group = Group {
        source: Packed::of_sentences(sources).into(),
        searches: searches.into_iter().enumerate().collect(),
    };
    collect(sources.len(), |done| {
        search(model, &mut Listed::new([Ok(group)], &(), done), 0, pass)
    })
}

/// What a search gives, by number.
fn collect(
    count: usize,
    run: impl FnOnce(&mut dyn FnMut(usize, Vec<Found>) -> crate::Result<()>) -> crate::Result<()>,
) -> crate::Result<Vec<Vec<Found>>> {
    let mut all = vec![Vec::new(); count];
    run(&mut |number, found| {
        assert!(all[number].is_empty(), "sentence {number} is done twice");
        all[number] = found;
        Ok(())
    })?;
    Ok(all)
}

fn greedy(
    model: &dyn Step,
    sources: &[Vec<u32>],
    criteria: Criteria,
    last: Last,
    kernels: Kernels,
) -> Vec<Vec<Found>> {
    let strategy = || -> Box<dyn Strategy> { Box::new(Greedy::new(criteria)) };
    run(model, sources, strategy, || last.rules(criteria), kernels).unwrap()
}

fn beam(
    model: &dyn Step,
    sources: &[Vec<u32>],
    width: usize,
    criteria: Criteria,
    last: Last,
    kernels: Kernels,
) -> Vec<Vec<Found>> {
    let strategy = || -> Box<dyn Strategy> { Box::new(Beam::new(width, criteria)) };
    run(model, sources, strategy, || last.rules(criteria), kernels).unwrap()
}

/// Sentences of up to 16 tokens, `</s>` included, from a linear congruential generator.
pub(crate) fn sentences(count: usize) -> Vec<Vec<u32>> {
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
        let tolerance = tolerance * theirs.score.abs().max(1.0);
        assert!(error < tolerance, "{ours:?} and {theirs:?}");
    }
}

/// Compares every search of a golden file.
fn check_golden(early_stopping: EarlyStopping, cases: usize) {
    let (model, golden) = (model(), golden(early_stopping));
    assert_eq!(golden.pad, model.start_token());
    assert_eq!(golden.cases.len(), cases);
    for kernels in Kernels::ALL {
        for case in &golden.cases {
            let criteria = Criteria {
                eos: golden.eos,
                length_penalty: case.length_penalty,
                length_measure: LengthMeasure::Tokens,
                early_stopping,
                coverage_penalty: 0.0,
                limit: golden.max_new_tokens,
            };
            let last = if case.forced_eos {
                Last::Eos
            } else {
                Last::Any
            };
            let (width, sources) = (case.num_beams, &golden.sources);
            let mut searches = vec![beam(&*model, sources, width, criteria, last, kernels)];
            if case.num_beams == 1 {
                searches.push(greedy(&*model, sources, criteria, last, kernels));
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
fn every_search_finds_what_hugging_face_finds() {
    check_golden(EarlyStopping::No, 32);
}

#[test]
fn a_search_that_stops_early_finds_what_hugging_face_finds() {
    check_golden(EarlyStopping::Yes, 12);
}

#[test]
fn a_search_that_never_stops_early_finds_what_hugging_face_finds() {
    check_golden(EarlyStopping::Never, 18);
}

#[test]
fn stopping_early_ends_with_a_whole_beam_and_never_with_a_better_translation() {
    let (model, sentences) = (model(), sentences(60));
    let search = |early_stopping| {
        let criteria = Criteria {
            early_stopping,
            length_penalty: 2.0,
            ..criteria(20)
        };
        beam(&*model, &sentences, 4, criteria, Last::Eos, Kernels::Fused)
    };
    let (patient, early) = (search(EarlyStopping::No), search(EarlyStopping::Yes));
    let mut others = 0;
    for (patient, early) in patient.iter().zip(&early) {
        assert_eq!(early.len(), 4);
        assert!(early[0].score <= patient[0].score, "{early:?} {patient:?}");
        if early[0] != patient[0] {
            assert!(early[0].tokens.len() < patient[0].tokens.len());
            others += 1;
        }
    }
    assert!(others > 0, "no search stopped early");
}

#[test]
fn a_beam_of_one_is_greedy_search() {
    let (model, sentences) = (model(), sentences(200));
    for kernels in Kernels::ALL {
        for limit in [1, 2, 7, 30] {
            let greedy = greedy(&*model, &sentences, criteria(limit), Last::Eos, kernels);
            let beam = beam(&*model, &sentences, 1, criteria(limit), Last::Eos, kernels);
            for (greedy, beam) in greedy.iter().zip(&beam) {
                assert_eq!(greedy, beam);
            }
        }
    }
}

/// Every rule with a list of rules of its own, and all of them together, with `</s>` at the limit last.
fn rule_sets(limit: usize) -> Vec<Vec<Box<dyn Rule>>> {
    let makers: [fn() -> Box<dyn Rule>; 3] = [
        || Box::new(RepetitionPenalty { penalty: 1.5 }),
        || Box::new(NoRepeatNgram { n: 2 }),
        || Box::new(MinLength { eos: 0, least: 6 }),
    ];
    let mut sets: Vec<Vec<Box<dyn Rule>>> = makers.iter().map(|make| vec![make()]).collect();
    sets.push(makers.iter().map(|make| make()).collect());
    for set in &mut sets {
        set.push(Box::new(EndAtLimit { eos: 0, limit }));
    }
    sets
}

#[test]
fn a_beam_of_one_is_greedy_search_with_every_rule() {
    let (model, sentences) = (model(), sentences(60));
    for set in 0..rule_sets(15).len() {
        let rules = || rule_sets(15).swap_remove(set);
        let one = || -> Box<dyn Strategy> { Box::new(Beam::new(1, criteria(15))) };
        let greedy = || -> Box<dyn Strategy> { Box::new(Greedy::new(criteria(15))) };
        let one = run(&*model, &sentences, one, rules, Kernels::Fused).unwrap();
        let greedy = run(&*model, &sentences, greedy, rules, Kernels::Fused).unwrap();
        assert_eq!(one, greedy);
    }
}

#[test]
fn no_ngram_comes_twice_and_no_translation_ends_before_its_minimum() {
    let (model, sentences) = (model(), sentences(60));
    let least = 9;
    for limit in [6, 25] {
        let rules = || -> Vec<Box<dyn Rule>> {
            vec![
                Box::new(NoRepeatNgram { n: 2 }),
                Box::new(MinLength { eos: 0, least }),
                Box::new(EndAtLimit { eos: 0, limit }),
            ]
        };
        let free = || Last::Eos.rules(criteria(limit));
        let strategy = || -> Box<dyn Strategy> { Box::new(Beam::new(4, criteria(limit))) };
        let found = run(&*model, &sentences, strategy, rules, Kernels::Fused).unwrap();
        let without = run(&*model, &sentences, strategy, free, Kernels::Fused).unwrap();
        let repeats = |found: &Found| {
            let bigrams: Vec<&[u32]> = found.tokens.windows(2).collect();
            (1..bigrams.len()).any(|i| bigrams[..i].contains(&bigrams[i]))
        };
        let short = |found: &Found| found.tokens.len() < least.min(limit);
        assert!(!found.iter().flatten().any(|f| repeats(f) || short(f)));
        if limit > least {
            assert!(without.iter().flatten().any(repeats));
            assert!(without.iter().flatten().any(short));
        }
    }
}

#[test]
fn a_search_that_never_stops_early_is_never_worse() {
    let (model, sentences) = (model(), sentences(60));
    for length_penalty in [0.0, 0.6, 2.0] {
        let search = |early_stopping| {
            let criteria = Criteria {
                early_stopping,
                length_penalty,
                ..criteria(20)
            };
            beam(&*model, &sentences, 4, criteria, Last::Eos, Kernels::Fused)
        };
        let (patient, never) = (search(EarlyStopping::No), search(EarlyStopping::Never));
        let mut better = 0;
        for (patient, never) in patient.iter().zip(&never) {
            assert!(never[0].score >= patient[0].score);
            better += usize::from(never[0].score > patient[0].score);
        }
        assert_eq!(
            better > 0,
            length_penalty > 1.0,
            "{better} at {length_penalty}"
        );
    }
}

#[test]
fn what_a_sentence_becomes_does_not_depend_on_its_batch_mates() {
    let (model, sentences) = (model(), sentences(40));
    for kernels in Kernels::ALL {
        let together = beam(&*model, &sentences, 3, criteria(20), Last::Eos, kernels);
        let backwards: Vec<Vec<u32>> = sentences.iter().rev().cloned().collect();
        let backwards = beam(&*model, &backwards, 3, criteria(20), Last::Eos, kernels);
        for (i, sentence) in sentences.iter().enumerate() {
            let alone = std::slice::from_ref(sentence);
            let alone = beam(&*model, alone, 3, criteria(20), Last::Eos, kernels);
            assert_close(&together[i], &alone[0], 1e-5);
            assert_close(&backwards[sentences.len() - 1 - i], &alone[0], 1e-5);
        }
    }
}

#[test]
fn sentences_that_enter_a_running_search_have_the_same_bits_as_alone() {
    let (model, sentences) = (model(), sentences(60));
    let pass = Pass::eval(Kernels::Fused);
    let search_of = || Search {
        rules: Last::Eos.rules(criteria(20)),
        strategy: Box::new(Beam::new(3, criteria(20))),
        cost: 9,
    };
    let alone = sentences.iter().map(|sentence| {
        let sentence = std::slice::from_ref(sentence);
        search_all(&*model, sentence, vec![search_of()], &pass)
            .unwrap()
            .remove(0)
    });
    let alone: Vec<_> = alone.collect();
    for (size, room) in [(1, 0), (1, 30), (7, 100), (60, 1000), (4, 10_000)] {
        let numbers: Vec<usize> = (0..60).collect();
        let groups = numbers.chunks(size).map(|numbers| {
            let sources: Vec<&[u32]> = numbers.iter().map(|&i| &sentences[i][..]).collect();
            Ok(Group {
                source: Packed::of_sentences(&sources).into(),
                searches: numbers.iter().map(|&i| (i, search_of())).collect(),
            })
        });
        let found = collect(60, |done| {
            search(&*model, &mut Listed::new(groups, &(), done), room, &pass)
        });
        assert_eq!(found.unwrap(), alone, "{size} {room}");
    }
}

#[test]
fn each_sentence_has_its_own_limit_and_ends_there() {
    let (model, sentences) = (model(), sentences(30));
    let limit = |i: usize| 1 + i % 9;
    let searches = (0..30).map(|i| Search {
        rules: Last::Eos.rules(criteria(limit(i))),
        strategy: Box::new(Beam::new(4, criteria(limit(i)))),
        cost: 1,
    });
    let pass = Pass::eval(Kernels::Fused);
    let found = search_all(&*model, &sentences, searches.collect(), &pass).unwrap();
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
    for found in beam(
        &*model,
        &sentences,
        100,
        criteria(4),
        Last::Eos,
        Kernels::Fused,
    ) {
        assert_eq!(found.len(), 100);
    }
}

#[test]
fn a_model_with_broken_weights_is_an_error_and_not_an_endless_search() {
    let (model, sentences) = (model(), sentences(3));
    let weight = model.weights().get("model.shared.weight").unwrap();
    for broken in [f32::NAN, f32::INFINITY] {
        let values = Tensor::full(broken, weight.value().shape(), &Device::Cpu).unwrap();
        weight.param().unwrap().set(&values).unwrap();
        for kernels in Kernels::ALL {
            let strategy = || -> Box<dyn Strategy> { Box::new(Beam::new(4, criteria(20))) };
            let rules = || Last::Eos.rules(criteria(20));
            let found = run(&*model, &sentences, strategy, rules, kernels);
            assert!(matches!(found, Err(Error::NotANumber)), "{found:?}");
        }
    }
}

/// Forbids a word until a number of tokens is reached.
struct ForbidUntil {
    word: u32,
    length: usize,
}

impl Rule for ForbidUntil {
    fn applies(&self, tokens: &[u32]) -> bool {
        tokens.len() < self.length
    }

    fn apply(&self, _: &[u32], logits: &mut [f32]) {
        logits[self.word as usize] = f32::NEG_INFINITY;
    }
}

#[test]
fn rules_change_what_every_strategy_may_choose() {
    let (model, sentences) = (model(), sentences(20));
    let free = greedy(&*model, &sentences, criteria(12), Last::Eos, Kernels::Fused);
    let word = free[0][0].tokens[0];
    let forbid = || -> Vec<Box<dyn Rule>> {
        let length = 3;
        vec![Box::new(ForbidUntil { word, length })]
    };
    let strategies: [fn() -> Box<dyn Strategy>; 2] = [
        || Box::new(Greedy::new(criteria(12))),
        || Box::new(Beam::new(4, criteria(12))),
    ];
    for strategy in strategies {
        let found = run(&*model, &sentences, strategy, forbid, Kernels::Fused).unwrap();
        for found in found.iter().flatten() {
            let early = &found.tokens[..found.tokens.len().min(3)];
            assert!(!early.contains(&word), "{found:?}");
        }
    }
}

/// Forbids everything from a length on.
struct Nothing {
    from: usize,
}

impl Rule for Nothing {
    fn applies(&self, tokens: &[u32]) -> bool {
        tokens.len() >= self.from
    }

    fn apply(&self, _: &[u32], logits: &mut [f32]) {
        logits.fill(f32::NEG_INFINITY);
    }
}

#[test]
fn a_search_whose_rules_forbid_every_word_ends_with_what_it_has() {
    let (model, sentences) = (model(), sentences(10));
    let strategies: [fn() -> Box<dyn Strategy>; 2] = [
        || Box::new(Greedy::new(criteria(12))),
        || Box::new(Beam::new(4, criteria(12))),
    ];
    for strategy in strategies {
        let rules = || -> Vec<Box<dyn Rule>> { vec![Box::new(Nothing { from: 2 })] };
        for found in run(&*model, &sentences, strategy, rules, Kernels::Fused).unwrap() {
            assert!(!found.is_empty() && found[0].tokens.len() <= 3, "{found:?}");
        }
    }
}

#[test]
fn an_ensemble_of_copies_of_a_model_is_the_model() {
    let sentences = sentences(20);
    let alone = beam(
        &*model(),
        &sentences,
        3,
        criteria(20),
        Last::Eos,
        Kernels::Fused,
    );
    for copies in [1, 2, 3] {
        let ensemble = Ensemble::new((0..copies).map(|_| model()).collect());
        let found = beam(
            &ensemble,
            &sentences,
            3,
            criteria(20),
            Last::Eos,
            Kernels::Fused,
        );
        assert_eq!(found, alone, "{copies} copies");
    }
}
