//! Text that must come out as it went in.
//!
//! A model copies a URL, an address or a number only if it has learnt to, and often changes a letter or digit. So
//! the line is translated with this text in place, which keeps its grammar, and afterwards every protected text
//! is looked for in the translation:
//!
//! 1. where it is there as it was, nothing changes;
//! 2. otherwise the target word that is linked to it, and that looks like it or is linked to nothing else,
//!    becomes it;
//! 3. otherwise it is inserted next to the translations of its neighbours. It is never lost.
//!
//! With a placeholder, a token that the model has learnt to copy stands for every protected text, and is looked
//! for instead.

use std::ops::Range;

use super::aligned::{Aligned, Edit, Word};
use super::html::escape;
use super::scan::{Kind, numbers};
use super::words::is_punctuation;

/// A part of a line's text that is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Protected {
    pub(super) place: Range<usize>,
    /// What it was in the text, and what is looked for in the translation.
    pub(super) text: String,
    /// What is written: the text itself, or an element with it.
    pub(super) written: String,
    pub(super) is_markup: bool,
    /// Whether nothing but punctuation is in the same word.
    pub(super) is_alone: bool,
    /// None if it is protected by markup.
    pub(super) kind: Option<Kind>,
}

impl Protected {
    pub(super) fn new(text: &str, place: Range<usize>, kind: Kind) -> Self {
        let text = text[place.clone()].to_string();
        Self {
            place,
            written: text.clone(),
            text,
            is_markup: false,
            is_alone: true,
            kind: Some(kind),
        }
    }
}

/// Replaces every protected text by a placeholder. Returns the new text and how offsets move.
pub(super) fn substitute(text: &str, items: &mut [Protected], token: &str) -> (String, Moves) {
    let mut new = String::with_capacity(text.len());
    let mut moves = Vec::with_capacity(items.len());
    let mut from = 0;
    for item in items {
        new.push_str(&text[from..item.place.start]);
        from = item.place.end;
        let start = new.len();
        new.push_str(token);
        moves.push((item.place.clone(), start..new.len()));
        item.place = start..new.len();
        item.text = token.into();
        item.kind = None;
    }
    new.push_str(&text[from..]);
    (new, Moves(moves))
}

/// Where offsets of a text are after a substitution.
pub(super) struct Moves(Vec<(Range<usize>, Range<usize>)>);

impl Moves {
    pub(super) fn apply(&self, offset: usize) -> usize {
        let before = self.0.partition_point(|(old, _)| old.end <= offset);
        match self.0.get(before) {
            Some((old, new)) if offset > old.start => new.start,
            _ => match before.checked_sub(1).map(|last| &self.0[last]) {
                Some((old, new)) => new.end + (offset - old.end),
                None => offset,
            },
        }
    }
}

/// Puts every protected text into the translation, in the steps that the module tells.
pub(super) fn restore(aligned: &mut Aligned, items: &[Protected], placeholder: Option<&str>) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Link;
    use crate::document::scan::scan;

    const ALL: [Kind; 4] = [Kind::Urls, Kind::Emails, Kind::Mentions, Kind::Numbers];

    fn restored(source: &str, target: &str, links: &[(usize, usize)]) -> String {
        let items = scan(source, &ALL);
        let mut links: Vec<Link> = links
            .iter()
            .map(|&(source, target)| Link { source, target })
            .collect();
        links.sort();
        let mut aligned = Aligned::default();
        aligned.push(source, 0..source.len(), "", target, &links);
        restore(&mut aligned, &items, None);
        aligned.text()
    }

    #[test]
    fn what_is_copied_already_does_not_change() {
        let target = "Siehe  (https://a.org), 5 Hunde und 5km. ";
        let source = "See (https://a.org), 5 dogs and 5km.";
        assert_eq!(restored(source, target, &[]), target);
        // The order is free, and so are links.
        assert_eq!(restored("1 2", "2 1", &[(0, 0), (1, 1)]), "2 1");
    }

    #[test]
    fn a_changed_copy_is_replaced_within_its_punctuation() {
        let links = [(0, 0), (1, 1), (2, 2)];
        let target = "siehe (https://a.ork), jetzt";
        let expected = "siehe (https://a.org/x), jetzt";
        assert_eq!(
            restored("see https://a.org/x now", target, &links),
            expected
        );
        assert_eq!(
            restored("see 3.50, now", "siehe 3,50; jetzt", &links),
            "siehe 3.50; jetzt"
        );
        assert_eq!(
            restored("see 5km now", "siehe 6km jetzt", &links),
            "siehe 5km jetzt"
        );
        let shorter = restored("mail a@b.org now", "maile a@b jetzt", &links);
        assert_eq!(shorter, "maile a@b.org jetzt");
        // 5 is not found in 15.
        assert_eq!(restored("a 5 dogs", "ein 15 Hunde", &links), "ein 5 Hunde");
    }

    #[test]
    fn words_that_stand_for_it_alone_are_replaced_by_it() {
        assert_eq!(
            restored("see 5 dogs", "siehe fünf Hunde", &[(0, 0), (1, 1), (2, 2)]),
            "siehe 5 Hunde"
        );
        let broken = [(0, 0), (1, 1), (1, 2), (1, 3), (2, 4)];
        let target = "siehe htt : //a.o jetzt";
        assert_eq!(
            restored("see https://a.org now", target, &broken),
            "siehe https://a.org jetzt"
        );
    }

    #[test]
    fn what_has_no_translation_is_inserted_at_its_neighbours_and_never_lost() {
        assert_eq!(
            restored("a 5 dogs", "ein Hunde", &[(0, 0), (2, 1)]),
            "ein 5 Hunde"
        );
        assert_eq!(restored("5 dogs", " Hunde.", &[(1, 0)]), " 5 Hunde.");
        assert_eq!(restored("dogs 5 6", "Hunde", &[(0, 0)]), "Hunde 5 6");
        assert_eq!(restored("5", "", &[]), "5");
        assert_eq!(restored("a 5", "b", &[]), "b 5");
        // The target word stands for another source word too, so it stays.
        assert_eq!(
            restored("the 5 dogs", "die Hunde", &[(0, 0), (1, 0), (2, 1)]),
            "5 die Hunde"
        );
    }

    #[test]
    fn placeholders_are_filled_in_order_and_those_too_many_removed() {
        let source = "see https://a.org and 5km";
        let mut items = scan(source, &ALL);
        let (text, moves) = substitute(source, &mut items, "<ph>");
        assert_eq!(text, "see <ph> and <ph>km");
        assert_eq!(
            [0, 4, 9, 17, 22, 25].map(|at| moves.apply(at)),
            [0, 4, 4, 8, 13, 19]
        );
        let fill = |target: &str, links: &[Link]| {
            let mut aligned = Aligned::default();
            aligned.push(&text, 0..text.len(), "", target, links);
            restore(&mut aligned, &items, Some("<ph>"));
            aligned.text()
        };
        assert_eq!(fill("<ph>km (<ph>) <ph>", &[]), "https://a.orgkm (5)");
        let crossed = [(1, 1), (3, 0)].map(|(source, target)| Link { source, target });
        assert_eq!(fill("<ph>km (<ph>) <ph>", &crossed), "5km (https://a.org)");
        assert_eq!(fill("nichts", &crossed[..0]), "nichts https://a.org 5");
    }

    #[test]
    fn random_translations_and_links_never_lose_a_protected_text() {
        let words = [
            "a",
            "5",
            "(7),",
            "https://x.y/z",
            "b@c.de.",
            "#tag",
            "1,5",
            "5km",
        ];
        let mut state = 7_u64;
        let mut draw = |most: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % most
        };
        for _ in 0..2_000 {
            let mut line =
                |most| -> Vec<&str> { (0..draw(most)).map(|_| words[draw(8)]).collect() };
            let (source, target) = (line(9), line(9));
            let links: Vec<(usize, usize)> = (0..draw(8)).map(|_| (draw(9), draw(9))).collect();
            let (source, target) = (source.join(" "), target.join(" "));
            let text = restored(&source, &target, &links);
            let mut out: Vec<String> = scan(&text, &ALL)
                .into_iter()
                .map(|item| item.text)
                .collect();
            for item in scan(&source, &ALL) {
                let at = out.iter().position(|text| *text == item.text);
                out.remove(at.unwrap_or_else(|| panic!("{source:?} {target:?} {text:?}")));
            }
        }
    }
}
