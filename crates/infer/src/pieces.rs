//! The readable text of single tokens, for labels.

use attend_data::Tokenizer;
use unicode_width::UnicodeWidthChar;

/// The marks of SentencePiece and GPT-2 for the space before a word.
const SPACES: [char; 2] = ['▁', 'Ġ'];
/// A visible space.
const SPACE: &str = "␣";
/// The prefix of a piece that continues a word, as in the notation for suffixes: `-ed`.
const SUFFIX: char = '-';

/// The readable text of each token: `▁work`, `ed` become `work`, `-ed`. A special token, or a token
/// that is an incomplete UTF-8 sequence, is unchanged.
pub(crate) fn pieces(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    let pieces: Vec<Piece> = ids.iter().map(|&id| Piece::of(tokenizer, id)).collect();
    // If no piece is marked as the start of a word, tokens are whole words or single characters.
    let marked = pieces.iter().any(|piece| piece.kind == Kind::Start);
    let mut in_word = false; // whether the previous token is part of a word
    let texts = pieces.into_iter().map(|Piece { text, kind }| {
        let suffix = kind == Kind::Suffix
            || (kind == Kind::Plain && marked && in_word && text.starts_with(is_spaced_script));
        in_word = kind != Kind::Other;
        if suffix {
            format!("{SUFFIX}{text}")
        } else {
            text
        }
    });
    texts.collect()
}

/// Whether this is a letter or digit of a script with spaces between words. In other scripts, such
/// as Chinese, any piece may be a word.
pub(crate) fn is_spaced_script(c: char) -> bool {
    c.is_alphanumeric() && c.width() == Some(1)
}

struct Piece {
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Marked as the start of a word.
    Start,
    /// Marked as the continuation of a word.
    Suffix,
    /// Not marked.
    Plain,
    /// Not part of a word: a special token, a space, or an incomplete UTF-8 sequence.
    Other,
}

impl Piece {
    fn of(tokenizer: &Tokenizer, id: u32) -> Self {
        let raw = tokenizer.token(id).unwrap_or_else(|| format!("#{id}"));
        let other = |text: &str| Self {
            text: text.into(),
            kind: Kind::Other,
        };
        if [tokenizer.eos(), tokenizer.unk(), tokenizer.pad()].contains(&id) {
            return other(&raw);
        }
        // Byte-level vocabularies map bytes to letters, so tokens are decoded: `Ã¼` is `ü`.
        let text = tokenizer.decode(&[id]).unwrap_or_default();
        if text.contains(char::REPLACEMENT_CHARACTER) {
            return other(&raw);
        }
        // `Ġ` is also a Maltese letter. It is a space only if decoding changes the token.
        let start = raw.starts_with(SPACES[0]) || (raw.starts_with(SPACES[1]) && raw != text);
        let text = if text.is_empty() {
            raw.trim_start_matches(SPACES)
        } else {
            text.trim_start_matches(SPACES[0]).trim()
        };
        let (text, kind) = match text.strip_prefix("##") {
            Some(rest) if raw.starts_with("##") && !rest.is_empty() => (rest, Kind::Suffix),
            _ if start => (text, Kind::Start),
            _ => (text, Kind::Plain),
        };
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        if text.is_empty() {
            other(SPACE)
        } else {
            Self { text, kind }
        }
    }
}

#[cfg(test)]
mod tests {
    use attend_data::{TokenizerConfig, TokenizerKind};

    use super::*;

    fn trained(kind: TokenizerKind, text: &str) -> Vec<String> {
        let config = TokenizerConfig {
            kind,
            vocab_size: 40,
            ..TokenizerConfig::default()
        };
        let lines = ["a dog worked", "a dog", "dog worked a day"];
        let tokenizer = Tokenizer::train(&config, lines.into_iter()).unwrap();
        pieces(&tokenizer, &tokenizer.encode(text).unwrap())
    }

    /// The pieces of a text with a word-level tokenizer of this vocabulary.
    fn given(vocabulary: &str, decoder: &str, text: &str) -> Vec<String> {
        let json = format!(
            r#"{{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],
            "normalizer":null,"pre_tokenizer":{{"type":"WhitespaceSplit"}},"post_processor":null,
            "decoder":{decoder},"model":{{"type":"WordLevel","unk_token":"<unk>",
            "vocab":{{"</s>":0,"<unk>":1,{vocabulary}}}}}}}"#
        );
        let tokenizer = Tokenizer::from_json(&json).unwrap();
        pieces(&tokenizer, &tokenizer.encode(text).unwrap())
    }

    #[test]
    fn pieces_that_continue_a_word_start_with_a_hyphen() {
        let read = trained(TokenizerKind::Bpe, "dog worked, dagger");
        assert_eq!(read[0], "dog");
        assert!(read[1].starts_with('w'), "{read:?}");
        assert!(read.iter().any(|piece| piece.starts_with("-")), "{read:?}");
        assert!(read.iter().all(|piece| !piece.contains('▁')), "{read:?}");
        assert_eq!(read.last().unwrap(), "</s>");
        let joined = read[..read.len() - 1].concat().replace('-', "");
        assert_eq!(joined, "dogworked<unk>dagger");
    }

    #[test]
    fn word_and_character_tokens_have_no_hyphen() {
        assert_eq!(
            trained(TokenizerKind::Word, "dog worked a dog"),
            ["dog", "worked", "a", "dog", "</s>"]
        );
        assert_eq!(
            trained(TokenizerKind::Char, "a dog"),
            ["a", "␣", "d", "o", "g", "</s>"]
        );
    }

    #[test]
    fn byte_level_tokens_are_decoded_if_they_are_complete_characters() {
        let decoder = r#"{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,
            "use_regex":true}"#;
        let read = given(
            r#""ĠÃ¼ber":2,"Ã¼":3,"Ã":4,"Ġ":5,"ing":6"#,
            decoder,
            "ĠÃ¼ber Ã¼ Ã Ġ ing",
        );
        assert_eq!(read, ["über", "-ü", "Ã", "␣", "ing", "</s>"]);
    }

    #[test]
    fn a_maltese_letter_is_not_a_space() {
        assert_eq!(given(r#""Ġorġ":2"#, "null", "Ġorġ"), ["Ġorġ", "</s>"]);
    }

    #[test]
    fn word_pieces_marked_with_two_hashes_start_with_a_hyphen() {
        let read = given(
            r###""work":2,"##ing":3,"##":4"###,
            "null",
            "work ##ing ## other",
        );
        assert_eq!(read, ["work", "-ing", "##", "<unk>", "</s>"]);
    }
}
