use std::ops::Range;

use crate::document::aligned::Aligned;
use crate::document::words::is_punctuation;

use super::tree::{Markup, Node};

/// Where the nodes of a line go in its translation.
///
/// A place in a translation is a number: 4 w before the punctuation that word w begins with, 4 w + 1 before its core,
/// 4 w + 2 after it, 4 w + 3 after the punctuation that it ends with, which is before the space to the next word.
pub(super) struct Places {
    /// One for each node.
    pub(super) of: Vec<Range<usize>>,
}

/// An element and the target words that it covers.
struct Span {
    node: usize,
    /// Target words, sorted. Never empty.
    words: Vec<usize>,
    place: Range<usize>,
}

impl Places {
    /// An element covers the smallest span of target words that are linked to its source words. Where the spans of
    /// neighbours overlap, they are cut where the fewest links are on the wrong side. A node without such words goes
    /// next to the translations of its neighbours. Nodes stay inside of their parents.
    pub(super) fn new(markup: &Markup, aligned: &Aligned) -> Self {
        let all = 0..(4 * aligned.target.len()).saturating_sub(1);
        let mut places = Self {
            of: vec![0..0; markup.nodes.len()],
        };
        places.put(&markup.roots, all, markup, aligned);
        places
    }

    fn put(&mut self, nodes: &[usize], bounds: Range<usize>, markup: &Markup, aligned: &Aligned) {
        let (mut spans, mut empty) = (Vec::new(), Vec::new());
        for &node in nodes {
            match span(node, &bounds, markup, aligned) {
                Some(span) => spans.push(span),
                None => empty.push(node),
            }
        }
        spans.sort_by(|a, b| a.mean().total_cmp(&b.mean()).then(a.node.cmp(&b.node)));
        for right in 1..spans.len() {
            let (before, after) = spans.split_at_mut(right);
            separate(&mut before[right - 1], &mut after[0]);
        }
        for node in empty {
            let place = empty_place(&markup.nodes[node], markup, aligned);
            let place = place.clamp(bounds.start, bounds.end);
            // Not in the middle of a neighbour.
            let next = spans.partition_point(|span| span.place.end <= place);
            let around = spans.get(next).filter(|span| span.place.start < place);
            let place = around.map_or(place, |span| match node > span.node {
                true => span.place.end,
                false => span.place.start,
            });
            self.of[node] = place..place;
        }
        for span in spans {
            self.of[span.node] = span.place;
        }
        for &node in nodes {
            let bounds = self.of[node].clone();
            self.put(&markup.nodes[node].children, bounds, markup, aligned);
        }
    }
}

impl Span {
    fn mean(&self) -> f64 {
        self.words.iter().sum::<usize>() as f64 / self.words.len() as f64
    }
}

/// The span of an element within these bounds. None if it has no word there.
fn span(node: usize, bounds: &Range<usize>, markup: &Markup, aligned: &Aligned) -> Option<Span> {
    let Node { place, .. } = &markup.nodes[node];
    if place.is_empty() {
        return None;
    }
    let sources = aligned.source_words(place);
    let mut words = aligned.targets(&sources);
    words.retain(|word| bounds.start <= 4 * word + 1 && 4 * word + 2 <= bounds.end);
    let (first, last) = (*words.first()?, *words.last()?);
    // Punctuation at the ends of its words that it does not cover is not covered in the translation either.
    let covered = &markup.text[place.clone()];
    let lead = !covered.starts_with(is_punctuation) && markup.goes_on_before(place.start);
    let trail = !covered.ends_with(is_punctuation) && markup.goes_on_after(place.end);
    let start = 4 * first + usize::from(lead);
    let end = 4 * last + 3 - usize::from(trail);
    Some(Span {
        node,
        words,
        place: start.max(bounds.start)..end.min(bounds.end),
    })
}

/// Cuts two spans that overlap between two words, where the fewest of their own words are on the wrong side.
fn separate(left: &mut Span, right: &mut Span) {
    if left.place.end <= right.place.start {
        return;
    }
    let from = left.place.start.div_ceil(4);
    let to = right.place.end / 4 + 1;
    let wrong = |cut: usize| {
        let of_left = left.words.len() - left.words.partition_point(|word| *word < cut);
        of_left + right.words.partition_point(|word| *word < cut)
    };
    let cut = (from..=to).min_by_key(|cut| wrong(*cut)).unwrap_or(from);
    left.place.end = left
        .place
        .end
        .min((4 * cut).saturating_sub(1))
        .max(left.place.start);
    right.place.start = right.place.start.max(4 * cut).max(left.place.end);
    right.place.end = right.place.end.max(right.place.start);
}

/// The place of a node without words of its own: after the word before it, or before the word after it.
fn empty_place(node: &Node, markup: &Markup, aligned: &Aligned) -> usize {
    let at = node.place.start;
    let next = aligned.source.partition_point(|word| word.end <= at);
    let (before, after) = node.spaces;
    let touches_next = before && !after && next < aligned.source.len();
    let of_next = touches_next.then(|| aligned.targets(&(next..next + 1)).first().copied());
    let words = match of_next.flatten() {
        Some(first) => first,
        None if next == aligned.source.len() => aligned.target.len(),
        None if next == 0
            && aligned
                .source
                .first()
                .is_some_and(|first| at <= first.start) =>
        {
            0
        }
        None => aligned.place_before(next),
    };
    let is_in_text = words > 0 && words < aligned.target.len();
    match words {
        0 => 0,
        // With a space before it, it is after the space between two words.
        words if before && is_in_text => 4 * words,
        words => {
            let inside = aligned.source.get(next).filter(|word| word.start < at);
            let rest = inside.map(|word| &markup.text[at..word.end]);
            let is_before_end = rest.is_some_and(|rest| rest.chars().all(is_punctuation));
            4 * words - 1 - usize::from(is_before_end)
        }
    }
}
