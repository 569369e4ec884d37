use std::collections::HashMap;
use std::sync::Arc;

use super::Rule;
use crate::search::spelling::{INCOMPLETE, Spelling, collapsed};
use crate::words::{has, joins, may_go_on, places, tidy};

/// Phrases that a translation must not have as whole words, however they are split into tokens.
pub(crate) struct Forbidden {
    spelling: Arc<Spelling>,
    phrases: Vec<String>,
    /// Phrases by their last character.
    by_end: HashMap<char, Vec<usize>>,
    /// Tokens within or at the end of which a phrase can be over, such as `nd.` for `Hund`.
    closing: Vec<u32>,
    /// How many bytes of a text's end are looked at: more than the longest phrase has.
    reach: usize,
}

impl Forbidden {
    /// A phrase without a word forbids nothing.
    pub(crate) fn new(spelling: Arc<Spelling>, phrases: &[String]) -> Self {
        let mut phrases: Vec<String> = phrases.iter().map(|phrase| tidy(phrase)).collect();
        phrases.sort();
        phrases.dedup();
        phrases.retain(|phrase| !phrase.is_empty());
        let mut by_end: HashMap<char, Vec<usize>> = HashMap::new();
        for (i, phrase) in phrases.iter().enumerate() {
            let end = phrase.chars().next_back();
            by_end.entry(end.unwrap_or_default()).or_default().push(i);
        }
        let closes = |piece: &str| {
            let chars: Vec<char> = piece.chars().collect();
            (0..chars.len()).any(|i| {
                let over = match chars.get(i + 1) {
                    Some(&next) => !joins(chars[i], next),
                    None => !may_go_on(chars[i]),
                };
                over && by_end.contains_key(&chars[i])
            })
        };
        let closing = (0..).zip(spelling.words());
        let closing = closing.filter(|(_, piece)| closes(piece));
        Self {
            closing: closing.map(|(token, _)| token).collect(),
            reach: phrases.iter().map(String::len).max().unwrap_or(0) + 8,
            by_end,
            phrases,
            spelling,
        }
    }

    /// A phrase that the text has.
    pub(crate) fn found_in(&self, text: &str) -> Option<&str> {
        let text = tidy(text);
        let mut phrases = self.phrases.iter().map(String::as_str);
        phrases.find(|phrase| has(&text, phrase))
    }

    /// Whether a phrase that ends in one of these characters is in the text, at `from` or after it, as whole words.
    /// Where the text can go on, a word at its end, and one that bytes of a character follow, may still be another.
    fn is_in(&self, text: &str, from: usize, ends: &str, goes_on: bool) -> bool {
        let known = |c| self.by_end.get(&c).into_iter().flatten();
        let mut phrases = ends.chars().flat_map(known).map(|&i| &self.phrases[i]);
        phrases.any(|phrase| {
            let mut places = places(text, phrase).filter(|place| place.end >= from);
            places.any(|place| {
                let after = text[place.end..].trim_end_matches(INCOMPLETE);
                let open = after.is_empty() && phrase.chars().next_back().is_some_and(may_go_on);
                !(goes_on && open)
            })
        })
    }

    /// Whether a piece after this end of a text completes a phrase.
    fn closes(&self, end: &str, piece: &str, goes_on: bool) -> bool {
        // One that ends where the piece begins is completed by it, too.
        let ends: String = piece.chars().chain(end.chars().next_back()).collect();
        let text = collapsed(&format!("{end}{piece}"));
        self.is_in(&text, end.len(), &ends, goes_on)
    }

    /// The end of a text, as long as any phrase can reach back.
    fn end_of<'a>(&self, text: &'a str) -> &'a str {
        let start = text.floor_char_boundary(text.len().saturating_sub(self.reach));
        &text[start..]
    }
}

/// Forbids what would complete a phrase.
pub(crate) struct Forbid {
    pub(crate) forbidden: Arc<Forbidden>,
    pub(crate) eos: u32,
    /// The most tokens, `</s>` included: what comes before the last of them is followed by `</s>`.
    pub(crate) limit: usize,
}

impl Forbid {
    /// Forbids every word after which a text that is decoded to its end has a phrase.
    fn apply_to_each(&self, tokens: &[u32], logits: &mut [f32], goes_on: bool) {
        let forbidden = &*self.forbidden;
        for (word, logit) in (0..).zip(logits) {
            if *logit > f32::NEG_INFINITY {
                let text = forbidden.spelling.text(&[tokens, &[word]].concat());
                if forbidden.is_in(&text, 0, &text, goes_on && word != self.eos) {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
    }
}

impl Rule for Forbid {
    fn prunes(&self) -> bool {
        true
    }

    fn applies(&self, _: &[u32]) -> bool {
        !self.forbidden.phrases.is_empty()
    }

    fn apply(&self, tokens: &[u32], logits: &mut [f32]) {
        let forbidden = &*self.forbidden;
        let pieces = forbidden.spelling.words();
        let text = forbidden.spelling.text(tokens);
        let goes_on = tokens.len() + 2 < self.limit;
        if text.ends_with(INCOMPLETE) {
            return self.apply_to_each(tokens, logits, goes_on);
        }
        let end = forbidden.end_of(&text);
        let try_word = |word: usize, logits: &mut [f32]| {
            let logit = &mut logits[word];
            if *logit > f32::NEG_INFINITY && forbidden.closes(end, &pieces[word], goes_on) {
                *logit = f32::NEG_INFINITY;
            }
        };
        if !goes_on {
            return (0..pieces.len()).for_each(|word| try_word(word, logits));
        }
        for &word in &forbidden.closing {
            try_word(word as usize, logits);
        }
        // A phrase at the end of the text is one if its last word ends here.
        let Some(last) = text.chars().next_back() else {
            return;
        };
        if may_go_on(last) && forbidden.is_in(end, end.len(), &last.to_string(), false) {
            for (piece, logit) in pieces.iter().zip(logits.iter_mut()) {
                let first = piece.chars().next();
                if first.is_some_and(|first| first != INCOMPLETE && !joins(last, first)) {
                    *logit = f32::NEG_INFINITY;
                }
            }
            logits[self.eos as usize] = f32::NEG_INFINITY;
        }
    }
}
