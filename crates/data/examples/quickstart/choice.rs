//! Chooses words, the rarely used before the often used.

use std::collections::HashMap;

use crate::lexicon::{Adjective, Frame, LEXICON, Noun, Verb};
use crate::random::Random;

pub(crate) struct Choice {
    pub(crate) random: Random,
    /// How many noun phrases of a hundred have an adjective.
    pub(crate) adjectives: usize,
    /// How often each word was chosen for each use, so that rare words catch up.
    used: HashMap<(&'static str, &'static str), u32>,
    nouns: HashMap<String, Vec<&'static Noun>>,
    fitting: HashMap<&'static str, Vec<&'static Adjective>>,
}

impl Choice {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            adjectives: 0,
            used: HashMap::new(),
            nouns: HashMap::new(),
            fitting: HashMap::new(),
        }
    }

    /// Of three random words the one that was used least.
    fn word<T>(
        &mut self,
        words: &[&'static T],
        key: impl Fn(&T) -> (&'static str, &'static str),
    ) -> &'static T {
        let uses = |used: &HashMap<_, u32>, word| used.get(&key(word)).copied();
        let mut best = self.random.pick(words);
        for _ in 0..2 {
            let other = self.random.pick(words);
            if uses(&self.used, other) < uses(&self.used, best) {
                best = other;
            }
        }
        *self.used.entry(key(best)).or_default() += 1;
        best
    }

    pub(crate) fn verb(&mut self, fits: fn(Frame) -> bool) -> &'static Verb {
        let verbs: Vec<&Verb> = LEXICON
            .verbs
            .iter()
            .filter(|verb| fits(verb.frame))
            .collect();
        // "See" takes an object or a clause: each use is counted for itself.
        self.word(&verbs, |verb| (verb.section, verb.english))
    }

    pub(crate) fn noun(&mut self, kinds: &str) -> &'static Noun {
        let of = |kinds: &str| {
            LEXICON
                .nouns
                .iter()
                .filter(|n| n.is_one_of(kinds))
                .collect()
        };
        let nouns = self
            .nouns
            .entry(kinds.to_owned())
            .or_insert_with_key(|kinds| of(kinds))
            .clone();
        self.word(&nouns, |noun| ("noun", noun.english))
    }

    /// A noun that can be called so, of one of the kinds.
    pub(crate) fn noun_for(&mut self, adjective: &Adjective, kinds: &str) -> Option<&'static Noun> {
        let fits = |noun: &&Noun| noun.is_one_of(kinds) && adjective.fits(noun);
        let nouns: Vec<&Noun> = LEXICON.nouns.iter().filter(fits).collect();
        (!nouns.is_empty()).then(|| self.random.pick(&nouns))
    }

    /// Counted for each kind of noun: "old" fits almost all of them, and men should be old too.
    pub(crate) fn adjective_for(&mut self, noun: &'static Noun) -> Option<&'static Adjective> {
        let of = || {
            LEXICON
                .adjectives
                .iter()
                .filter(|adjective| adjective.fits(noun))
                .collect()
        };
        let fitting = self.fitting.entry(noun.english).or_insert_with(of).clone();
        (!fitting.is_empty()).then(|| self.word(&fitting, |it| (noun.kind, it.english)))
    }

    /// An adjective for after the verb; `class` names the use, so that each use is balanced.
    pub(crate) fn adjective(
        &mut self,
        class: &'static str,
        fits: fn(&Adjective) -> bool,
    ) -> &'static Adjective {
        let fitting: Vec<&Adjective> = LEXICON.adjectives.iter().filter(|it| fits(it)).collect();
        self.word(&fitting, |it| (class, it.english))
    }
}
