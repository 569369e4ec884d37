use std::ops::Range;

use crate::document::aligned::{Aligned, Edit, Word};
use crate::document::html::escape;
use crate::document::scan::{Kind, numbers};
use crate::document::words::is_punctuation;

use super::Protected;

/// Puts every protected text into the translation, in the steps that the module tells.
pub(crate) fn restore(aligned: &mut Aligned, items: &[Protected], placeholder: Option<&str>) {
    let mut by_target = vec![Vec::new(); aligned.target.len()];
    for link in &aligned.links {
        by_target[link.target].push(link.source);
    }
    let mut restorer = Restorer {
        by_target,
        texts: aligned.target.iter().map(Word::text).collect(),
        taken: vec![Vec::new(); aligned.target.len()],
        is_gone: vec![false; aligned.target.len()],
        edits: Vec::new(),
        aligned,
    };
    let mut missing: Vec<&Protected> = items.iter().collect();
    missing.retain(|item| !restorer.find(item));
    missing.retain(|item| !restorer.replace(item));
    missing.iter().for_each(|item| restorer.insert(item));
    if let Some(token) = placeholder {
        restorer.remove(token);
    }
    let edits = restorer.finish();
    aligned.edit(edits);
}

struct Restorer<'a> {
    aligned: &'a Aligned,
    /// The target words.
    texts: Vec<String>,
    /// The parts of each target word that stand for something protected.
    taken: Vec<Vec<(Range<usize>, &'a Protected)>>,
    /// Whether an edit of its own replaces the word.
    is_gone: Vec<bool>,
    /// The source words that each target word is linked to.
    by_target: Vec<Vec<usize>>,
    edits: Vec<Edit>,
}

impl<'a> Restorer<'a> {
    /// Takes a place of the translation where the text is as it was. One that is linked to it is preferred.
    fn find(&mut self, item: &'a Protected) -> bool {
        let wanted: Vec<&str> = item.text.split_whitespace().collect();
        let sources = self.aligned.source_words(&item.place);
        let linked = self.aligned.targets(&sources);
        let words = linked.into_iter().chain(self.aligned.piece(sources.start));
        if let [wanted] = wanted[..] {
            for word in words {
                if let Some(place) = self.free_place(word, wanted, item.kind) {
                    self.taken[word].push((place, item));
                    return true;
                }
            }
            return false;
        }
        for word in words {
            if let Some((lead, trail)) = self.starts_phrase(word, &wanted) {
                self.put(word..word + wanted.len(), item, lead, trail);
                return true;
            }
        }
        false
    }

    /// Where a text is in a target word, and nothing protected yet. It must not be a part of a longer name or
    /// number.
    fn free_place(&self, word: usize, wanted: &str, kind: Option<Kind>) -> Option<Range<usize>> {
        if self.is_gone[word] {
            return None;
        }
        let text = &self.texts[word];
        let places: Vec<Range<usize>> = match kind {
            Some(Kind::Numbers) => numbers(text),
            _ => {
                let found = text.match_indices(wanted);
                found
                    .map(|(start, found)| start..start + found.len())
                    .collect()
            }
        };
        places.into_iter().find(|place| {
            let is_name = |end: Option<char>| end.is_some_and(char::is_alphanumeric);
            let (before, after) = (&text[..place.start], &text[place.end..]);
            let goes_on = is_name(wanted.chars().next()) && is_name(before.chars().next_back())
                || is_name(wanted.chars().next_back()) && is_name(after.chars().next());
            let apart = |(taken, _): &(Range<usize>, &Protected)| {
                taken.end <= place.start || place.end <= taken.start
            };
            text[place.clone()] == *wanted
                && (kind == Some(Kind::Numbers) || !goes_on)
                && self.taken[word].iter().all(apart)
        })
    }

    /// Whether several words stand in the translation from this one on: then, the punctuation around them.
    fn starts_phrase(&self, word: usize, wanted: &[&str]) -> Option<(String, String)> {
        let texts = self.texts.get(word..word + wanted.len())?;
        let free = |word: usize| !self.is_gone[word] && self.taken[word].is_empty();
        if !(word..word + wanted.len()).all(free) {
            return None;
        }
        let ([first, between @ .., last], [first_text, between_texts @ .., last_text]) =
            (wanted, texts)
        else {
            return None;
        };
        let lead = first_text.strip_suffix(first)?;
        let trail = last_text.strip_prefix(last)?;
        let punctuation = [lead, trail].concat().chars().all(is_punctuation);
        (between == between_texts && punctuation).then(|| (lead.into(), trail.into()))
    }

    /// Replaces target words by the text.
    fn put(&mut self, words: Range<usize>, item: &Protected, lead: String, trail: String) {
        self.is_gone[words.clone()].fill(true);
        let word = Word {
            gap: self.aligned.target[words.start].gap.clone(),
            lead,
            core: item.written.clone(),
            trail,
            markup: item.is_markup,
        };
        self.edits.push(Edit {
            words,
            word: Some(word),
            source: None,
        });
    }

    /// Replaces what is linked to the text, if that can be nothing else.
    fn replace(&mut self, item: &'a Protected) -> bool {
        let sources = self.aligned.source_words(&item.place);
        let free = |word: &usize| self.taken[*word].is_empty() && !self.is_gone[*word];
        let mut linked = self.aligned.targets(&sources);
        linked.retain(free);
        let like = |word: &&usize| looks_like(&self.texts[**word], item.kind);
        // Of words that are linked to nothing, one that looks like it may be it.
        let all = self.aligned.piece(sources.start);
        let unlinked = all.filter(|word| free(word) && self.sources(*word).next().is_none());
        let unlinked: Vec<usize> = unlinked.collect();
        if let Some(&word) = linked.iter().chain(&unlinked).find(like) {
            let place = self.core(word);
            let place = match item.kind {
                Some(Kind::Numbers) => digits(&self.texts[word]).unwrap_or(place),
                _ => place,
            };
            self.taken[word].push((place, item));
            return true;
        }
        if !item.is_alone {
            return false;
        }
        let only = |word: &usize| self.sources(*word).all(|source| sources.contains(&source));
        let Some(first) = linked.iter().copied().find(only) else {
            return false;
        };
        let run = linked
            .iter()
            .copied()
            .filter(only)
            .skip_while(|word| *word < first);
        let run = run
            .enumerate()
            .take_while(|(at, word)| *word == first + at)
            .count();
        // A number is one word. More words are a phrase that it is in.
        if run > 1 && item.kind == Some(Kind::Numbers) {
            return false;
        }
        let words = first..first + run;
        let lead = self.aligned.target[first].lead.clone();
        let trail = self.aligned.target[words.end - 1].trail.clone();
        self.put(words, item, lead, trail);
        true
    }

    /// The source words that are linked to a target word.
    fn sources(&self, word: usize) -> impl Iterator<Item = usize> {
        self.by_target[word].iter().copied()
    }

    /// A target word without the punctuation at its ends.
    fn core(&self, word: usize) -> Range<usize> {
        let word = &self.aligned.target[word];
        word.lead.len()..word.lead.len() + word.core.len()
    }

    /// Adds the text next to the translations of its neighbours.
    fn insert(&mut self, item: &Protected) {
        let sources = self.aligned.source_words(&item.place);
        let linked = self.aligned.targets(&sources).first().copied();
        let piece = self.aligned.piece(sources.start);
        let at = linked.unwrap_or_else(|| self.aligned.place_before(sources.start));
        let at = at.clamp(piece.start, piece.end);
        let gap = match at {
            0 => self.aligned.target.first().map_or("", |first| &first.gap),
            _ => " ",
        };
        self.edits.push(Edit {
            words: at..at,
            word: Some(Word {
                gap: gap.into(),
                lead: String::new(),
                core: item.written.clone(),
                trail: String::new(),
                markup: item.is_markup,
            }),
            source: Some(sources.start),
        });
    }

    /// Removes placeholders that stand for nothing.
    fn remove(&mut self, token: &str) {
        for (word, text) in self.texts.iter().enumerate() {
            let free = self.taken[word].is_empty() && !self.is_gone[word];
            if free && text.trim_matches(is_punctuation) == token.trim_matches(is_punctuation) {
                self.is_gone[word] = true;
                self.edits.push(Edit {
                    words: word..word + 1,
                    word: None,
                    source: None,
                });
            }
        }
    }

    fn finish(mut self) -> Vec<Edit> {
        for (word, taken) in self.taken.iter_mut().enumerate() {
            taken.sort_by_key(|(place, _)| place.start);
            let new = rewritten(&self.aligned.target[word], &self.texts[word], taken);
            self.edits.extend(new.map(|new| Edit {
                words: word..word + 1,
                word: Some(new),
                source: None,
            }));
        }
        self.edits
    }
}

/// A target word with protected texts in it, if it differs.
fn rewritten(word: &Word, text: &str, taken: &[(Range<usize>, &Protected)]) -> Option<Word> {
    let changes = |(place, item): &(Range<usize>, &Protected)| text[place.clone()] != item.written;
    if !taken.iter().any(changes) {
        return None;
    }
    let (first, last) = (taken.first()?, taken.last()?);
    let markup = taken.iter().any(|(_, item)| item.is_markup);
    let write = |text: &str, is_markup: bool| match markup && !is_markup {
        true => escape(text).into_owned(),
        false => text.to_string(),
    };
    let mut core = String::new();
    let mut from = first.0.start;
    for (place, item) in taken {
        core.push_str(&write(&text[from..place.start], false));
        core.push_str(&write(&item.written, item.is_markup));
        from = place.end;
    }
    Some(Word {
        gap: word.gap.clone(),
        lead: text[..first.0.start].into(),
        core,
        trail: text[last.0.end..].into(),
        markup,
    })
}

/// Whether a target word can be a changed copy of a protected text.
fn looks_like(word: &str, kind: Option<Kind>) -> bool {
    match kind {
        Some(Kind::Numbers) => word.contains(char::is_numeric),
        Some(Kind::Emails) => word.contains('@'),
        Some(Kind::Mentions) => word.contains(['@', '#']),
        Some(Kind::Urls) => word.contains("://") || word.contains("www."),
        None => false,
    }
}

/// The number in a word, or at least its digits.
fn digits(word: &str) -> Option<Range<usize>> {
    numbers(word).into_iter().next().or_else(|| {
        let start = word.find(char::is_numeric)?;
        let rest = word[start..].trim_start_matches(char::is_numeric);
        Some(start..word.len() - rest.len())
    })
}
