//! How BLEU splits a line into words.

mod chinese;
mod international;
mod western;

use super::text::is_space;

/// The tokenizers of sacreBLEU that need no model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Tokenizer {
    /// That of `mteval-v13a.pl`, for Western languages.
    #[default]
    #[value(name = "13a")]
    V13a,
    /// None: words are separated by whitespace already.
    None,
    /// Each character is a word.
    Char,
    /// That of `mteval-v14.pl`: punctuation and symbols of all of Unicode are words.
    Intl,
    /// Each Chinese character is a word; the rest as in `13a`.
    Zh,
}

impl Tokenizer {
    pub const ALL: [Self; 5] = [Self::V13a, Self::None, Self::Char, Self::Intl, Self::Zh];

    /// The name in options and signatures.
    pub fn name(self) -> &'static str {
        match self {
            Self::V13a => "13a",
            Self::None => "none",
            Self::Char => "char",
            Self::Intl => "intl",
            Self::Zh => "zh",
        }
    }

    /// The words of a line, with whitespace (that of Python) between them.
    pub(super) fn tokenize(self, line: &str) -> String {
        let line = line.trim_end_matches(is_space);
        match self {
            Self::V13a => western::tokenize(line),
            Self::None => line.to_owned(),
            Self::Char => line.chars().flat_map(|c| [c, ' ']).collect(),
            Self::Intl => international::tokenize(line),
            Self::Zh => chinese::tokenize(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::golden;
    use super::super::text::words;
    use super::*;

    #[test]
    fn words_equal_sacrebleu() {
        for (line, tokens) in golden().tokens {
            for (tokenizer, expected) in Tokenizer::ALL.into_iter().zip(tokens) {
                let tokenized = tokenizer.tokenize(&line);
                let ours: Vec<_> = words(&tokenized).collect();
                assert_eq!(ours.join(" "), expected, "{}: {line:?}", tokenizer.name());
            }
        }
    }
}
