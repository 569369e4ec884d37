use std::collections::{HashMap, HashSet};

use attend_ops::random::Key;

use super::*;
use crate::Request;
use crate::search::{Filter, Sample};

const ALL: Filter = Filter {
    temperature: 1.0,
    top_k: 0,
    top_p: 1.0,
    min_p: 0.0,
};

fn key(seed: u64, number: u64) -> Key {
    Sample::key(seed, &Request::new(number, ""))
}

/// Samples of every sentence, which have these line numbers.
fn samples(sources: &[Vec<u32>], numbers: &[u64], count: usize, limit: usize) -> Vec<Vec<Found>> {
    let searches = numbers.iter().map(|&number| Search {
        rules: Vec::new(),
        strategy: Box::new(Sample::new(count, key(1, number), ALL, criteria(limit))),
        cost: 1,
    });
    let pass = Pass::eval(Kernels::Fused);
    search_all(&*model(), sources, searches.collect(), &pass).unwrap()
}

#[test]
fn samples_are_as_frequent_as_the_model_says() {
    let sentence = sentences(4).pop().unwrap();
    let (lines, count) = (100, 1000);
    let sources = vec![sentence.clone(); lines];
    let numbers: Vec<u64> = (0..lines as u64).collect();
    // The probability of all pairs of tokens, by beam search that drops none: 37 or fewer words, without `</s>`.
    let all = beam(
        &*model(),
        &[sentence],
        2000,
        criteria(2),
        Last::Any,
        Kernels::Fused,
    );
    let probability = |found: &Found| (found.score * found.tokens.len() as f64).exp();
    let total: f64 = all[0].iter().map(probability).sum();
    assert!((total - 1.0).abs() < 1e-4, "{total}");

    let mut counts: HashMap<Vec<u32>, f64> = HashMap::new();
    for found in samples(&sources, &numbers, count, 2).into_iter().flatten() {
        *counts.entry(found.tokens).or_default() += 1.0;
    }
    let draws = (lines * count) as f64;
    assert_eq!(counts.values().sum::<f64>(), draws);
    // Pearson's chi-square over the pairs that are expected at least ten times, and one for the others.
    let (mut chi, mut cells, mut rest) = (0.0, 0.0, (draws, draws));
    for found in &all[0] {
        let expected = draws * probability(found);
        let seen = counts.get(&found.tokens).copied().unwrap_or(0.0);
        if expected >= 10.0 {
            chi += (seen - expected).powi(2) / expected;
            cells += 1.0;
            rest = (rest.0 - expected, rest.1 - seen);
        }
    }
    if rest.0 > 10.0 {
        chi += (rest.1 - rest.0).powi(2) / rest.0;
        cells += 1.0;
    }
    assert!(cells > 30.0, "{cells}");
    // The mean is cells - 1, the variance twice that; beyond four deviations, one seed in thousands.
    let freedom: f64 = cells - 1.0;
    let deviations = (chi - freedom) / (2.0 * freedom).sqrt();
    assert!(
        deviations.abs() < 4.0,
        "{chi} for {freedom} degrees of freedom"
    );
}

#[test]
fn samples_do_not_depend_on_batch_mates_or_order_and_lines_of_other_numbers_have_others() {
    let sentences = sentences(12);
    let numbers: Vec<u64> = (100..112).collect();
    let together = samples(&sentences, &numbers, 5, 20);
    for (i, sentence) in sentences.iter().enumerate() {
        let alone = samples(std::slice::from_ref(sentence), &numbers[i..=i], 5, 20);
        assert_close(&together[i], &alone[0], 1e-5);
    }
    let backwards = |list: &[Vec<u32>]| list.iter().rev().cloned().collect::<Vec<_>>();
    let reversed: Vec<u64> = numbers.iter().rev().copied().collect();
    let other_order = samples(&backwards(&sentences), &reversed, 5, 20);
    for (a, b) in together.iter().zip(other_order.iter().rev()) {
        assert_close(a, b, 1e-5);
    }
    // More samples of a line begin with the same ones; samples of one line are not each other's copies.
    let more = samples(&sentences, &numbers, 9, 20);
    let tokens = |found: &Found| found.tokens.clone();
    for (few, more) in together.iter().zip(&more) {
        assert!(
            few.iter()
                .all(|found| more.iter().any(|m| tokens(m) == tokens(found)))
        );
        assert!(more.is_sorted_by(|a, b| a.score >= b.score));
        assert!(more.iter().map(tokens).collect::<HashSet<_>>().len() > 5);
    }
    let renumbered = samples(&sentences, &reversed, 5, 20);
    assert!(together.iter().zip(&renumbered).all(|(a, b)| a != b));
}

#[test]
fn the_score_of_a_sample_is_the_models_own() {
    let (model, sentences) = (model(), sentences(20));
    // The likeliest token only: what greedy search finds, with its score, at any temperature.
    let filter = Filter {
        temperature: 3.0,
        top_k: 1,
        ..ALL
    };
    for set in 0..rule_sets(15).len() {
        let rules = || rule_sets(15).swap_remove(set);
        let sample =
            || -> Box<dyn Strategy> { Box::new(Sample::new(2, key(0, 0), filter, criteria(15))) };
        let greedy = || -> Box<dyn Strategy> { Box::new(Greedy::new(criteria(15))) };
        let drawn = run(&*model, &sentences, sample, rules, Kernels::Fused).unwrap();
        let greedy = run(&*model, &sentences, greedy, rules, Kernels::Fused).unwrap();
        for (drawn, greedy) in drawn.iter().zip(&greedy) {
            for drawn in drawn {
                assert_close(std::slice::from_ref(drawn), greedy, 1e-9);
            }
        }
    }
}
