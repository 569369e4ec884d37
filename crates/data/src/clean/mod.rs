//! Which pairs are dropped, and why.

mod counts;
mod held_out;
mod language;
mod reason;
mod script;

pub use counts::Counts;
pub use held_out::HeldOut;
pub use reason::Reason;
pub(crate) use script::Scripts;

use crate::{CleanConfig, Normalization, Result, SourceKind};
use serde::Serialize;
use std::borrow::Cow;
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{UnicodeNormalization, is_nfc, is_nfkc};

/// Part of [`Cleaner::identity`]. It is raised when a filter decides differently than before.
const VERSION: u32 = 1;

/// The filters of `[data.clean]` and `data.max_length`, and the normalisation of text.
///
/// A pair passes through [`Cleaner::normalize`], [`Cleaner::check_text`], and after it is encoded
/// [`Cleaner::check_tokens`]. Whoever reads a corpus finds duplicates, if [`Cleaner::drops_duplicates`].
#[derive(Clone, Debug)]
pub struct Cleaner {
    config: CleanConfig,
    source_scripts: Scripts,
    target_scripts: Scripts,
    max_length: usize,
    held_out: HeldOut,
    keep_empty: bool,
}

impl Cleaner {
    /// The filters for training data. It is an error if a script is unknown, or if the scripts of a language are
    /// asked for and not known.
    pub fn new(
        config: &CleanConfig,
        source_language: &str,
        target_language: &str,
        max_length: usize,
        held_out: HeldOut,
    ) -> Result<Self> {
        let scripts = |side: &str, names, language| {
            Scripts::new(&format!("data.clean.{side}_scripts"), names, language)
        };
        Ok(Self {
            source_scripts: scripts("source", &config.source_scripts, source_language)?,
            target_scripts: scripts("target", &config.target_scripts, target_language)?,
            config: config.clone(),
            max_length,
            held_out,
            keep_empty: false,
        })
    }

    /// For validation and test data: text is normalised, and only pairs that are too long are dropped. A side may be
    /// empty.
    pub fn held_out(config: &CleanConfig, max_length: usize) -> Self {
        Self {
            config: CleanConfig {
                normalize: config.normalize,
                ..CleanConfig::default()
            },
            source_scripts: Scripts::default(),
            target_scripts: Scripts::default(),
            max_length,
            held_out: HeldOut::new(),
            keep_empty: true,
        }
    }

    /// The most tokens of a side, including `</s>`.
    pub(crate) fn max_length(&self) -> usize {
        self.max_length
    }

    /// The text in the form of `data.clean.normalize`. Text that has this form already is not copied.
    pub fn normalize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.config.normalize {
            Some(Normalization::Nfc) if !text.is_ascii() && !is_nfc(text) => {
                text.nfc().collect::<String>().into()
            }
            Some(Normalization::Nfkc) if !text.is_ascii() && !is_nfkc(text) => {
                text.nfkc().collect::<String>().into()
            }
            _ => text.into(),
        }
    }

    /// Why a pair of normalised text is dropped, if it is.
    pub fn check_text(&self, source: &str, target: &str) -> Option<Reason> {
        self.check(SourceKind::Text, source, target)
    }

    /// The same for a pair whose source may be the path of a file, whose characters do not matter.
    pub(crate) fn check(&self, kind: SourceKind, source: &str, target: &str) -> Option<Reason> {
        let config = &self.config;
        let either =
            |is_bad: &dyn Fn(&str) -> bool| (kind.is_text() && is_bad(source)) || is_bad(target);
        let is_empty = |text: &str| text.trim().is_empty();
        if !self.keep_empty && (is_empty(source) || is_empty(target)) {
            return Some(Reason::Empty);
        }
        if let Some(most) = config.max_chars
            && either(&|text| has_more_chars(text, most))
        {
            return Some(Reason::TooManyChars);
        }
        if config.same && source.trim() == target.trim() {
            return Some(Reason::Same);
        }
        if let Some(least) = config.min_letters
            && either(&|text| share_of_letters(text) < least)
        {
            return Some(Reason::FewLetters);
        }
        let is_accepted = !kind.is_text() || self.source_scripts.accept(source);
        if !is_accepted || !self.target_scripts.accept(target) {
            return Some(Reason::WrongScript);
        }
        if config.overlap && self.held_out.contains(source, target) {
            return Some(Reason::Overlap);
        }
        None
    }

    /// Why a pair with so many tokens on its sides is dropped, if it is. The numbers include `</s>`.
    pub fn check_tokens(&self, source: usize, target: usize) -> Option<Reason> {
        let (shorter, longer) = (source.min(target), source.max(target));
        if !self.keep_empty && shorter <= 1 {
            return Some(Reason::Empty);
        }
        if longer > self.max_length {
            return Some(Reason::TooLong);
        }
        let (shorter, longer) = (shorter.saturating_sub(1), longer.saturating_sub(1));
        if self.config.min_tokens.is_some_and(|least| shorter < least) {
            return Some(Reason::TooShort);
        }
        // A quotient is rounded to the number that the config has, which a product is not.
        let ratio = longer as f64 / shorter as f64;
        if self.config.max_ratio.is_some_and(|most| ratio > most) {
            return Some(Reason::Ratio);
        }
        None
    }

    /// Whether pairs are dropped that came before in their corpus.
    pub fn drops_duplicates(&self) -> bool {
        self.config.duplicates
    }

    /// Bytes that are the same for the same filters only.
    pub fn identity(&self) -> Vec<u8> {
        let config = &self.config;
        let uses_unicode = config.normalize.is_some()
            || config.min_letters.is_some()
            || !self.source_scripts.is_empty()
            || !self.target_scripts.is_empty();
        let identity = Identity {
            version: VERSION,
            config: CleanConfig {
                source_scripts: self.source_scripts.names(),
                target_scripts: self.target_scripts.names(),
                ..config.clone()
            },
            max_length: self.max_length,
            keep_empty: self.keep_empty,
            held_out: config
                .overlap
                .then(|| format!("{:032x}", self.held_out.fingerprint())),
            unicode: uses_unicode.then(unicode_versions),
        };
        serde_json::to_vec(&identity).expect("numbers, strings and lists of them")
    }
}

#[derive(Serialize)]
struct Identity {
    version: u32,
    config: CleanConfig, // with the scripts that "auto" stands for
    max_length: usize,
    keep_empty: bool,
    held_out: Option<String>,
    unicode: Option<String>,
}

/// The versions of Unicode that say what a letter is, what its script is, and what normal text is.
fn unicode_versions() -> String {
    format!(
        "{:?} {:?} {:?}",
        char::UNICODE_VERSION,
        unicode_script::UNICODE_VERSION,
        unicode_normalization::UNICODE_VERSION
    )
}

fn has_more_chars(text: &str, most: usize) -> bool {
    // No text has more characters than bytes.
    text.len() > most && text.chars().nth(most).is_some()
}

/// The share of letters among the characters of a text. White space is not counted, nor are marks, which belong to
/// the character before them: whether an accent is composed makes no difference.
fn share_of_letters(text: &str) -> f64 {
    let (mut all, mut letters) = (0u64, 0u64);
    for c in text.chars().filter(|c| !c.is_whitespace() && !is_mark(*c)) {
        all += 1;
        letters += u64::from(c.is_alphabetic());
    }
    letters as f64 / all.max(1) as f64
}

fn letters(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().filter(|c| c.is_alphabetic() && !is_mark(*c))
}

/// Whether a character belongs to the one before it: a combining mark or a joiner.
fn is_mark(c: char) -> bool {
    !c.is_ascii() && (is_combining_mark(c) || matches!(c, '\u{200c}' | '\u{200d}'))
}
