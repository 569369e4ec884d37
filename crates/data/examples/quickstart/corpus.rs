//! Fills the three files, and keeps them apart.

use std::collections::HashMap;

use crate::choice::Choice;
use crate::sentence::Sentence;

const SEED: u64 = 20_170_612;
const TRAIN: usize = 20_000;
const VALID: usize = 500;
const TEST: usize = 500;
/// How many sentences of `valid` and `test` hold a pair of words that training never sees together.
const NOVEL: usize = 400;
/// Kept for the reader of the README to try: in no file.
const RESERVED: [&str; 2] = [
    "the old man sees the small dog",
    "the old man sees a small dog",
];
/// English words.
const LONGEST: usize = 14;
/// One sentence in so many is kept out of training though all its pairs of words are known.
const APART: usize = 40;

#[derive(Default)]
pub(crate) struct Split {
    pub(crate) english: Vec<String>,
    pub(crate) german: Vec<String>,
    /// Sentences with a held-out pair of words.
    pub(crate) novel: usize,
}

#[derive(Default)]
pub(crate) struct Corpus {
    pub(crate) train: Split,
    pub(crate) valid: Split,
    pub(crate) test: Split,
}

struct Pair {
    english: String,
    german: String,
    novel: bool,
}

impl Corpus {
    /// The name and content of each file.
    pub(crate) fn splits(&self) -> [(&'static str, &Split); 3] {
        let Self { train, valid, test } = self;
        [("train", train), ("valid", valid), ("test", test)]
    }

    pub(crate) fn generate() -> Self {
        let mut choice = Choice::new(SEED);
        let mut corpus = Self::default();
        let mut translations: HashMap<String, String> = HashMap::new();
        let mut apart = Vec::new();
        let mut turn = 0_usize;
        while corpus.train.english.len() < TRAIN {
            let sentence = Sentence::invent(&mut choice);
            let words = sentence.english.split(' ').count();
            let reserved = RESERVED.contains(&sentence.english.as_str());
            if words > LONGEST || reserved || !sentence.is_good() {
                continue;
            }
            if let Some(known) = translations.get(&sentence.english) {
                assert_eq!(
                    *known, sentence.german,
                    "two translations of: {}",
                    sentence.english
                );
                continue;
            }
            let written = choice.random.chance(50);
            let pair = Pair {
                english: surface(&sentence, &sentence.english, written),
                german: surface(&sentence, &sentence.german, written),
                novel: sentence.pairs().into_iter().any(is_held_out),
            };
            translations.insert(sentence.english, sentence.german);
            turn += 1;
            if pair.novel || turn.is_multiple_of(APART) {
                apart.push(pair);
            } else {
                corpus.train.push(pair);
            }
        }
        corpus.fill(apart);
        corpus
    }

    /// Deals the sentences that training does not see to `valid` and `test`.
    fn fill(&mut self, apart: Vec<Pair>) {
        let forms = self.train.forms();
        let familiar = |word: &str| forms.get(word).is_some_and(|&count| count >= 3);
        let deal = apart
            .into_iter()
            .filter(|pair| words(&pair.english).all(familiar) && words(&pair.german).all(familiar));
        for pair in deal {
            let valid_is_next = self.valid.english.len() < self.test.english.len();
            let splits = match valid_is_next {
                true => [(&mut self.valid, VALID), (&mut self.test, TEST)],
                false => [(&mut self.test, TEST), (&mut self.valid, VALID)],
            };
            if let Some((split, _)) = splits.into_iter().find(|(split, size)| {
                if pair.novel {
                    split.novel < NOVEL
                } else {
                    split.common() < size - NOVEL
                }
            }) {
                split.push(pair);
            }
        }
        assert_eq!(
            (self.valid.english.len(), self.test.english.len()),
            (VALID, TEST)
        );
    }
}

impl Split {
    fn push(&mut self, pair: Pair) {
        self.english.push(pair.english);
        self.german.push(pair.german);
        self.novel += usize::from(pair.novel);
    }

    fn common(&self) -> usize {
        self.english.len() - self.novel
    }

    /// How often each form of each word occurs.
    fn forms(&self) -> HashMap<String, usize> {
        let mut forms = HashMap::new();
        for word in self
            .english
            .iter()
            .chain(&self.german)
            .flat_map(|line| words(line))
        {
            *forms.entry(word.to_owned()).or_default() += 1;
        }
        forms
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(' ')
        .map(|word| word.trim_end_matches(['.', ',', '?']))
}

/// One pair of words in twelve never meets in training: FNV-1a of both decides.
fn is_held_out((first, second): (&str, &str)) -> bool {
    // The words of the reserved sentence do.
    if matches!(
        (first, second),
        ("old", "man") | ("small", "dog") | ("see", "dog")
    ) {
        return false;
    }
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in first.bytes().chain([b' ']).chain(second.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash >> 32).is_multiple_of(12)
}

/// Half of the sentences are written properly, half as people type them.
fn surface(sentence: &Sentence, text: &str, written: bool) -> String {
    if !written {
        return text.to_owned();
    }
    let mut letters = text.chars();
    let first = letters.next().expect("a sentence has a first letter");
    let stop = if sentence.is_question() { "" } else { "." };
    format!("{}{}{stop}", first.to_uppercase(), letters.as_str())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn plain(line: &str) -> String {
        line.trim_end_matches('.').to_lowercase()
    }

    #[test]
    fn the_three_files_share_no_sentence_and_repeat_none() {
        let Corpus { train, valid, test } = Corpus::generate();
        let all: Vec<&String> = [&train, &valid, &test]
            .into_iter()
            .flat_map(|split| &split.english)
            .collect();
        let different: HashSet<String> = all.iter().map(|line| plain(line)).collect();
        assert_eq!(
            (all.len(), different.len()),
            (TRAIN + VALID + TEST, TRAIN + VALID + TEST)
        );
        assert!(RESERVED.iter().all(|line| !different.contains(*line)));
        assert_eq!((train.novel, valid.novel, test.novel), (0, NOVEL, NOVEL));
    }

    #[test]
    fn the_words_of_the_reserved_sentence_meet_in_training() {
        for pair in [("old", "man"), ("small", "dog"), ("see", "dog")] {
            assert!(!is_held_out(pair));
        }
        let Corpus { train, .. } = Corpus::generate();
        for phrase in ["old man", "small dog", " sees the "] {
            assert!(train.english.iter().any(|line| line.contains(phrase)));
        }
    }
}
