use std::collections::HashMap;
use std::path::Path;

use attend_data::Lines;

use crate::words::{is_whole, joins, tidy};
use crate::{Error, Result};

/// How terms are translated: a file of lines `source<TAB>target`.
///
/// Blank lines, and lines that begin with `#`, are comments. A term of the source may have one translation only.
///
/// ```
/// use attend_infer::Glossary;
///
/// # fn main() -> attend_infer::Result<()> {
/// let folder = tempfile::tempdir().expect("a folder");
/// let path = folder.path().join("terms.tsv");
/// std::fs::write(&path, "dog\tHund\nguide dog\tBlindenhund\n").expect("a file");
/// let glossary = Glossary::open(&path)?;
/// assert_eq!(glossary.terms_for("A guide dog is a dog."), ["Blindenhund", "Hund"]);
/// assert!(glossary.terms_for("two dogs").is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Glossary {
    entries: Vec<Entry>,
    /// Entries by the first word of their source, in lower case.
    by_word: HashMap<String, Vec<usize>>,
}

#[derive(Debug)]
struct Entry {
    source: String,
    target: String,
    /// Counted from 1.
    line: usize,
}

/// How a line of the file is written.
const FORM: &str = "write a term, a tab and its translation";

impl Glossary {
    pub fn open(path: &Path) -> Result<Self> {
        let mut glossary = Self {
            entries: Vec::new(),
            by_word: HashMap::new(),
        };
        for (line, text) in (1..).zip(Lines::open(path)?) {
            let added = glossary.read(line, text?.trim_end_matches(['\r', '\n']));
            added.map_err(|(message, hint)| Error::Usage {
                message: format!("{}, line {line}: {message}", path.display()),
                hint: hint.into(),
            })?;
        }
        Ok(glossary)
    }

    /// A glossary of these terms and their translations.
    pub fn new<'t>(pairs: impl IntoIterator<Item = (&'t String, &'t String)>) -> Result<Self> {
        let mut glossary = Self {
            entries: Vec::new(),
            by_word: HashMap::new(),
        };
        for (number, (source, target)) in (1..).zip(pairs) {
            let added = glossary.add(number, &tidy(source), &tidy(target));
            added.map_err(|(message, hint)| Error::Usage {
                message: format!("glossary, entry {number}: {message}"),
                hint: hint.into(),
            })?;
        }
        Ok(glossary)
    }

    /// The number of terms.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reads a line of a file. An error is a message and a hint.
    fn read(&mut self, line: usize, text: &str) -> std::result::Result<(), (String, &'static str)> {
        if text.trim().is_empty() || text.starts_with('#') {
            return Ok(());
        }
        let sides: Vec<String> = text.split('\t').map(tidy).collect();
        match &sides[..] {
            [source, target] => self.add(line, source, target),
            [_] => Err(("no tab".to_string(), FORM)),
            sides => Err((format!("{} tabs", sides.len() - 1), FORM)),
        }
    }

    fn add(
        &mut self,
        line: usize,
        source: &str,
        target: &str,
    ) -> std::result::Result<(), (String, &'static str)> {
        for (side, name) in [(source, "term"), (target, "translation")] {
            if side.is_empty() {
                return Err((format!("the {name} is empty"), FORM));
            }
        }
        let known = self.by_word.entry(key(first_word(source))).or_default();
        let same = known.iter().map(|&i| &self.entries[i]);
        if let Some(entry) = { same }.find(|entry| entry.source == source) {
            if entry.target == target {
                return Ok(());
            }
            let message = format!(
                "`{source}` is `{target}` here, but `{}` on line {}",
                entry.target, entry.line
            );
            return Err((message, "keep one of the two"));
        }
        known.push(self.entries.len());
        self.entries.push(Entry {
            source: source.into(),
            target: target.into(),
            line,
        });
        Ok(())
    }

    /// The translations of the terms that a line has as whole words, in their order, each once. Where terms overlap,
    /// the first counts, and of those that begin at the same word the longest. A term that is written as it is in the
    /// file goes before one of the same length with other upper and lower case.
    pub fn terms_for(&self, line: &str) -> Vec<String> {
        let line = tidy(line);
        let mut terms: Vec<String> = Vec::new();
        let mut place = 0;
        while place < line.len() {
            let word = first_word(&line[place..]);
            let found = self.at(&line, place, word);
            if let Some((_, entry)) = found
                && !terms.contains(&entry.target)
            {
                terms.push(entry.target.clone());
            }
            place += found.map_or(word.len(), |(length, _)| length);
            place += line[place..].len() - line[place..].trim_start().len();
        }
        terms
    }

    /// The entry that the line has at a place, where this word begins, and its length there.
    fn at(&self, line: &str, place: usize, word: &str) -> Option<(usize, &Entry)> {
        let entries = self
            .by_word
            .get(&key(word))?
            .iter()
            .map(|&i| &self.entries[i]);
        let found = entries.filter_map(|entry| {
            let length = begins_with(&line[place..], &entry.source)?;
            is_whole(line, &(place..place + length)).then_some((length, entry))
        });
        found.max_by_key(|(length, entry)| (*length, line[place..].starts_with(&*entry.source)))
    }
}

/// The characters up to where the first word ends. At least one, if there is one.
fn first_word(text: &str) -> &str {
    let mut chars = text.char_indices().peekable();
    while let Some((_, c)) = chars.next() {
        match chars.peek() {
            Some(&(_, next)) if joins(c, next) => {}
            Some(&(end, _)) => return &text[..end],
            None => {}
        }
    }
    text
}

fn key(word: &str) -> String {
    word.to_lowercase()
}

/// The length of the phrase at the beginning of the text, in any case.
fn begins_with(text: &str, phrase: &str) -> Option<usize> {
    let mut chars = text.char_indices();
    for expected in phrase.chars() {
        let (_, c) = chars.next()?;
        if c != expected && !c.to_lowercase().eq(expected.to_lowercase()) {
            return None;
        }
    }
    Some(chars.next().map_or(text.len(), |(end, _)| end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Result<Glossary> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("terms.tsv");
        std::fs::write(&path, text).unwrap();
        Glossary::open(&path)
    }

    #[test]
    fn terms_are_found_as_whole_words_the_longest_first_in_the_order_of_the_line() {
        let glossary = open(
            "# animals\n\ndog\tHund\nguide dog\tBlindenhund\ndog house\tHundehütte\nhouse\tHaus\r\n\
             turkey\tTruthahn\nTurkey\tTürkei\nC++\tC++\n犬\tdog\nold  house\tAltbau\n",
        )
        .unwrap();
        assert_eq!(glossary.len(), 9);
        for (line, expected) in [
            ("a dog", vec!["Hund"]),
            ("dogs and hotdog", vec![]),
            ("The guide dog's house", vec!["Blindenhund", "Haus"]),
            (
                "a dog  house, a dog, the house",
                vec!["Hundehütte", "Hund", "Haus"],
            ),
            ("dog dog Dog DOG", vec!["Hund"]),
            ("a guide dog house", vec!["Blindenhund", "Haus"]),
            ("a turkey from Turkey", vec!["Truthahn", "Türkei"]),
            ("(C++)", vec!["C++"]),
            ("白い犬が走る", vec!["dog"]),
            ("an Old House-door", vec!["Altbau"]),
            ("", vec![]),
        ] {
            assert_eq!(glossary.terms_for(line), expected, "{line}");
        }
        assert_eq!(open("US\tUSA\n").unwrap().terms_for("the us army"), ["USA"]);
    }

    #[test]
    fn a_line_that_is_no_pair_of_terms_is_refused_by_number() {
        for (text, message) in [
            ("dog\tHund\ndog Hund\n", "line 2: no tab"),
            ("a\tb\tc\n", "line 1: 2 tabs"),
            ("\n\tHund\n", "line 2: the term is empty"),
            ("dog\t \n", "line 1: the translation is empty"),
            (
                "dog\tHund\ncat\tKatze\ndog\tKöter\n",
                "line 3: `dog` is `Köter` here, but `Hund` on line 1",
            ),
        ] {
            let error = open(text).unwrap_err();
            assert!(error.to_string().ends_with(message), "{error}");
            assert!(error.hint().is_some());
        }
        assert_eq!(open("dog\tHund\ndog\tHund\n").unwrap().len(), 1);
        assert!(open("").unwrap().is_empty());
    }
}
