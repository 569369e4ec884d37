//! Whole words in text. A word ends where two characters do not belong to one word, which depends on these two
//! alone: that can be said of a text of which only the beginning is known.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

/// Whether no word ends between these two characters.
pub(crate) fn joins(before: char, after: char) -> bool {
    if is_mark(after) {
        return !before.is_whitespace();
    }
    let in_word = |c: char| is_word(c) || is_mark(c);
    in_word(before) && is_word(after) && !is_unspaced(before) && !is_unspaced(after)
}

/// Whether a word that ends in this character may go on, whatever follows but marks.
pub(crate) fn may_go_on(last: char) -> bool {
    (is_word(last) || is_mark(last)) && !is_unspaced(last)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Accents, vowel signs and joiners, which belong to what is before them.
fn is_mark(c: char) -> bool {
    c.width() == Some(0) && c != '\u{200b}'
}

/// Letters of scripts that are written without spaces between words: any of their words may end anywhere.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'       // Thai, Lao
        | '\u{1000}'..='\u{109f}'     // Burmese
        | '\u{1780}'..='\u{17ff}'     // Khmer
        | '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' // Chinese
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' // Japanese
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

/// The text with one space for any white space between words, and none around them.
pub(crate) fn tidy(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where the phrase is in the text as whole words, from first to last. Overlapping places are among them.
pub(crate) fn places<'a>(
    text: &'a str,
    phrase: &'a str,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut from = 0;
    std::iter::from_fn(move || {
        while !phrase.is_empty() {
            let start = from + text.get(from..)?.find(phrase)?;
            from = start + text[start..].chars().next().map_or(1, char::len_utf8);
            let place = start..start + phrase.len();
            if is_whole(text, &place) {
                return Some(place);
            }
        }
        None
    })
}

/// Whether the text has the phrase as whole words.
pub(crate) fn has(text: &str, phrase: &str) -> bool {
    places(text, phrase).next().is_some()
}

/// Whether words begin and end where this place does.
pub(crate) fn is_whole(text: &str, place: &Range<usize>) -> bool {
    ends_at(text, place.start) && ends_at(text, place.end)
}

/// Whether no word goes on over this place.
fn ends_at(text: &str, place: usize) -> bool {
    let before = text[..place].chars().next_back();
    let after = text[place..].chars().next();
    before
        .zip(after)
        .is_none_or(|(before, after)| !joins(before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_found_as_whole_words_only() {
        for (text, phrase, expected) in [
            ("ein Hund rennt", "Hund", true),
            ("Hund", "Hund", true),
            ("„Hund“, sagt er", "Hund", true),
            ("der Hund-Besitzer", "Hund", true),
            ("ein Hundehaus", "Hund", false),
            ("Jagdhund", "hund", false),
            ("ein Hund", "hund", false),
            ("Hunde, Hund", "Hund", true),
            ("der kleine Hund rennt", "kleine Hund", true),
            ("der kleine Hunde", "kleine Hund", false),
            ("cafe\u{301} au lait", "cafe", false),
            ("ein_Hund", "Hund", false),
            ("er kann C++ gut", "C++", true),
            ("C++11", "C++", true),
            ("犬が走る", "犬", true),
            ("หมาวิ่ง", "หมา", true),
            ("क्या", "क", false),
            ("aaa", "aa", false),
            ("a-aa", "aa", true),
            ("", "Hund", false),
            ("Hund", "", false),
        ] {
            assert_eq!(has(text, phrase), expected, "{phrase} in {text}");
        }
        let all: Vec<_> = places("Hund Hunde Hund", "Hund").collect();
        assert_eq!(all, [0..4, 11..15]);
    }

    #[test]
    fn white_space_is_one_space_and_only_between_words() {
        assert_eq!(tidy("  New\t York \u{a0}City\n"), "New York City");
        assert_eq!(tidy(" \u{3000} "), "");
    }
}
