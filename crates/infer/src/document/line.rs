use std::ops::Range;

use crate::{Link, Request, Result, Translation};

use super::aligned::Aligned;
use super::html::{Markup, write};
use super::layout::{Format, Layout};
use super::protect::{Protected, restore, substitute};
use super::scan::scan;
use super::sentences::sentences;
use super::split::{fit, join_whole};
use super::words::{trim, words};
use super::{Paragraph, Translated};

/// A line in pieces.
pub(super) struct Line {
    /// Without its markup.
    text: String,
    /// In order. What is between them is kept as it is.
    pieces: Vec<Range<usize>>,
    /// In order.
    protected: Vec<Protected>,
    markup: Option<Markup>,
    /// Whether the line is longer than the model's sentences.
    is_split: bool,
}

impl Line {
    /// Takes a line apart. Its first piece has its prefix.
    pub(super) fn new(paragraph: Paragraph, layout: &Layout) -> Result<(Self, Vec<Request>)> {
        let (mut text, mut markup) = match layout.format {
            Format::Text => (paragraph.text, None),
            Format::Html => {
                let mut markup = Markup::parse(&paragraph.text);
                (std::mem::take(&mut markup.text), Some(markup))
            }
        };
        let mut protected = protected(&text, markup.as_mut(), layout);
        if let Some(token) = &layout.placeholder {
            let (new, moves) = substitute(&text, &mut protected, token);
            text = new;
            if let Some(markup) = &mut markup {
                markup.move_by(|offset| moves.apply(offset));
            }
        }
        let breaks = markup.as_ref().map_or(&[][..], |markup| &markup.breaks);
        let whole: Vec<Range<usize>> = protected.iter().map(|item| item.place.clone()).collect();
        let mut pieces = pieces(&text, breaks, &whole, layout);
        let before = pieces.len();
        if let Some((longest, count)) = layout.longest {
            let most = longest.saturating_sub(1).max(1); // without `</s>`
            // A token is at least one byte, so most lines need not be counted. One may stand for their beginning.
            if pieces.iter().any(|piece| piece.len() + 1 > most) {
                pieces = fit(&text, pieces, &whole, layout.language(), most, count)?;
            }
        }
        let is_split = pieces.len() > before;
        let requests = requests(&text, &pieces, paragraph.number, paragraph.prefix, layout);
        if let Some(markup) = &mut markup {
            markup.text.clone_from(&text);
        }
        let line = Self {
            text,
            pieces,
            protected,
            markup,
            is_split,
        };
        Ok((line, requests))
    }

    /// The number of its pieces.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Whether its links change what becomes of its translations.
    pub(super) fn needs_links(&self, translations: &[Translation], layout: &Layout) -> bool {
        if layout.with_links || self.markup.as_ref().is_some_and(Markup::has_tags) {
            return true;
        }
        let has = |item: &Protected| {
            let piece = self
                .pieces
                .partition_point(|piece| piece.end <= item.place.start);
            let translation = translations.get(piece);
            translation.is_some_and(|translation| translation.text().contains(&item.text))
        };
        !self.protected.is_empty()
            && (layout.placeholder.is_some() || !self.protected.iter().all(has))
    }

    /// Puts the translations of its pieces together. Without links, what is protected is in them already.
    pub(super) fn finish(
        self,
        translations: &[Translation],
        links: Option<&[Vec<Link>]>,
        layout: &Layout,
    ) -> Translated {
        let score: f32 = translations
            .iter()
            .map(|translation| translation.hypotheses[0].score)
            .sum();
        let tokens = translations
            .iter()
            .map(|translation| translation.source_tokens);
        let mut translated = Translated {
            text: String::new(),
            score: score / translations.len().max(1) as f32,
            cut: translations.iter().any(|translation| translation.cut),
            repeats: translations.iter().any(|translation| translation.repeats),
            missing_terms: Vec::new(),
            repaired: self
                .markup
                .as_ref()
                .and_then(|markup| markup.repaired.clone()),
            split: self.is_split,
            pieces: self.pieces.len(),
            source_tokens: tokens.max().unwrap_or(1),
            links: Vec::new(),
        };
        // The only piece of a plain line has the white space around it.
        let text_of = |translation: &Translation| match layout.is_plain() && !self.is_split {
            true => translation.text().to_string(),
            false => translation.text().trim().to_string(),
        };
        let mut aligned = Aligned::default();
        let mut from = 0;
        for (at, (piece, translation)) in self.pieces.iter().zip(translations).enumerate() {
            let gap = &self.text[from..piece.start];
            let links = links
                .and_then(|links| links.get(at))
                .map_or(&[][..], |links| links);
            aligned.push(&self.text, piece.clone(), gap, &text_of(translation), links);
            from = piece.end;
        }
        aligned.end.push_str(&self.text[from..]);
        if links.is_some() || !self.protected.is_empty() {
            restore(&mut aligned, &self.protected, layout.placeholder.as_deref());
        }
        if layout.with_links {
            translated.links = whole_links(&self.text, &aligned);
        }
        translated.text = match &self.markup {
            Some(markup) => write(markup, &aligned),
            None => aligned.text(),
        };
        translated
    }
}

/// What is protected in a text, by markup and by how it is written. In order, and none overlap.
fn protected(text: &str, markup: Option<&mut Markup>, layout: &Layout) -> Vec<Protected> {
    let mut all = markup
        .map(|markup| std::mem::take(&mut markup.protected))
        .unwrap_or_default();
    let by_markup = all.len();
    for item in scan(text, &layout.protect) {
        let before = all[..by_markup].partition_point(|other| other.place.end <= item.place.start);
        let next = all[..by_markup].get(before);
        if next.is_none_or(|next| item.place.end <= next.place.start) {
            all.push(item);
        }
    }
    all.sort_by_key(|item| item.place.start);
    all
}

/// The pieces of a text before their length is looked at.
fn pieces(
    text: &str,
    breaks: &[usize],
    whole: &[Range<usize>],
    layout: &Layout,
) -> Vec<Range<usize>> {
    if layout.is_plain() {
        let all = 0..text.len();
        return vec![all];
    }
    let mut pieces = Vec::new();
    let mut start = 0;
    for end in breaks.iter().copied().chain([text.len()]) {
        let block = trim(text, start..end.max(start));
        start = end.max(start);
        if block.is_empty() {
            continue;
        }
        if !layout.by_sentence {
            pieces.push(block);
            continue;
        }
        let found = sentences(&text[block.clone()], layout.language()).into_iter();
        let found = found.map(|place| block.start + place.start..block.start + place.end);
        pieces.extend(join_whole(found, whole));
    }
    pieces
}

fn requests(
    text: &str,
    pieces: &[Range<usize>],
    number: u64,
    mut prefix: Option<String>,
    layout: &Layout,
) -> Vec<Request> {
    let request = |(piece, place): (u64, &Range<usize>)| {
        let text = &text[place.clone()];
        Request {
            piece,
            prefix: prefix.take(),
            terms: layout.terms.map(|terms| terms(text)).unwrap_or_default(),
            ..Request::new(number, text)
        }
    };
    (0..).zip(pieces).map(request).collect()
}

/// The links between the words of a whole line and those of its translation. A word can go on in the next piece.
fn whole_links(text: &str, aligned: &Aligned) -> Vec<Link> {
    let sources = words(text);
    let source = |word: usize| {
        let start = aligned.source[word].start;
        sources.partition_point(|word| word.end <= start)
    };
    let mut target = Vec::with_capacity(aligned.target.len());
    for word in &aligned.target {
        let next = match (target.last(), word.gap.is_empty()) {
            (Some(last), true) => *last,
            (Some(last), false) => last + 1,
            (None, _) => 0,
        };
        target.push(next);
    }
    let links = aligned.links.iter().map(|link| Link {
        source: source(link.source),
        target: target[link.target],
    });
    let mut links: Vec<Link> = links.collect();
    links.sort_unstable();
    links.dedup();
    links
}
