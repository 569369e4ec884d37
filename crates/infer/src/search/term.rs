use std::sync::Arc;

use super::Spelling;
use crate::Result;
use crate::words::{has, is_unspaced, may_go_on, tidy};

/// A phrase that a translation must have as whole words, and the tokens that write it.
#[derive(Clone)]
pub(crate) struct Term {
    text: String,
    /// At the beginning of a translation.
    first: Vec<u32>,
    /// After other words.
    after: Vec<u32>,
}

impl Term {
    /// None if the phrase has no word, or one that the vocabulary cannot write.
    pub(crate) fn new(phrase: &str, spelling: &Spelling) -> Result<Option<Self>> {
        let text = tidy(phrase);
        let space = match text.chars().next() {
            None => return Ok(None),
            Some(first) if is_unspaced(first) => "",
            Some(_) => " ",
        };
        let mut first = spelling.tokens(&text)?;
        let mut after = spelling.tokens_after_words(&text, space)?;
        if !has(&spelling.text_after_word(&after)?, &text) {
            after.clone_from(&first);
        }
        if !has(&spelling.text(&first), &text) {
            first.clone_from(&after);
        }
        let writes = has(&spelling.text(&first), &text);
        let writes = writes && has(&spelling.text_after_word(&after)?, &text);
        Ok(writes.then_some(Self { text, first, after }))
    }

    /// How many of the term's tokens stand at the end of these, and the next one.
    fn progress(&self, tokens: &[u32]) -> (usize, u32) {
        let begun = |k: &usize| tokens.ends_with(&self.after[..*k]) && *k < tokens.len();
        if tokens.len() < self.first.len() && self.first.starts_with(tokens) {
            return (tokens.len(), self.first[tokens.len()]);
        }
        let k = (1..self.after.len()).rev().find(begun).unwrap_or(0);
        (k, self.after[k])
    }
}

/// The terms of a line.
pub(crate) struct Terms {
    pub(crate) spelling: Arc<Spelling>,
    pub(crate) terms: Vec<Term>,
}

/// How far a hypothesis has come with its terms.
#[derive(Clone, Default)]
pub(super) struct Standing {
    /// The terms that it has, counting one that its last word might still undo.
    pub(super) met: usize,
    /// The tokens of these terms, and those of a term that has begun.
    pub(super) placed: usize,
    /// The next token of each other term.
    pub(super) wanted: Vec<u32>,
    /// Whether the text ends in a term, so that another word must begin.
    pub(super) open: bool,
}

impl Terms {
    /// How many tokens all terms have.
    pub(crate) fn tokens(&self) -> usize {
        Self::tokens_of(&self.terms)
    }

    pub(crate) fn tokens_of(terms: &[Term]) -> usize {
        terms.iter().map(|term| term.after.len()).sum()
    }

    pub(super) fn standing(&self, tokens: &[u32]) -> Standing {
        let text = self.spelling.text(tokens);
        let last = text.chars().next_back();
        let mut standing = Standing::default();
        let mut begun = 0;
        for term in &self.terms {
            if has(&text, &term.text) {
                standing.met += 1;
                standing.placed += term.after.len();
                standing.open |= text.ends_with(&term.text) && last.is_some_and(may_go_on);
            } else {
                let (placed, next) = term.progress(tokens);
                begun = begun.max(placed);
                standing.wanted.push(next);
            }
        }
        standing.placed += begun;
        standing
    }
}
