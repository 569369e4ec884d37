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
        Ok(Self {
            words: ids.into_par_iter().map(piece).collect::<Result<_>>()?,
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
        collapsed(&self.tokenizer.decode(tokens).unwrap_or_default())
    }

    /// What each word of the vocabulary adds to a text that does not end within a character.
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
