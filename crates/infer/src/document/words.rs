use std::ops::Range;

/// The places of the words of a text: what white space separates.
pub(super) fn words(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices() {
        match (c.is_whitespace(), start) {
            (true, Some(from)) => {
                words.push(from..at);
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
    }
    words.extend(start.map(|from| from..text.len()));
    words
}

/// A place without the white space at its ends. Empty at its start if it has nothing else.
pub(super) fn trim(text: &str, place: Range<usize>) -> Range<usize> {
    let inside = &text[place.clone()];
    let start = place.start + (inside.len() - inside.trim_start().len());
    start..start + inside.trim().len()
}

/// Whether a mark can stand at the end of a word without being part of it. Not `%`, `/` or `-`.
pub(super) fn is_punctuation(c: char) -> bool {
    matches!(
        c,
        '.' | ','
            | ';'
            | ':'
            | '!'
            | '?'
            | '…'
            | '"'
            | '\''
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '<'
            | '>'
            | '«'
            | '»'
            | '‹'
            | '›'
            | '‘'
            | '’'
            | '‚'
            | '“'
            | '”'
            | '„'
            | '¿'
            | '¡'
            | '。'
            | '、'
            | '，'
            | '！'
            | '？'
            | '：'
            | '；'
            | '（'
            | '）'
            | '「'
            | '」'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_white_space_separates() {
        let text = " a\u{a0}dog,  runs\t";
        let found: Vec<&str> = words(text).into_iter().map(|word| &text[word]).collect();
        assert_eq!(found, ["a", "dog,", "runs"]);
        assert!(words(" \t").is_empty() && words("").is_empty());
        assert_eq!(trim(text, 0..text.len()), 1..text.len() - 1);
        assert_eq!(trim("  ", 0..2), 2..2);
    }
}
