//! The text of an XML file as UTF-8, a bounded piece at a time.

use std::io::{self, BufRead, Read};

/// Maximum length of one event of the parser: a tag, a comment, or text without a tag. The parser itself knows no
/// limit.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// The kind of the error of an event that is longer.
pub(super) const TOO_LONG: io::ErrorKind = io::ErrorKind::FileTooLarge;

/// Stands in for what is not valid UTF-8 or UTF-16. XML does not allow this character, so it is not in valid text.
pub(super) const INVALID: char = '\u{ffff}';

const PIECE: usize = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

/// A reader of valid UTF-8. The encoding is told by the first bytes: UTF-16 has a byte order mark, or begins with a
/// `<` of two bytes; everything else is read as UTF-8.
pub(super) struct Decoded<R> {
    inner: R,
    encoding: Encoding,
    waiting: Vec<u8>, // bytes that were read and are not decoded yet
    text: Vec<u8>,
    used: usize, // bytes of `text` that were given out
    ended: bool,
    newlines: u64,
    event: usize, // bytes since the event began
}

impl<R: Read> Decoded<R> {
    pub(super) fn new(mut inner: R) -> io::Result<Self> {
        let mut waiting = Vec::new();
        inner.by_ref().take(3).read_to_end(&mut waiting)?;
        let (encoding, mark) = match &waiting[..] {
            [0xef, 0xbb, 0xbf] => (Encoding::Utf8, 3),
            [0xff, 0xfe, ..] => (Encoding::Utf16Le, 2),
            [0xfe, 0xff, ..] => (Encoding::Utf16Be, 2),
            [b'<', 0, ..] => (Encoding::Utf16Le, 0),
            [0, b'<', ..] => (Encoding::Utf16Be, 0),
            _ => (Encoding::Utf8, 0),
        };
        waiting.drain(..mark);
        Ok(Self {
            inner,
            encoding,
            waiting,
            text: Vec::new(),
            used: 0,
            ended: false,
            newlines: 0,
            event: 0,
        })
    }

    /// The number of the line at which the reader is, counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.newlines + 1
    }

    pub(super) fn is_utf16(&self) -> bool {
        self.encoding != Encoding::Utf8
    }

    /// The parser asks for the next event, which may have [`MAX_EVENT_BYTES`].
    pub(super) fn begin_event(&mut self) {
        self.event = 0;
    }

    /// Decodes another piece. No text after this means the end of the file.
    fn decode(&mut self) -> io::Result<()> {
        self.text.clear();
        self.used = 0;
        while self.text.is_empty() && !self.ended {
            let size = self.waiting.len();
            let mut piece = self.inner.by_ref().take(PIECE as u64);
            piece.read_to_end(&mut self.waiting)?;
            self.ended = self.waiting.len() - size < PIECE;
            let decoded = match self.encoding {
                Encoding::Utf8 => decode_utf8(&self.waiting, self.ended, &mut self.text),
                Encoding::Utf16Le => {
                    let unit = u16::from_le_bytes;
                    decode_utf16(&self.waiting, unit, self.ended, &mut self.text)
                }
                Encoding::Utf16Be => {
                    let unit = u16::from_be_bytes;
                    decode_utf16(&self.waiting, unit, self.ended, &mut self.text)
                }
            };
            self.waiting.drain(..decoded);
        }
        Ok(())
    }
}

impl<R: Read> BufRead for Decoded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.event > MAX_EVENT_BYTES {
            let problem = format!("more than {MAX_EVENT_BYTES} bytes without a tag");
            return Err(io::Error::new(TOO_LONG, problem));
        }
        if self.used == self.text.len() {
            self.decode()?;
        }
        Ok(&self.text[self.used..])
    }

    fn consume(&mut self, amount: usize) {
        let text = &self.text[self.used..][..amount];
        self.newlines += text.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.used += amount;
        self.event += amount;
    }
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.fill_buf()?.read(buffer)?;
        self.consume(size);
        Ok(size)
    }
}

fn push(character: char, text: &mut Vec<u8>) {
    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Appends what is decoded, and returns the number of bytes that this was. A character whose end is missing waits
/// for it, unless the text has `ended`.
fn decode_utf8(bytes: &[u8], ended: bool, text: &mut Vec<u8>) -> usize {
    let mut decoded = 0;
    for chunk in bytes.utf8_chunks() {
        text.extend_from_slice(chunk.valid().as_bytes());
        decoded += chunk.valid().len();
        let invalid = chunk.invalid().len();
        let rest = &bytes[decoded..];
        let is_cut = rest.len() == invalid
            && std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
        if invalid > 0 && (ended || !is_cut) {
            push(INVALID, text);
            decoded += invalid;
        }
    }
    decoded
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16, ended: bool, text: &mut Vec<u8>) -> usize {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let is_high = |pair: &[u8; 2]| (0xd800..0xdc00).contains(&unit(*pair));
    let pairs = match pairs {
        [whole @ .., last] if !ended && is_high(last) => whole,
        pairs => pairs,
    };
    for character in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        push(character.unwrap_or(INVALID), text);
    }
    if ended && !rest.is_empty() {
        push(INVALID, text);
        return bytes.len();
    }
    pairs.len() * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> String {
        let mut text = String::new();
        let mut reader = Decoded::new(bytes).unwrap();
        reader.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn characters_that_are_cut_by_the_end_of_a_piece_are_whole() {
        for shift in 0..8 {
            let text = format!("<{}{}", "x".repeat(shift), "aä€😀".repeat(5000));
            assert_eq!(decode(text.as_bytes()), text);
            for unit in [u16::to_le_bytes, u16::to_be_bytes] {
                let bytes: Vec<u8> = text.encode_utf16().flat_map(unit).collect();
                assert_eq!(decode(&bytes), text);
            }
        }
    }

    #[test]
    fn what_is_not_valid_is_marked_and_the_rest_is_kept() {
        assert_eq!(decode(b"a\xffb\xc3"), "a\u{ffff}b\u{ffff}");
        assert_eq!(decode(b"\xff\xfea\0\0\xd8b\0c"), "a\u{ffff}b\u{ffff}");
        assert_eq!(decode(b"\xef\xbb\xbfa"), "a");
        assert_eq!(decode(b""), "");
        assert_eq!(decode(b"\xc3"), "\u{ffff}");
    }
}
