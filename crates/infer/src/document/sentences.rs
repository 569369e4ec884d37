use std::ops::Range;

use super::words::trim;

/// Bytes that are searched for sentence ends at a time: the time of a search grows faster than its text.
const WINDOW: usize = 8 << 10;

/// The places of the sentences of a text. White space between them belongs to none.
///
/// `language` is a code such as `en`, for abbreviations and punctuation. An unknown one is treated as a language
/// that is written alike, or as English.
pub(super) fn sentences(text: &str, language: &str) -> Vec<Range<usize>> {
    let mut sentences = Vec::new();
    let mut start = 0; // of the sentence that is searched for its end
    let mut from = 0; // of the window
    while from < text.len() {
        let to = window_end(text, from);
        let boundaries = sentencex::get_sentence_boundaries(language, &text[from..to]);
        let ends = boundaries.iter().map(|found| from + found.end_byte);
        // The last sentence of a window may go on in the next.
        let mut ends: Vec<usize> = ends.filter(|end| *end < to).collect();
        if to == text.len() {
            ends.push(to);
        }
        from = *ends.last().unwrap_or(&to);
        for end in ends {
            let sentence = trim(text, start..end.max(start));
            if !sentence.is_empty() {
                sentences.push(sentence);
            }
            start = end.max(start);
        }
    }
    sentences
}

/// Where a window ends: after white space, if it has any.
fn window_end(text: &str, from: usize) -> usize {
    if text.len() - from <= WINDOW {
        return text.len();
    }
    let to = text.floor_char_boundary(from + WINDOW);
    match text[from..to].rfind(char::is_whitespace) {
        Some(0) | None => to,
        Some(space) => text.ceil_char_boundary(from + space + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn split<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
        let places = sentences(text, language);
        places.into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn a_paragraph_is_split_at_sentence_ends_and_not_at_abbreviations() {
        let text = "  Dr. Smith paid $3.50 for it.  It was late! Was it?";
        let found = ["Dr. Smith paid $3.50 for it.", "It was late!", "Was it?"];
        assert_eq!(split(text, "en"), found);
        assert_eq!(split("犬が走る。猫も。", "ja"), ["犬が走る。", "猫も。"]);
        assert_eq!(split("no end", "xx"), ["no end"]);
        assert!(split(" \t ", "en").is_empty());
    }

    #[test]
    fn long_texts_are_split_as_short_ones_and_in_linear_time() {
        let one = "The dog runs. Dr. Smith sees it! ";
        let many = one.repeat((1 << 20) / one.len());
        let found = split(&many, "en");
        assert_eq!(found.len(), 2 * (many.len() / one.len()));
        assert!(
            found
                .chunks(2)
                .all(|two| two == ["The dog runs.", "Dr. Smith sees it!"])
        );
        for unit in ["犬。猫「", "“a. ", "\"", "a", " ", ".", "é"] {
            let text = unit.repeat((1 << 20) / unit.len());
            let start = Instant::now();
            let places = sentences(&text, "en");
            assert!(places.is_sorted_by(|a, b| a.end <= b.start));
            assert!(start.elapsed().as_secs() < 5, "{unit}");
        }
    }
}
