use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::Rule;
use crate::search::spelling::{INCOMPLETE, Spelling, collapsed};
use crate::words::{is_whole, joins, may_go_on, tidy};

/// Phrases that a translation must not have as whole words, however they are split into tokens.
pub(crate) struct Forbidden {
    spelling: Arc<Spelling>,
    phrases: HashSet<String>,
    /// The lengths of phrases in bytes, without repetition.
    lengths: Vec<usize>,
    /// Tokens within or at the end of which a phrase can be over, such as `nd.` for `Hund`.
    closing: Vec<u32>,
    /// How many bytes of a text's end are looked at: more than the longest phrase has.
    reach: usize,
}

impl Forbidden {
    /// A phrase without a word forbids nothing.
    pub(crate) fn new(spelling: Arc<Spelling>, phrases: &[String]) -> Self {
        let phrases = phrases.iter().map(|phrase| tidy(phrase));
        let phrases: HashSet<String> = phrases.filter(|phrase| !phrase.is_empty()).collect();
        let ends: HashSet<char> = phrases
            .iter()
            .filter_map(|it| it.chars().next_back())
            .collect();
        let lengths: BTreeSet<usize> = phrases.iter().map(String::len).collect();
        let closes = |piece: &str| {
            let chars: Vec<char> = piece.chars().collect();
            (0..chars.len()).any(|i| {
                let over = match chars.get(i + 1) {
                    Some(&next) => !joins(chars[i], next),
                    None => !may_go_on(chars[i]),
                };
                over && ends.contains(&chars[i])
            })
        };
        let closing = (0..).zip(spelling.words());
        let closing = closing.filter(|(_, piece)| closes(piece));
        Self {
            closing: closing.map(|(token, _)| token).collect(),
            reach: lengths.last().unwrap_or(&0) + 8,
            lengths: lengths.into_iter().collect(),
            phrases,
            spelling,
        }
    }

    /// A phrase that the text has.
    pub(crate) fn found_in(&self, text: &str) -> Option<&str> {
        let text = tidy(text);
        let phrase = self.places(&text, 0).next().map(|place| &text[place])?;
        self.phrases.get(phrase).map(String::as_str)
    }

    /// Where phrases are in the text as whole words that end at `from` or after it. The time does not depend on the
    /// number of phrases, but on how many lengths they have.
    fn places<'a>(&'a self, text: &'a str, from: usize) -> impl Iterator<Item = Range<usize>> + 'a {
        let ends = (from..=text.len()).filter(|&end| text.is_char_boundary(end));
        let places = ends.flat_map(|end| {
            let starts = self
                .lengths
                .iter()
                .filter_map(move |length| end.checked_sub(*length));
            starts.map(move |start| start..end)
        });
        places.filter(|place| {
            let phrase = text.get(place.clone());
            phrase.is_some_and(|phrase| self.phrases.contains(phrase)) && is_whole(text, place)
        })
    }

    /// Whether a phrase is in the text as whole words that end at `from` or after it. Where the text can go on, a word
    /// at its end, and one that bytes of a character follow, may still be another.
    fn is_in(&self, text: &str, from: usize, goes_on: bool) -> bool {
        self.places(text, from).any(|place| {
            let (before, after) = text.split_at(place.end);
            let after = after.trim_end_matches(INCOMPLETE);
            let open = after.is_empty() && before.chars().next_back().is_some_and(may_go_on);
            !(goes_on && open)
        })
    }

    /// Whether a piece after this end of a text completes a phrase.
    fn closes(&self, end: &str, piece: &str, goes_on: bool) -> bool {
        // One that ends where the piece begins is completed by it, too.
        let text = collapsed(&format!("{end}{piece}"));
        self.is_in(&text, end.len(), goes_on)
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
                if forbidden.is_in(&text, 0, goes_on && word != self.eos) {
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
        if forbidden.spelling.may_change(tokens, &text) {
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
        if may_go_on(last) && forbidden.is_in(end, end.len(), false) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use attend_data::{Corpus, TokenizerConfig, Tokenizers};

    const LIMIT: usize = 9;

    /// Random texts under the rule, of any tokens that it allows: none has a phrase, and no token was forbidden after
    /// which the text has none.
    #[test]
    fn what_the_rule_allows_never_has_a_phrase_and_what_it_forbids_does() {
        let lines = || {
            vec![
                "Ein Hund, ein Haus.".to_string(),
                "zwei  Hunde – schön!".into(),
            ]
        };
        let corpus = Corpus::new(lines(), lines()).unwrap();
        let phrases = [
            "e",
            "Hund",
            "n",
            "Ein Hund",
            "ö",
            "s.",
            "–",
            "zwei Hunde",
            "ei n",
            "sch",
        ];
        let phrases = phrases.map(String::from);
        for byte_fallback in [false, true] {
            let config = TokenizerConfig {
                vocab_size: if byte_fallback { 330 } else { 60 },
                byte_fallback,
                ..TokenizerConfig::default()
            };
            let tokenizers = Tokenizers::train(&config, &corpus, &()).unwrap();
            let (target, eos) = (tokenizers.target(), tokenizers.target().eos());
            let spelling = Arc::new(Spelling::new(target).unwrap());
            let forbidden = Arc::new(Forbidden::new(spelling, &phrases));
            let rule = Forbid {
                forbidden: forbidden.clone(),
                eos,
                limit: LIMIT,
            };
            let mut state = 1u64;
            let (mut forbidden_words, mut ends) = (0, 0);
            let mut stuck = 0;
            'walks: for walk in 0..400 {
                let mut tokens: Vec<u32> = Vec::new();
                while tokens.len() + 1 < LIMIT && tokens.last() != Some(&eos) {
                    let mut logits = vec![0.0; target.pad() as usize];
                    rule.apply(&tokens, &mut logits);
                    let (mut allowed, mut refused) = (Vec::new(), Vec::new());
                    for (word, logit) in (0..).zip(logits) {
                        match logit == 0.0 {
                            true => allowed.push(word),
                            false => refused.push(word),
                        }
                    }
                    if walk < 50 {
                        forbidden_words += refused.len();
                        for word in refused {
                            let text = target.decode(&[&*tokens, &[word]].concat()).unwrap();
                            assert!(forbidden.found_in(&text).is_some(), "{text:?}");
                        }
                    }
                    // After a phrase and a part of a character, at the limit.
                    if allowed.is_empty() {
                        stuck += 1;
                        continue 'walks;
                    }
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    tokens.push(allowed[(state >> 33) as usize % allowed.len()]);
                }
                ends += usize::from(tokens.last() == Some(&eos));
                let text = target.decode(&tokens).unwrap();
                assert_eq!(forbidden.found_in(&text), None, "{text:?} {tokens:?}");
            }
            assert!(
                forbidden_words > 500 && ends > 5,
                "{forbidden_words} {ends}"
            );
            assert!(stuck < 40 && (byte_fallback || stuck == 0), "{stuck}");
        }
    }
}
