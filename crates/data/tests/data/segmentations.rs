//! How often each segmentation is drawn: as often as its exact probability says.

use crate::sampling::{alpha, bpe, dropout, white};
use attend_data::{Sampling, Tokenizer};
use serde_json::json;
use std::collections::HashMap;

/// How often each segmentation is drawn, of this many draws.
fn frequencies(tokenizer: &Tokenizer, text: &str, sampling: &Sampling) -> HashMap<String, f64> {
    const DRAWS: u64 = 20_000;
    let mut counts = HashMap::new();
    for draw in 0..DRAWS {
        let ids = tokenizer.encode_sampled(text, sampling, draw).unwrap();
        let tokens = ids[..ids.len() - 1]
            .iter()
            .map(|id| tokenizer.token(*id).unwrap());
        let key = tokens.collect::<Vec<_>>().join(" ");
        *counts.entry(key).or_insert(0.0) += 1.0 / DRAWS as f64;
    }
    counts
}

/// Frequencies are within five standard deviations of the probabilities.
fn assert_close(found: &HashMap<String, f64>, expected: &HashMap<String, f64>) {
    assert!((expected.values().sum::<f64>() - 1.0).abs() < 1e-9);
    for text in found.keys() {
        assert!(expected.contains_key(text), "{text} is impossible");
    }
    for (text, p) in expected {
        let frequency = found.get(text).copied().unwrap_or(0.0);
        let deviation = (p * (1.0 - p) / 20_000.0).sqrt();
        assert!(
            (frequency - p).abs() <= 5.0 * deviation,
            "{text}: {frequency} {p}"
        );
    }
}

const MERGES: [(&str, &str); 5] = [
    ("a", "b"),
    ("b", "c"),
    ("ab", "c"),
    ("a", "bc"),
    ("c", "ab"),
];

/// Adds the probabilities of all results of merging these symbols.
fn enumerate(symbols: Vec<String>, p: f64, weight: f64, results: &mut HashMap<String, f64>) {
    let rank = |(i, pair): (usize, &[String])| {
        let rank = MERGES
            .iter()
            .position(|(a, b)| *a == pair[0] && *b == pair[1])?;
        Some((rank, i))
    };
    let mut possible: Vec<_> = symbols.windows(2).enumerate().filter_map(rank).collect();
    possible.sort_unstable();
    for (k, (_, i)) in possible.iter().enumerate() {
        let mut merged = symbols.clone();
        let right = merged.remove(i + 1);
        merged[*i] += &right;
        enumerate(merged, p, weight * p.powi(k as i32) * (1.0 - p), results);
    }
    *results.entry(symbols.join(" ")).or_insert(0.0) += weight * p.powi(possible.len() as i32);
}

#[test]
fn bpe_dropout_has_the_exact_distribution() {
    let merges = MERGES.map(|(a, b)| json!([a, b])).to_vec();
    let tokens = ["a", "b", "c", "ab", "bc", "abc", "cab"];
    let tokenizer = bpe(&tokens, merges.into(), white(), json!({}));
    for text in ["abc", "abcab", "cabcabc"] {
        for p in [0.1, 0.5, 0.8] {
            let mut expected = HashMap::new();
            let symbols = text.chars().map(String::from).collect();
            enumerate(symbols, p, 1.0, &mut expected);
            assert_close(&frequencies(&tokenizer, text, &dropout(p)), &expected);
        }
    }
}

#[test]
fn a_unigram_model_has_the_exact_distribution() {
    let scores = [
        ("a", -1.0),
        ("b", -2.0),
        ("c", -1.5),
        ("ab", -1.8),
        ("bc", -2.2),
        ("abc", -4.0),
        ("ca", -2.5),
    ];
    let vocab = [("</s>", 0.0), ("<unk>", 0.0)].iter().chain(&scores);
    let vocab: Vec<_> = vocab.map(|(piece, score)| json!([piece, score])).collect();
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": white(), "post_processor": null, "decoder": null,
        "model": {"type": "Unigram", "unk_id": 1, "vocab": vocab, "byte_fallback": false}
    });
    let tokenizer = Tokenizer::from_json(&json.to_string()).unwrap();
    fn all(text: &str, scores: &[(&str, f64)]) -> Vec<(String, f64)> {
        let mut found = Vec::new();
        for (piece, score) in scores {
            if let Some(rest) = text.strip_prefix(piece) {
                for (others, sum) in all(rest, scores) {
                    found.push((format!("{piece} {others}").trim_end().into(), score + sum));
                }
            }
        }
        if text.is_empty() {
            found.push((String::new(), 0.0));
        }
        found
    }
    for text in ["abc", "abcab", "cabcabca"] {
        for power in [0.1, 0.5, 1.0, 3.0] {
            let weights = all(text, &scores).into_iter();
            let weights: HashMap<_, _> = weights
                .map(|(t, score)| (t, (score * power).exp()))
                .collect();
            let sum: f64 = weights.values().sum();
            let expected = weights
                .into_iter()
                .map(|(text, weight)| (text, weight / sum))
                .collect();
            assert_close(&frequencies(&tokenizer, text, &alpha(power)), &expected);
        }
    }
}
