//! Typing errors.
//!
//! A character is what a reader sees as one: a letter with its marks, or an emoji that is made of several. Digits are
//! not changed, since the translation has the same number.

use crate::random::Draws;
use unicode_segmentation::UnicodeSegmentation;

/// The text with characters of its words swapped. Each character but the last of a word is swapped with the next one
/// with this probability.
pub(super) fn swap(text: &str, probability: f64, draws: Draws) -> String {
    change_words(text, |word, first| {
        for i in 1..word.len() {
            let hit = draws.unit(first + i as u64) < probability;
            if hit && !is_fixed(word[i - 1]) && !is_fixed(word[i]) {
                word.swap(i - 1, i);
            }
        }
    })
}

/// The text with characters of its words left out, each with this probability. A word keeps at least one.
pub(super) fn delete(text: &str, probability: f64, draws: Draws) -> String {
    change_words(text, |word, first| {
        let Some(spare) = word.first().copied() else {
            return;
        };
        let mut i = first;
        word.retain(|character| {
            let hit = draws.unit(i) < probability;
            i += 1;
            !hit || is_fixed(character)
        });
        if word.is_empty() {
            word.push(spare);
        }
    })
}

/// Changes the characters of each word. `change` is also given the number of the word's first character in the text,
/// white space not counted.
fn change_words(text: &str, change: impl Fn(&mut Vec<&str>, u64)) -> String {
    let mut changed = String::with_capacity(text.len());
    let mut word = Vec::new();
    let mut first = 0;
    for part in text.split_inclusive(char::is_whitespace) {
        let end = part.trim_end_matches(char::is_whitespace).len();
        let (characters, space) = part.split_at(end);
        word.clear();
        word.extend(characters.graphemes(true));
        let number = word.len() as u64;
        change(&mut word, first);
        first += number;
        changed.extend(word.drain(..));
        changed.push_str(space);
    }
    changed
}

fn is_fixed(character: &str) -> bool {
    character.chars().any(char::is_numeric)
}
