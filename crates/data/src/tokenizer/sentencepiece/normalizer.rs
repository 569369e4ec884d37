//! Normalisation: replacements, then white space.

use super::SPACE;
use super::charsmap::Charsmap;
use super::proto::NormalizerSpec;
use super::trie::Trie;

pub(super) struct Normalizer {
    charsmap: Charsmap,
    pub(super) add_dummy_prefix: bool,
    pub(super) remove_extra_whitespaces: bool,
    escape_whitespaces: bool,
}

impl Normalizer {
    pub(super) fn new(spec: &NormalizerSpec) -> Result<Self, String> {
        Ok(Self {
            charsmap: Charsmap::parse(&spec.charsmap)?,
            add_dummy_prefix: spec.add_dummy_prefix,
            remove_extra_whitespaces: spec.remove_extra_whitespaces,
            escape_whitespaces: spec.escape_whitespaces,
        })
    }

    /// The text in which pieces are looked for. User-defined symbols are left as they are.
    pub(super) fn normalize<'a>(&'a self, mut text: &'a str, user_defined: &Trie) -> String {
        let space = if self.escape_whitespaces { SPACE } else { " " };
        let mut normalized = String::with_capacity(text.len() + text.len() / 2 + space.len());
        if self.remove_extra_whitespaces {
            while let (" ", rest) = self.next(text, user_defined) {
                text = rest;
            }
        }
        if text.is_empty() {
            return normalized;
        }
        if self.add_dummy_prefix {
            normalized.push_str(space);
        }
        let mut after_space = self.remove_extra_whitespaces;
        while !text.is_empty() {
            let (mut part, rest) = self.next(text, user_defined);
            text = rest;
            if after_space {
                part = part.trim_start_matches(' ');
            }
            if part.is_empty() {
                continue;
            }
            for (index, words) in part.split(' ').enumerate() {
                if index > 0 {
                    normalized.push_str(space);
                }
                normalized.push_str(words);
            }
            after_space = self.remove_extra_whitespaces && part.ends_with(' ');
        }
        if self.remove_extra_whitespaces {
            normalized.truncate(normalized.trim_end_matches(space).len());
        }
        normalized
    }

    /// What the beginning of the text becomes, and the text after it.
    fn next<'a>(&'a self, text: &'a str, user_defined: &Trie) -> (&'a str, &'a str) {
        if let Some((length, _)) = user_defined.longest(text.as_bytes()) {
            return text.split_at(length);
        }
        match self.charsmap.replace(text) {
            Some((length, part)) => (part, &text[length..]),
            None => text.split_at(text.chars().next().map_or(0, char::len_utf8)),
        }
    }
}
