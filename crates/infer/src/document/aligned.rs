use std::ops::Range;

use crate::Link;

use super::words::{is_punctuation, words};

/// A line and its translation as words, with links between them. Words of neighbouring pieces are apart even if
/// no white space is between these.
#[derive(Default)]
pub(super) struct Aligned {
    /// The places of the source words in the text of the line.
    pub(super) source: Vec<Range<usize>>,
    pub(super) target: Vec<Word>,
    /// White space after the last word.
    pub(super) end: String,
    /// Sorted.
    pub(super) links: Vec<Link>,
    /// The source words and the target words of each piece.
    pieces: Vec<(Range<usize>, Range<usize>)>,
}

/// A word of a translation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// White space before it.
    pub(super) gap: String,
    /// Punctuation at its beginning.
    pub(super) lead: String,
    pub(super) core: String,
    /// Punctuation at its end.
    pub(super) trail: String,
    /// Whether the core is markup, which is not escaped.
    pub(super) markup: bool,
}

impl Word {
    pub(super) fn new(gap: &str, text: &str) -> Self {
        let rest = text.trim_start_matches(is_punctuation);
        let core = rest.trim_end_matches(is_punctuation);
        // Punctuation alone is a word too.
        let (lead, core, trail) = match core {
            "" => ("", text, ""),
            core => (&text[..text.len() - rest.len()], core, &rest[core.len()..]),
        };
        Self {
            gap: gap.into(),
            lead: lead.into(),
            core: core.into(),
            trail: trail.into(),
            markup: false,
        }
    }

    /// The word without the white space before it.
    pub(super) fn text(&self) -> String {
        [&*self.lead, &self.core, &self.trail].concat()
    }
}

impl Aligned {
    /// Adds a piece of the line, which is at `place` in `text`, after the white space `gap`. Its links count its
    /// own words.
    pub(super) fn push(
        &mut self,
        text: &str,
        place: Range<usize>,
        gap: &str,
        translation: &str,
        links: &[Link],
    ) {
        let (sources, targets) = (self.source.len(), self.target.len());
        let found = words(&text[place.clone()]).into_iter();
        self.source
            .extend(found.map(|word| place.start + word.start..place.start + word.end));
        self.end.push_str(gap);
        let mut from = 0;
        for word in words(translation) {
            self.end.push_str(&translation[from..word.start]);
            let gap = std::mem::take(&mut self.end);
            self.target
                .push(Word::new(&gap, &translation[word.clone()]));
            from = word.end;
        }
        self.end.push_str(&translation[from..]);
        self.pieces
            .push((sources..self.source.len(), targets..self.target.len()));
        // A link to a word that is not there would be of an aligner that sees other words.
        let (most_sources, most_targets) = (self.source.len(), self.target.len());
        let links = links.iter().map(|link| Link {
            source: sources + link.source,
            target: targets + link.target,
        });
        self.links
            .extend(links.filter(|link| link.source < most_sources && link.target < most_targets));
    }

    /// The source words that a place of the source's text touches.
    pub(super) fn source_words(&self, place: &Range<usize>) -> Range<usize> {
        let start = self.source.partition_point(|word| word.end <= place.start);
        let end = self.source.partition_point(|word| word.start < place.end);
        start..end.max(start)
    }

    /// The target words that are linked to these source words. Sorted, each once.
    pub(super) fn targets(&self, sources: &Range<usize>) -> Vec<usize> {
        let from = self
            .links
            .partition_point(|link| link.source < sources.start);
        let links = self.links[from..].iter();
        let links = links.take_while(|link| link.source < sources.end);
        let mut targets: Vec<usize> = links.map(|link| link.target).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// The target words of the piece that a source word is in.
    pub(super) fn piece(&self, source: usize) -> Range<usize> {
        let piece = self
            .pieces
            .partition_point(|(sources, _)| sources.end <= source);
        let all = 0..self.target.len();
        self.pieces
            .get(piece)
            .map_or(all, |(_, targets)| targets.clone())
    }

    /// Where something without a translation belongs that stands before this source word: after the translation of
    /// the nearest word before it, or before that of the nearest word after it. A number of target words.
    pub(super) fn place_before(&self, source: usize) -> usize {
        let split = self.links.partition_point(|link| link.source < source);
        let (before, after) = self.links.split_at(split);
        if let Some(nearest) = before.last() {
            let same = before.iter().rev();
            let same = same.take_while(|link| link.source == nearest.source);
            return same.map(|link| link.target + 1).max().unwrap_or(0);
        }
        let nearest = after.first().map(|link| link.source);
        let same = after.iter().take_while(|link| Some(link.source) == nearest);
        same.map(|link| link.target)
            .min()
            .unwrap_or(self.target.len())
    }

    /// Applies edits at once, and moves the links with their words. Places of edits do not overlap; those of empty
    /// places are inserted there, with a space on both sides.
    pub(super) fn edit(&mut self, mut edits: Vec<Edit>) {
        edits.sort_by_key(|edit| (edit.words.start, edit.words.end));
        let mut target: Vec<Word> = Vec::with_capacity(self.target.len() + edits.len());
        let mut is_inserted = false; // the last word
        let spaced = |mut word: Word, is_needed: bool| {
            if is_needed && word.gap.is_empty() {
                word.gap.push(' ');
            }
            word
        };
        let mut moved = vec![None; self.target.len()];
        let mut added = Vec::new();
        let mut edits = edits.into_iter().peekable();
        let mut at = 0;
        loop {
            while let Some(edit) = edits.next_if(|edit| edit.words.start <= at) {
                let words = edit.words.start.max(at)..edit.words.end.max(at);
                if let Some(word) = edit.word {
                    moved[words.clone()].fill(Some(target.len()));
                    let new = target.len();
                    added.extend(edit.source.map(|source| Link {
                        source,
                        target: new,
                    }));
                    let inserts = words.is_empty();
                    target.push(spaced(word, new > 0 && (inserts || is_inserted)));
                    is_inserted = inserts;
                }
                at = words.end;
            }
            if at == self.target.len() {
                break;
            }
            moved[at] = Some(target.len());
            target.push(spaced(std::mem::take(&mut self.target[at]), is_inserted));
            is_inserted = false;
            at += 1;
        }
        let links = self.links.iter().filter_map(|link| {
            Some(Link {
                source: link.source,
                target: moved[link.target]?,
            })
        });
        let mut links: Vec<Link> = links.chain(added).collect();
        links.sort_unstable();
        links.dedup();
        self.links = links;
        self.target = target;
    }

    /// The translation.
    pub(super) fn text(&self) -> String {
        let words = self.target.iter();
        let words = words.map(|word| format!("{}{}", word.gap, word.text()));
        words.chain([self.end.clone()]).collect()
    }
}

/// What target words become.
pub(super) struct Edit {
    pub(super) words: Range<usize>,
    /// None if they are left out.
    pub(super) word: Option<Word>,
    /// Source words that the new word is linked to, besides those of the old ones.
    pub(super) source: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(source: usize, target: usize) -> Link {
        Link { source, target }
    }

    fn example() -> Aligned {
        let mut aligned = Aligned::default();
        let text = " a b. c";
        aligned.push(
            text,
            1..5,
            " ",
            "x  (y).",
            &[link(0, 1), link(1, 0), link(9, 9)],
        );
        aligned.push(text, 6..7, " ", "z ", &[link(0, 0)]);
        aligned
    }

    #[test]
    fn pieces_become_one_line_and_its_words_keep_their_spaces() {
        let aligned = example();
        assert_eq!(aligned.text(), " x  (y). z ");
        assert_eq!(aligned.source, [1..2, 3..5, 6..7]);
        assert_eq!(aligned.links, [link(0, 1), link(1, 0), link(2, 2)]);
        assert_eq!(aligned.target[1].core, "y");
        assert_eq!(aligned.source_words(&(4..7)), 1..3);
        assert_eq!(aligned.source_words(&(5..6)), 2..2);
        assert_eq!(aligned.targets(&(0..2)), [0, 1]);
        assert_eq!(aligned.place_before(1), 2);
        assert_eq!(aligned.place_before(0), 1);
        assert_eq!(Aligned::default().place_before(3), 0);
    }

    #[test]
    fn edits_move_the_links() {
        let mut aligned = example();
        let edit = |words, word: Option<&str>, source| Edit {
            words,
            word: word.map(|word| Word::new(" ", word)),
            source,
        };
        aligned.edit(vec![
            edit(3..3, Some("end"), Some(0)),
            edit(1..2, None, None),
            edit(0..0, Some("new"), Some(2)),
        ]);
        assert_eq!(aligned.text(), " new x z end ");
        assert_eq!(
            aligned.links,
            [link(0, 3), link(1, 1), link(2, 0), link(2, 2)]
        );
    }
}
