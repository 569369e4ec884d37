//! Tokens to be looked at one by one.

use attend_data::Tokenizer;
use unicode_width::UnicodeWidthChar;

/// What SentencePiece and what GPT-2 make of the space before a word.
const SPACES: [char; 2] = ['▁', 'Ġ'];
/// A space that can be seen.
const SPACE: &str = "␣";
/// What stands before a piece that goes on with a word, as grammars write a suffix.
const SUFFIX: char = '-';

/// Each token as a reader would write it: `▁work`, `ed` as `work`, `-ed`. A token that is only a
/// part of a character, or is special, is as it stands in the vocabulary.
pub(crate) fn pieces(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    let pieces: Vec<Piece> = ids.iter().map(|&id| Piece::of(tokenizer, id)).collect();
    // Where no piece says that it begins a word, all do (words) or none is one (characters).
    let marked = pieces.iter().any(|piece| piece.kind == Kind::Start);
    let mut within = false; // whether the token before was of a word, which may go on
    let read = pieces.into_iter().map(|Piece { text, kind }| {
        let suffix = kind == Kind::Suffix
            || (kind == Kind::Plain && marked && within && text.starts_with(is_of_words));
        within = kind != Kind::Apart;
        match suffix {
            true => format!("{SUFFIX}{text}"),
            false => text,
        }
    });
    read.collect()
}

/// A letter or digit of a script that has spaces between words: of others, such as Chinese, any
/// piece may be a word.
fn is_of_words(c: char) -> bool {
    c.is_alphanumeric() && c.width() == Some(1)
}

struct Piece {
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Begins a word, and says so.
    Start,
    /// Goes on with a word, and says so.
    Suffix,
    /// Says neither.
    Plain,
    /// Not of a word: special, a space, or a part of a character.
    Apart,
}

impl Piece {
    fn of(tokenizer: &Tokenizer, id: u32) -> Self {
        let raw = tokenizer.token(id).unwrap_or_else(|| format!("#{id}"));
        let apart = |text: &str| Self {
            text: text.into(),
            kind: Kind::Apart,
        };
        if [tokenizer.eos(), tokenizer.unk(), tokenizer.pad()].contains(&id) {
            return apart(&raw);
        }
        // Decoded, since in some vocabularies letters stand for bytes: `Ã¼` is `ü`.
        let text = tokenizer.decode(&[id]).unwrap_or_default();
        if text.contains(char::REPLACEMENT_CHARACTER) {
            return apart(&raw);
        }
        // `Ġ` is a letter too, in Maltese: it is a space where decoding makes it one.
        let start = raw.starts_with(SPACES[0]) || (raw.starts_with(SPACES[1]) && raw != text);
        let text = match text.is_empty() {
            true => raw.trim_start_matches(SPACES),
            false => text.trim_start_matches(SPACES[0]).trim(),
        };
        let (text, kind) = match text.strip_prefix("##") {
            Some(rest) if raw.starts_with("##") && !rest.is_empty() => (rest, Kind::Suffix),
            _ if start => (text, Kind::Start),
            _ => (text, Kind::Plain),
        };
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        match text.is_empty() {
            true => apart(SPACE),
            false => Self { text, kind },
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

    /// A tokenizer of this vocabulary, of which every piece is a word.
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
    fn pieces_of_words_are_written_like_suffixes() {
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
    fn words_and_characters_are_not_pieces_of_words() {
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
    fn letters_that_stand_for_bytes_are_decoded_if_they_are_whole_characters() {
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
    fn the_maltese_letter_is_no_space() {
        assert_eq!(given(r#""Ġorġ":2"#, "null", "Ġorġ"), ["Ġorġ", "</s>"]);
    }

    #[test]
    fn pieces_that_say_they_are_suffixes_are_written_as_such() {
        let read = given(
            r###""work":2,"##ing":3,"##":4"###,
            "null",
            "work ##ing ## other",
        );
        assert_eq!(read, ["work", "-ing", "##", "<unk>", "</s>"]);
    }
}
