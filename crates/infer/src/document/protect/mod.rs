//! Text that must come out as it went in.
//!
//! A model copies a URL, an address or a number only if it has learnt to, and often changes a letter or digit. So
//! the line is translated with this text in place, which keeps its grammar, and afterwards every protected text
//! is looked for in the translation:
//!
//! 1. where it is there as it was, nothing changes;
//! 2. otherwise the target word that is linked to it, and that looks like it or is linked to nothing else,
//!    becomes it;
//! 3. otherwise it is inserted next to the translations of its neighbours. It is never lost.
//!
//! With a placeholder, a token that the model has learnt to copy stands for every protected text, and is looked
//! for instead.
mod restore;

#[cfg(test)]
mod tests;

pub(super) use restore::restore;

use std::ops::Range;

use super::scan::Kind;

/// A part of a line's text that is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Protected {
    pub(super) place: Range<usize>,
    /// What it was in the text, and what is looked for in the translation.
    pub(super) text: String,
    /// What is written: the text itself, or an element with it.
    pub(super) written: String,
    pub(super) is_markup: bool,
    /// Whether nothing but punctuation is in the same word.
    pub(super) is_alone: bool,
    /// None if it is protected by markup.
    pub(super) kind: Option<Kind>,
}

impl Protected {
    pub(super) fn new(text: &str, place: Range<usize>, kind: Kind) -> Self {
        let text = text[place.clone()].to_string();
        Self {
            place,
            written: text.clone(),
            text,
            is_markup: false,
            is_alone: true,
            kind: Some(kind),
        }
    }
}

/// Replaces every protected text by a placeholder. Returns the new text and how offsets move.
pub(super) fn substitute(text: &str, items: &mut [Protected], token: &str) -> (String, Moves) {
    let mut new = String::with_capacity(text.len());
    let mut moves = Vec::with_capacity(items.len());
    let mut from = 0;
    for item in items {
        new.push_str(&text[from..item.place.start]);
        from = item.place.end;
        let start = new.len();
        new.push_str(token);
        moves.push((item.place.clone(), start..new.len()));
        item.place = start..new.len();
        item.text = token.into();
        item.kind = None;
    }
    new.push_str(&text[from..]);
    (new, Moves(moves))
}

/// Where offsets of a text are after a substitution.
pub(super) struct Moves(Vec<(Range<usize>, Range<usize>)>);

impl Moves {
    pub(super) fn apply(&self, offset: usize) -> usize {
        let before = self.0.partition_point(|(old, _)| old.end <= offset);
        match self.0.get(before) {
            Some((old, new)) if offset > old.start => new.start,
            _ => match before.checked_sub(1).map(|last| &self.0[last]) {
                Some((old, new)) => new.end + (offset - old.end),
                None => offset,
            },
        }
    }
}
