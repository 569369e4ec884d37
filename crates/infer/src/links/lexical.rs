//! Links by the words alone: IBM Model 1 (Brown et al. 1993, section 4), trained on the pairs themselves by
//! expectation maximisation, in both directions. A link is one on which both agree.
//!
//! Model 1 takes any order of words for equally likely. With a `diagonal` above 0, a word is likelier to come from
//! about the same place in the other sentence, as in Dyer et al. 2013, equation 1: this decides between equal words.

use std::collections::HashMap;

use rayon::prelude::*;

use super::Link;

const ITERATIONS: usize = 5;
/// Pairs whose expectations are in memory at a time.
const BLOCK: usize = 1024;
/// The word that words without a counterpart come from.
const NULL: u32 = 0;

/// The links of each pair of texts, sorted. The same pairs always have the same links.
pub fn lexical_links<S: AsRef<str>>(source: &[S], target: &[S], diagonal: f64) -> Vec<Vec<Link>> {
    let [source, target] = [source, target].map(numbered);
    let forwards = Model1::train(&source, &target, diagonal, ITERATIONS);
    let backwards = Model1::train(&target, &source, diagonal, ITERATIONS);
    let pairs = source.par_iter().zip(&target);
    let links = pairs.map(|(source, target)| {
        let origins = forwards.origins(source, target);
        let of_source = backwards.origins(target, source);
        let links = (0..).zip(of_source).filter_map(|(source, target)| {
            let target = target?;
            (origins[target] == Some(source)).then_some(Link { source, target })
        });
        links.collect()
    });
    links.collect()
}

/// The words of every text as numbers from 1. Case, and punctuation beside a word, do not matter.
fn numbered<S: AsRef<str>>(texts: &[S]) -> Vec<Vec<u32>> {
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let texts = texts.iter().map(|text| {
        let words = text.as_ref().split_whitespace().map(|word| {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
            let word = if bare.is_empty() { word } else { bare };
            let next = numbers.len() as u32 + 1;
            *numbers.entry(word.to_lowercase()).or_insert(next)
        });
        words.collect()
    });
    texts.collect()
}

/// The probability of each word given each word of the other language that it was seen with.
struct Model1 {
    /// Where the probability of (given, word) is.
    places: HashMap<(u32, u32), u32>,
    probabilities: Vec<f64>,
    diagonal: f64,
}

impl Model1 {
    fn train(given: &[Vec<u32>], words: &[Vec<u32>], diagonal: f64, iterations: usize) -> Self {
        let mut places = HashMap::new();
        let mut givens = Vec::new(); // of each place
        for (given, words) in given.iter().zip(words) {
            for &given in [NULL].iter().chain(given) {
                for &word in words {
                    places.entry((given, word)).or_insert_with(|| {
                        givens.push(given);
                        givens.len() as u32 - 1
                    });
                }
            }
        }
        let mut model = Self {
            places,
            probabilities: vec![1.0; givens.len()], // all alike; expectations divide by their sum
            diagonal,
        };
        for _ in 0..iterations {
            model.update(given, words, &givens);
        }
        model
    }

    /// One iteration. Expectations are computed in parallel, and added in the order of the pairs.
    fn update(&mut self, given: &[Vec<u32>], words: &[Vec<u32>], givens: &[u32]) {
        let mut counts = vec![0.0; self.probabilities.len()];
        for (given, words) in given.chunks(BLOCK).zip(words.chunks(BLOCK)) {
            let pairs = given.par_iter().zip(words);
            let pairs = pairs.map(|(given, words)| self.expectations(given, words));
            for (place, expected) in pairs.collect::<Vec<_>>().into_iter().flatten() {
                counts[place as usize] += expected;
            }
        }
        let largest = givens.iter().copied().max().unwrap_or(NULL);
        let mut totals = vec![0.0; largest as usize + 1];
        for (&given, count) in givens.iter().zip(&counts) {
            totals[given as usize] += count;
        }
        for ((p, count), &given) in self.probabilities.iter_mut().zip(counts).zip(givens) {
            *p = count / f64::max(totals[given as usize], f64::MIN_POSITIVE);
        }
    }

    /// How often each word is expected to come from each given one, by the places of their probabilities.
    fn expectations(&self, given: &[u32], words: &[u32]) -> Vec<(u32, f64)> {
        let mut expected = Vec::with_capacity(words.len() * (given.len() + 1));
        for position in 0..words.len() {
            let start = expected.len();
            let joint = self.joint(given, words, position);
            expected.extend(joint.map(|(_, place, p)| (place, p)));
            let own = &mut expected[start..];
            let total: f64 = own.iter().map(|(_, p)| p).sum();
            own.iter_mut()
                .for_each(|(_, p)| *p /= f64::max(total, f64::MIN_POSITIVE));
        }
        expected
    }

    /// Every origin of the word at a position, none for NULL, with the place of its probability, and the
    /// probability of both.
    fn joint<'a>(
        &'a self,
        given: &'a [u32],
        words: &'a [u32],
        position: usize,
    ) -> impl Iterator<Item = (Option<usize>, u32, f64)> + 'a {
        let (n, m) = (given.len() as f64, words.len() as f64);
        let at = (position as f64 + 0.5) / m;
        let near = move |i: usize| (-self.diagonal * ((i as f64 + 0.5) / n - at).abs()).exp();
        let total: f64 = (0..given.len()).map(near).sum();
        let places = move |given: u32| self.places.get(&(given, words[position])).copied();
        let null = places(NULL).map(|place| (None, place, 1.0 / (n + 1.0)));
        let others = given.iter().enumerate().filter_map(move |(i, &given)| {
            let prior = n / (n + 1.0) * near(i) / total;
            Some((Some(i), places(given)?, prior))
        });
        let all = null.into_iter().chain(others);
        all.map(|(i, place, prior)| (i, place, prior * self.probabilities[place as usize]))
    }

    /// The likeliest origin of every word; none if that is NULL. Of equals, the nearest to the diagonal.
    fn origins(&self, given: &[u32], words: &[u32]) -> Vec<Option<usize>> {
        let distance = |origin: Option<usize>, position: usize| match origin {
            Some(i) => (i * words.len()).abs_diff(position * given.len()),
            None => usize::MAX,
        };
        let origin = |position: usize| {
            let better = |a: &(Option<usize>, u32, f64), b: &(Option<usize>, u32, f64)| {
                let nearer = distance(b.0, position).cmp(&distance(a.0, position));
                a.2.total_cmp(&b.2).then(nearer)
            };
            self.joint(given, words, position).max_by(better)?.0
        };
        (0..words.len()).map(origin).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(source: &[&str], target: &[&str], diagonal: f64) -> Vec<String> {
        let links = lexical_links(source, target, diagonal);
        let text = |links: &Vec<Link>| {
            let links: Vec<String> = links.iter().map(Link::to_string).collect();
            links.join(" ")
        };
        links.iter().map(text).collect()
    }

    #[test]
    fn words_that_occur_together_are_linked_in_any_order() {
        let source = [
            "the house",
            "the book",
            "a Book",
            "a house, green!",
            "green",
        ];
        let target = ["Haus das", "Buch das", "ein Buch", "grün ein Haus.", "grün"];
        let found = pairs(&source, &target, 0.0);
        assert_eq!(
            found,
            ["0-1 1-0", "0-1 1-0", "0-0 1-1", "0-1 1-2 2-0", "0-0"]
        );
    }

    /// All ways of choosing an origin for every word.
    fn alignments(origins: usize, words: usize) -> Vec<Vec<usize>> {
        (0..words).fold(vec![Vec::new()], |all, _| {
            let longer = |it: Vec<usize>| (0..origins).map(move |i| [&it[..], &[i]].concat());
            all.into_iter().flat_map(longer).collect()
        })
    }

    #[test]
    fn an_iteration_counts_what_enumerating_all_alignments_counts() {
        let given = vec![vec![1, 2, 1], vec![2, 3], vec![3]];
        let words = vec![vec![1, 2], vec![2, 3, 3], vec![1, 3]];
        for diagonal in [0.0, 4.0] {
            let before = Model1::train(&given, &words, diagonal, 2);
            let after = Model1::train(&given, &words, diagonal, 3);
            let mut counts: HashMap<(u32, u32), f64> = HashMap::new();
            for (given, words) in given.iter().zip(&words) {
                let with_null = [&[NULL], &given[..]].concat();
                let joint: Vec<Vec<f64>> = (0..words.len())
                    .map(|j| before.joint(given, words, j).map(|it| it.2).collect())
                    .collect();
                let all = alignments(with_null.len(), words.len());
                let p = |a: &Vec<usize>| -> f64 {
                    a.iter().zip(&joint).map(|(&i, joint)| joint[i]).product()
                };
                let total: f64 = all.iter().map(p).sum();
                for a in &all {
                    for (&i, &word) in a.iter().zip(words) {
                        *counts.entry((with_null[i], word)).or_default() += p(a) / total;
                    }
                }
            }
            for (&(given, word), &place) in &after.places {
                let of_given = counts.iter().filter(|((g, _), _)| *g == given);
                let total: f64 = of_given.map(|(_, count)| count).sum();
                let expected = counts[&(given, word)] / total;
                let found = after.probabilities[place as usize];
                assert!((found - expected).abs() < 1e-12, "{found} and {expected}");
            }
        }
    }

    #[test]
    fn equal_words_are_linked_by_their_places() {
        let source = ["a dog sees a cat", "a dog", "a cat", "sees"];
        let target = ["ein Hund sieht ein Tier", "ein Hund", "ein Tier", "sieht"];
        for diagonal in [0.0, 4.0] {
            let found = pairs(&source, &target, diagonal);
            assert_eq!(found[0], "0-0 1-1 2-2 3-3 4-4", "{diagonal}");
        }
    }

    #[test]
    fn empty_texts_have_no_links() {
        assert_eq!(pairs(&["", "a", " "], &["b", "", ""], 4.0), ["", "", ""]);
        assert!(pairs(&[], &[], 0.0).is_empty());
    }
}
