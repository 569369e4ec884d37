//! Fills the five files, and keeps them apart.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::choice::Choice;
use crate::long;
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
/// English words, of the sentences of `train`, `valid` and `test`.
const LONGEST: usize = 14;
/// To measure with, in `long`. Its seed is its own, so that `train`, `valid` and `test` do not change with it.
const LONG: Joining = Joining {
    seed: 20_140_910,
    pairs: 500,
    lengths: LONGEST + 1..50,
};
/// To train on, in `joined`.
const JOINED: Joining = Joining {
    seed: 20_150_817,
    pairs: 4_000,
    lengths: LONGEST + 1..35,
};
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
    /// Nothing in it is new but the length.
    pub(crate) long: Split,
    /// Some of those lengths, to train on.
    pub(crate) joined: Split,
}

/// Longer sentences, out of clauses whose words training knows.
struct Joining {
    seed: u64,
    pairs: usize,
    /// English words, each length as often as the next.
    lengths: Range<usize>,
}

/// The German of every English sentence so far.
#[derive(Default)]
struct Translations(HashMap<String, String>);

struct Pair {
    english: String,
    german: String,
    novel: bool,
}

impl Corpus {
    /// The name and content of each file.
    pub(crate) fn splits(&self) -> [(&'static str, &Split); 5] {
        let Self {
            train,
            valid,
            test,
            long,
            joined,
        } = self;
        [
            ("train", train),
            ("valid", valid),
            ("test", test),
            ("long", long),
            ("joined", joined),
        ]
    }

    pub(crate) fn generate() -> Self {
        let mut choice = Choice::new(SEED);
        let mut corpus = Self::default();
        let mut translations = Translations::default();
        let mut apart = Vec::new();
        let mut turn = 0_usize;
        while corpus.train.english.len() < TRAIN {
            let sentence = Sentence::invent(&mut choice);
            if !is_wanted(&sentence) || !translations.is_new(&sentence) {
                continue;
            }
            let pair = Pair::write(&sentence, choice.random.chance(50));
            turn += 1;
            if pair.novel || turn.is_multiple_of(APART) {
                apart.push(pair);
            } else {
                corpus.train.push(pair);
            }
        }
        let forms = corpus.train.forms();
        corpus.fill(apart, &forms);
        corpus.long = LONG.write(&forms, &mut translations, &HashSet::new());
        let kept_out = corpus.kept_out();
        corpus.joined = JOINED.write(&forms, &mut translations, &kept_out);
        corpus
    }

    /// The sentences that no file to train on may hold, whole or as a main clause.
    fn kept_out(&self) -> HashSet<String> {
        let lines = self.valid.english.iter().chain(&self.test.english);
        lines.map(|line| plain(line)).collect()
    }

    /// Deals the sentences that training does not see to `valid` and `test`.
    fn fill(&mut self, apart: Vec<Pair>, forms: &HashMap<String, usize>) {
        for pair in apart.into_iter().filter(|it| it.is_familiar(forms)) {
            let valid_is_next = self.valid.english.len() < self.test.english.len();
            let splits = if valid_is_next {
                [(&mut self.valid, VALID), (&mut self.test, TEST)]
            } else {
                [(&mut self.test, TEST), (&mut self.valid, VALID)]
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

impl Joining {
    /// From the shortest sentence to the longest, out of clauses that are not kept out.
    fn write(
        self,
        forms: &HashMap<String, usize>,
        translations: &mut Translations,
        kept_out: &HashSet<String>,
    ) -> Split {
        let mut choice = Choice::new(self.seed);
        let is_known = |pair: &Pair| !pair.novel && pair.is_familiar(forms);
        let mut split = Split::default();
        while split.english.len() < self.pairs {
            let turn = split.english.len();
            let length = self.lengths.start + turn * self.lengths.len() / self.pairs;
            let sentence = long::invent(&mut choice, length, |clause| {
                let fits = is_wanted(clause)
                    && is_known(&Pair::write(clause, false))
                    && !kept_out.contains(&plain(&clause.english));
                // A clause may come again, if its German does.
                let _ = fits && translations.is_new(clause);
                fits
            });
            // Once more: a capital letter makes another form.
            let pair = Pair::write(&sentence, turn.is_multiple_of(2));
            if is_known(&pair) && translations.is_new(&sentence) {
                split.push(pair);
            }
        }
        split
    }
}

impl Translations {
    /// Was the sentence never said before? If it was, then with the same German.
    fn is_new(&mut self, sentence: &Sentence) -> bool {
        let Sentence {
            english, german, ..
        } = sentence;
        if let Some(known) = self.0.get(english) {
            assert_eq!(known, german, "two translations of: {english}");
            return false;
        }
        self.0.insert(english.clone(), german.clone());
        true
    }
}

impl Pair {
    fn write(sentence: &Sentence, properly: bool) -> Self {
        Self {
            english: surface(sentence, &sentence.english, properly),
            german: surface(sentence, &sentence.german, properly),
            novel: sentence.pairs().into_iter().any(is_held_out),
        }
    }

    /// Does training see each of its words, in this form?
    fn is_familiar(&self, forms: &HashMap<String, usize>) -> bool {
        let familiar = |word: &str| forms.get(word).is_some_and(|&count| count >= 3);
        words(&self.english).all(familiar) && words(&self.german).all(familiar)
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

/// However it is written.
fn plain(line: &str) -> String {
    line.trim_end_matches('.').to_lowercase()
}

fn is_wanted(sentence: &Sentence) -> bool {
    let reserved = RESERVED.contains(&sentence.english.as_str());
    sentence.length() <= LONGEST && !reserved && sentence.is_good()
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
    use std::sync::LazyLock;

    use super::*;

    /// Generating it takes seconds, so the tests share it.
    static CORPUS: LazyLock<Corpus> = LazyLock::new(Corpus::generate);

    fn length(line: &str) -> usize {
        line.split(' ').count()
    }

    #[test]
    fn the_files_share_no_sentence_and_repeat_none() {
        let all: Vec<String> = CORPUS
            .splits()
            .into_iter()
            .flat_map(|(_, split)| split.english.iter().map(|line| plain(line)))
            .collect();
        let different: HashSet<&String> = all.iter().collect();
        let expected = TRAIN + VALID + TEST + LONG.pairs + JOINED.pairs;
        assert_eq!((all.len(), different.len()), (expected, expected));
        let novel = CORPUS.splits().map(|(_, split)| split.novel);
        assert_eq!(novel, [0, NOVEL, NOVEL, 0, 0]);
    }

    #[test]
    fn the_reserved_sentences_are_in_no_file_and_in_no_longer_sentence() {
        for (_, split) in CORPUS.splits() {
            for line in split.english.iter().map(|line| plain(line)) {
                assert!(RESERVED.iter().all(|it| !line.contains(it)), "{line}");
            }
        }
    }

    #[test]
    fn training_knows_every_word_form_of_the_other_files() {
        let Corpus {
            train,
            valid,
            test,
            long,
            joined,
        } = &*CORPUS;
        let known = train.forms();
        for split in [valid, test, long, joined] {
            for (form, _) in split.forms() {
                assert!(known.get(&form).is_some_and(|&it| it >= 3), "{form}");
            }
        }
    }

    #[test]
    fn long_goes_on_where_training_ends_and_has_as_many_sentences_of_each_length() {
        let Corpus { train, long, .. } = &*CORPUS;
        let longest = train.english.iter().map(|line| length(line)).max();
        assert_eq!(longest, Some(LONGEST));
        assert!(long.english.is_sorted_by_key(|line| length(line)));
        for (band, lines) in long.english.chunks(100).enumerate() {
            let shortest = LONGEST + 1 + 7 * band;
            for wanted in shortest..shortest + 7 {
                let count = lines.iter().filter(|line| length(line) == wanted).count();
                assert!((14..=15).contains(&count), "{count} of {wanted} words");
            }
        }
    }

    #[test]
    fn joined_ends_before_long_does_and_has_as_many_sentences_of_each_length() {
        let Corpus { joined, .. } = &*CORPUS;
        let Joining { pairs, lengths, .. } = JOINED;
        assert!(lengths.end < LONG.lengths.end);
        let each = pairs / lengths.len();
        for wanted in lengths {
            let lines = joined.english.iter();
            let count = lines.filter(|line| length(line) == wanted).count();
            assert!(
                (each..=each + 1).contains(&count),
                "{count} of {wanted} words"
            );
        }
    }

    #[test]
    fn no_sentence_of_valid_or_test_is_part_of_one_that_is_joined() {
        let plain = |line: &str| plain(line).replace(", but ", " and ");
        let Corpus { valid, test, .. } = &*CORPUS;
        let kept_out = valid.english.iter().chain(&test.english);
        let kept_out: HashSet<String> = kept_out.map(|line| plain(line)).collect();
        for line in &CORPUS.joined.english {
            let line = plain(line);
            let clauses: Vec<_> = line.split(" and ").collect();
            for (start, _) in clauses.iter().enumerate() {
                for end in start + 1..=clauses.len() {
                    let part = clauses[start..end].join(" and ");
                    assert!(!kept_out.contains(&part), "{part}");
                }
            }
        }
    }

    #[test]
    fn half_of_long_is_written_properly_and_both_sides_agree() {
        let Corpus { long, .. } = &*CORPUS;
        for (english, german) in long.english.iter().zip(&long.german) {
            assert_eq!(english.ends_with('.'), german.ends_with('.'), "{english}");
        }
        let proper = long.english.iter().filter(|line| line.ends_with('.'));
        assert_eq!(proper.count(), LONG.pairs / 2);
    }

    #[test]
    fn the_words_of_the_reserved_sentence_meet_in_training() {
        for pair in [("old", "man"), ("small", "dog"), ("see", "dog")] {
            assert!(!is_held_out(pair));
        }
        let Corpus { train, .. } = &*CORPUS;
        for phrase in ["old man", "small dog", " sees the "] {
            assert!(train.english.iter().any(|line| line.contains(phrase)));
        }
    }
}
