use attend_data::Tokenizer;
use rayon::prelude::*;

use crate::Result;

/// Stands for bytes that are no whole character yet.
pub(crate) const INCOMPLETE: char = char::REPLACEMENT_CHARACTER;

/// How tokens are spelled: what rules and strategies know of text.
pub(crate) struct Spelling {
    tokenizer: Tokenizer,
    /// What each word adds to a text. `<pad>`, the last token, is no word.
    words: Vec<String>,
    /// Whether a text is the sum of what its words add, unless these are bytes of a character. To decode it takes
    /// longer.
    adds_up: bool,
}

impl Spelling {
    pub(crate) fn new(tokenizer: &Tokenizer) -> Result<Self> {
        // After a word, for the first token of a text loses its space.
        let word = Self::ids(tokenizer, WORD)?;
        let before = tokenizer.decode(&word)?;
        let piece = |id: u32| -> Result<String> {
            let both = tokenizer.decode(&[&word[..], &[id]].concat())?;
            Ok(match both.strip_prefix(&before) {
                Some(piece) => piece.to_string(),
                None => tokenizer.decode(&[id])?,
            })
        };
        let ids = 0..tokenizer.pad();
        let words: Vec<String> = ids.into_par_iter().map(piece).collect::<Result<_>>()?;
        // Every word there is, each after the one before it.
        let whole = (0..).zip(&words).filter(|(_, word)| is_whole(word));
        let (ids, words_of_ids): (Vec<u32>, Vec<&str>) =
            whole.map(|(id, word)| (id, &**word)).unzip();
        let adds_up = tokenizer.decode(&ids)?.trim_start() == words_of_ids.concat().trim_start();
        Ok(Self {
            words,
            adds_up,
            tokenizer: tokenizer.clone(),
        })
    }

    fn ids(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>> {
        let mut ids = tokenizer.encode(text)?;
        ids.pop(); // `</s>`
        Ok(ids)
    }

    /// The text of tokens, with one space for any white space. What cannot be decoded has no text.
    pub(crate) fn text(&self, tokens: &[u32]) -> String {
        let words = tokens.iter().map(|&token| self.words.get(token as usize));
        let words = words.map(|word| word.map(|word| &**word).filter(|word| is_whole(word)));
        if self.adds_up
            && let Some(words) = words.collect::<Option<Vec<&str>>>()
        {
            return collapsed(words.concat().trim_start());
        }
        collapsed(&self.tokenizer.decode(tokens).unwrap_or_default())
    }

    /// Whether the text of these tokens may change at its end, not only grow: after bytes, which may turn out to be no
    /// character with the next one.
    pub(crate) fn may_change(&self, tokens: &[u32], text: &str) -> bool {
        let last = tokens.last().and_then(|&last| self.tokenizer.token(last));
        text.ends_with(INCOMPLETE) || last.is_some_and(|last| last.starts_with("<0x"))
    }

    /// What each word of the vocabulary adds to a text that does not change at its end.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// The tokens of a text, without `</s>`.
    pub(crate) fn tokens(&self, text: &str) -> Result<Vec<u32>> {
        Self::ids(&self.tokenizer, text)
    }

    /// The text of a word and these tokens after it.
    pub(crate) fn text_after_word(&self, tokens: &[u32]) -> Result<String> {
        let word = self.tokens(WORD)?;
        Ok(self.text(&[&*word, tokens].concat()))
    }

    /// The tokens of a phrase after other words, without `</s>`. `space` is what separates it from them.
    pub(crate) fn tokens_after_words(&self, phrase: &str, space: &str) -> Result<Vec<u32>> {
        let word = self.tokens(WORD)?;
        let both = self.tokens(&format!("{WORD}{space}{phrase}"))?;
        Ok(both
            .strip_prefix(&*word)
            .map(<[u32]>::to_vec)
            .unwrap_or_default())
    }
}

/// Whether these are whole characters.
fn is_whole(word: &str) -> bool {
    !word.contains(INCOMPLETE)
}

/// Any word.
const WORD: &str = "a";

/// The text with one space for any white space.
pub(crate) fn collapsed(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_whitespace() {
            collapsed.push(c);
        } else if !collapsed.ends_with(' ') {
            collapsed.push(' ');
        }
    }
    collapsed
}

#[cfg(test)]
mod tests {
    use super::*;
    use attend_data::{Corpus, TokenizerConfig, Tokenizers};

    #[test]
    fn the_text_of_tokens_is_what_they_are_decoded_to() {
        let lines = || {
            vec![
                "Ein Hund, ein Haus.".to_string(),
                "zwei  Hunde – schön!".into(),
            ]
        };
        let corpus = Corpus::new(lines(), lines()).unwrap();
        for byte_fallback in [false, true] {
            let config = TokenizerConfig {
                vocab_size: if byte_fallback { 330 } else { 60 },
                byte_fallback,
                ..TokenizerConfig::default()
            };
            let tokenizers = Tokenizers::train(&config, &corpus, &()).unwrap();
            let spelling = Spelling::new(tokenizers.target()).unwrap();
            assert!(spelling.adds_up);
            let mut state = 1u32;
            for length in 0..200 {
                let draw = |_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 8) % tokenizers.target().pad()
                };
                let tokens: Vec<u32> = (0..length % 9).map(draw).collect();
                let decoded = collapsed(&tokenizers.target().decode(&tokens).unwrap());
                assert_eq!(spelling.text(&tokens).trim_start(), decoded.trim_start());
            }
            for text in ["Hund", "schön ☃!"] {
                let tokens = spelling.tokens_after_words(text, " ").unwrap();
                let whole = spelling.text_after_word(&tokens).unwrap();
                assert_eq!(whole.contains('☃'), byte_fallback && text.contains('☃'));
                assert!(whole.ends_with(text) || text.contains('☃'), "{whole}");
            }
        }
    }
}
