//! Whitespace and case as in Python.

use std::borrow::Cow;

/// Whitespace as defined by Python's `str.isspace`: that of Unicode, and the separators U+001C to
/// U+001F.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// What stands between whitespace.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(is_space).filter(|word| !word.is_empty())
}

/// The line, in lower case if that is asked for.
pub(super) fn cased(line: &str, lowercase: bool) -> Cow<'_, str> {
    match lowercase {
        true => line.to_lowercase().into(),
        false => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_is_that_of_python() {
        let spaces = ('\0'..=char::MAX).filter(|&c| is_space(c)).count();
        assert_eq!(spaces, 29); // len([c for c in map(chr, range(0x110000)) if c.isspace()])
        assert!(is_space('\u{1f}') && is_space('\u{2028}') && !is_space('\u{200b}'));
    }

    #[test]
    fn lower_case_is_that_of_python() {
        // A sigma at the end of a word, and a capital of two characters in lower case.
        assert_eq!(cased("ΟΔΟΣ ΣΑΣ İI ẞ Ǆ", true), "οδος σας i\u{307}i ß ǆ");
        assert_eq!(cased("ΟΔΟΣ", false), "ΟΔΟΣ");
    }
}
