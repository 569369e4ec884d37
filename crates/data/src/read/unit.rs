//! One unit of a translation memory: a text in several languages.

use super::decoded::INVALID;
use super::{Pair, bad, on_one_line, pair};
use crate::{MAX_LINE_BYTES, Result};
use std::path::Path;

/// What is known of a unit while it is read.
#[derive(Default)]
pub(super) struct Unit {
    line: u64,
    sides: [Option<Segment>; 2],
    current: Option<Current>,
    problem: Option<String>,
}

struct Segment {
    text: String,
    is_exact: bool, // the language is that of the config, not only a variety of it
}

/// The variant that is being read: the sides that it may be, and its text.
struct Current {
    matches: [Option<bool>; 2], // whether exactly
    text: Option<String>,
}

impl Unit {
    pub(super) fn at(line: u64) -> Self {
        Self {
            line,
            ..Self::default()
        }
    }

    /// The same unit at this line, if it is not known where it began.
    pub(super) fn or_at(self, line: u64) -> Self {
        match self.line {
            0 => Self { line, ..self },
            _ => self,
        }
    }

    pub(super) fn begin_variant(&mut self, language: &str, wanted: &[String; 2]) {
        let matches = [0, 1].map(|side| matching(&wanted[side], language));
        self.current = Some(Current {
            matches,
            text: None,
        });
    }

    pub(super) fn end_variant(&mut self) {
        let Some(Current { matches, text }) = self.current.take() else {
            return;
        };
        let Some(text) = text else { return };
        for (side, is_exact) in matches.into_iter().enumerate() {
            // The first of several variants, and one of exactly this language before others.
            let is_better = match (is_exact, &self.sides[side]) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(is_exact), Some(other)) => is_exact && !other.is_exact,
            };
            if is_better {
                self.sides[side] = Some(Segment {
                    text: text.clone(),
                    is_exact: is_exact == Some(true),
                });
            }
        }
    }

    /// Text of the segment that is being read.
    pub(super) fn push(&mut self, text: &str) {
        let Some(current) = &mut self.current else {
            return;
        };
        if current.matches == [None, None] {
            return;
        }
        let whole = current.text.get_or_insert_default();
        if whole.len() + text.len() <= MAX_LINE_BYTES {
            whole.push_str(text);
        } else {
            let problem = format!("a segment of more than {MAX_LINE_BYTES} bytes");
            self.fail(problem);
        }
    }

    /// The unit cannot be used. The first problem is reported.
    pub(super) fn fail(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    pub(super) fn into_pair(
        self,
        path: &Path,
        wanted: &[String; 2],
        is_utf16: bool,
    ) -> Result<Pair> {
        let line = self.line;
        if let Some(problem) = self.problem {
            return Err(bad(path, line, problem));
        }
        let [source, target] = self.sides;
        let text = |segment: Option<Segment>, language: &str| match segment {
            None => Err(bad(path, line, format!("no {language}"))),
            Some(segment) if segment.text.contains(INVALID) => {
                let encoding = if is_utf16 { "UTF-16" } else { "UTF-8" };
                Err(bad(path, line, format!("not valid {encoding}")))
            }
            Some(segment) => Ok(on_one_line(segment.text)),
        };
        let (source, target) = (text(source, &wanted[0])?, text(target, &wanted[1])?);
        pair(path, line, source, target)
    }
}

/// Whether a unit's language is the wanted one, and exactly or as a variety of it: `en` finds `en-US`.
fn matching(wanted: &str, language: &str) -> Option<bool> {
    let plain = |tag: &str| tag.trim().to_ascii_lowercase().replace('_', "-");
    let (wanted, language) = (plain(wanted), plain(language));
    match language.strip_prefix(&wanted)? {
        "" => Some(true),
        rest => rest.starts_with('-').then_some(false),
    }
}
