use std::ops::Range;

use crate::Result;

use super::layout::CountTokens;
use super::sentences::sentences;
use super::words::{trim, words};

/// Where a piece that is too long may be split. What comes first is better.
#[derive(Clone, Copy)]
enum Level {
    Sentence,
    Clause,
    Word,
}

/// A part of a text and its length in tokens.
#[derive(Clone)]
struct Piece {
    place: Range<usize>,
    tokens: usize,
}

/// Splits the pieces of a text that have more than `most` tokens: at sentence ends, within a sentence that is
/// still too long at clause punctuation, and within a clause at white space. Clauses and words are joined again
/// as far as they fit. A single word is never split, and no `whole` place is.
pub(super) fn fit(
    text: &str,
    pieces: Vec<Range<usize>>,
    whole: &[Range<usize>],
    language: &str,
    most: usize,
    count: &CountTokens,
) -> Result<Vec<Range<usize>>> {
    let mut pieces = counted(text, pieces, count)?;
    for level in [Level::Sentence, Level::Clause, Level::Word] {
        if pieces.iter().all(|piece| piece.tokens <= most) {
            break;
        }
        // All parts are counted at once, which uses all cores.
        let mut parts = Vec::new();
        let mut sizes = Vec::new();
        for piece in pieces.iter().filter(|piece| piece.tokens > most) {
            let found = level.split(text, &piece.place, whole, language);
            sizes.push(found.len());
            parts.extend(found);
        }
        let mut parts = counted(text, parts, count)?.into_iter();
        let mut sizes = sizes.into_iter();
        let mut next = Vec::new();
        for piece in pieces {
            if piece.tokens <= most {
                next.push(piece);
            } else {
                let size = sizes.next().unwrap_or(0);
                let parts: Vec<Piece> = parts.by_ref().take(size).collect();
                next.extend(level.join(parts, most));
            }
        }
        pieces = next;
    }
    Ok(pieces.into_iter().map(|piece| piece.place).collect())
}

fn counted(text: &str, places: Vec<Range<usize>>, count: &CountTokens) -> Result<Vec<Piece>> {
    let texts: Vec<&str> = places.iter().map(|place| &text[place.clone()]).collect();
    let counts = count(&texts)?;
    let pieces = places.into_iter().zip(counts);
    Ok(pieces
        .map(|(place, tokens)| Piece { place, tokens })
        .collect())
}

impl Level {
    /// The parts of a place, without the white space between them.
    fn split(
        self,
        text: &str,
        place: &Range<usize>,
        whole: &[Range<usize>],
        language: &str,
    ) -> Vec<Range<usize>> {
        let inside = &text[place.clone()];
        let parts = match self {
            Self::Sentence => sentences(inside, language),
            Self::Clause => clauses(inside),
            Self::Word => words(inside),
        };
        let parts = parts
            .into_iter()
            .map(|part| place.start + part.start..place.start + part.end);
        join_whole(parts, whole)
    }

    /// Joins neighbours of one piece that fit together.
    fn join(self, parts: Vec<Piece>, most: usize) -> Vec<Piece> {
        let most = match self {
            Self::Sentence => return parts, // models are trained on sentences
            Self::Clause => most,
            // Pieces of equal size, rather than a last one of one word.
            Self::Word => {
                let total: usize = parts.iter().map(|part| part.tokens).sum();
                total.div_ceil(total.div_ceil(most).max(1))
            }
        };
        let mut joined: Vec<Piece> = Vec::new();
        for part in parts {
            match joined.last_mut() {
                Some(last) if last.tokens + part.tokens <= most => {
                    last.place.end = part.place.end;
                    last.tokens += part.tokens;
                }
                _ => joined.push(part),
            }
        }
        joined
    }
}

/// Joins parts that meet inside of a place that must stay whole. Both are in order.
pub(super) fn join_whole(
    parts: impl IntoIterator<Item = Range<usize>>,
    whole: &[Range<usize>],
) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    let mut whole = whole.iter().peekable();
    for part in parts {
        while whole.next_if(|place| place.end <= part.start).is_some() {}
        match joined.last_mut() {
            // The end of the last part is inside, and so is this start.
            Some(last) if whole.peek().is_some_and(|place| place.start < last.end) => {
                last.end = part.end;
            }
            _ => joined.push(part),
        }
    }
    joined
}

/// The parts of a sentence that end with clause punctuation before white space, or with that of Chinese or
/// Japanese.
fn clauses(text: &str) -> Vec<Range<usize>> {
    let mut clauses = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek();
        let ends = match c {
            '，' | '、' | '；' | '：' => true,
            ',' | ';' | ':' | '–' | '—' => next.is_some_and(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        let end = at + c.len_utf8();
        if ends || next.is_none() {
            let clause = trim(text, start..end);
            clauses.extend((!clause.is_empty()).then_some(clause));
            start = end;
        }
    }
    clauses
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// A token for each word, and one for each four letters of a longer one.
    fn count(texts: &[&str]) -> Result<Vec<usize>> {
        let of_word = |word: &str| word.len().div_ceil(4);
        let of = |text: &&str| text.split_whitespace().map(of_word).sum();
        Ok(texts.iter().map(of).collect())
    }

    fn all(text: &str) -> Vec<Range<usize>> {
        let all = 0..text.len();
        vec![all]
    }

    fn split(text: &str, most: usize) -> Vec<&str> {
        let places = fit(text, all(text), &[], "en", most, &count).unwrap();
        places.into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn a_line_is_split_at_sentences_then_clauses_then_words() {
        let text = "One two. If a b, then c d; or e: f end. Last";
        assert_eq!(split(text, 20), [text]);
        let sentences = ["One two.", "If a b, then c d; or e: f end.", "Last"];
        assert_eq!(split(text, 10), sentences);
        let clauses = ["One two.", "If a b,", "then c d;", "or e: f end.", "Last"];
        assert_eq!(split(text, 4), clauses);
        let words = [
            "One two.", "If a", "b,", "then c", "d;", "or e:", "f end.", "Last",
        ];
        assert_eq!(split(text, 2), words);
        let equal = ["a b c", "d e f", "g h"];
        assert_eq!(split("a b c d e f g h", 3), equal);
        assert_eq!(split("a abcdefghij b", 2), ["a", "abcdefghij", "b"]);
    }

    #[test]
    fn what_must_stay_whole_is_not_split() {
        let text = "see a, b. C d e";
        let whole = [4..11, 14..15];
        let places = fit(text, all(text), &whole, "en", 1, &count).unwrap();
        let found: Vec<&str> = places.into_iter().map(|place| &text[place]).collect();
        assert_eq!(found, ["see", "a, b. C", "d", "e"]);
    }

    #[test]
    fn a_megabyte_is_split_in_linear_time_and_every_piece_fits() {
        for unit in ["a dog, ", "a dog ", "The dog. ", "， ", "x"] {
            let text = unit.repeat((1 << 20) / unit.len());
            let start = Instant::now();
            let places = fit(&text, all(&text), &[], "en", 50, &count).unwrap();
            assert!(start.elapsed().as_secs() < 5, "{unit}");
            let texts: Vec<&str> = places.iter().map(|place| &text[place.clone()]).collect();
            let counts = count(&texts).unwrap();
            assert!(unit == "x" || counts.iter().all(|&tokens| tokens <= 50));
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
            assert_eq!(letters(&texts.concat()), letters(&text));
        }
    }
}
