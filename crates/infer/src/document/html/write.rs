use crate::document::aligned::Aligned;

use super::entity::escape;
use super::place::Places;
use super::tree::Markup;

/// The translation of a line with its markup, which is balanced.
pub(crate) fn write(markup: &Markup, aligned: &Aligned) -> String {
    let places = Places::new(markup, aligned);
    let end = (4 * aligned.target.len()).saturating_sub(1);
    let gap = aligned.target.first().map_or("", |first| &first.gap);
    let mut writer = Writer {
        out: escape(gap).into_owned(),
        at: 0,
        without_gap: None,
        markup,
        aligned,
        places,
    };
    writer.nodes(&markup.roots, true);
    writer.advance(end);
    writer.out.push_str(&escape(&aligned.end));
    writer.out
}

struct Writer<'a> {
    markup: &'a Markup,
    aligned: &'a Aligned,
    places: Places,
    out: String,
    /// The place up to which everything is written.
    at: usize,
    /// The place of a space that is not written, because something else keeps the words apart.
    without_gap: Option<usize>,
}

impl Writer<'_> {
    /// Writes nodes that have the same parent. `is_spaced` is whether spaces are written around those without words.
    fn nodes(&mut self, nodes: &[usize], is_spaced: bool) {
        let mut nodes = nodes.to_vec();
        nodes.sort_by_key(|node| (self.places.of[*node].start, *node));
        for index in nodes {
            let (node, place) = (&self.markup.nodes[index], self.places.of[index].clone());
            self.advance(place.start);
            let is_empty = place.is_empty() && is_spaced;
            let (before, after) = node.spaces;
            let is_at_end = self.at + 1 == 4 * self.aligned.target.len();
            if is_empty && before && is_at_end && !self.out.ends_with(' ') {
                self.out.push(' ');
            }
            self.out.push_str(&node.open);
            self.nodes(&node.children, is_spaced && !place.is_empty());
            self.advance(place.end);
            self.out.push_str(&node.close);
            if !is_empty {
                continue;
            }
            let is_before_gap = self.at % 4 == 3;
            if is_before_gap && !after && node.is_break {
                self.without_gap = Some(self.at);
            } else if !is_before_gap && after && !self.aligned.target.is_empty() {
                self.out.push(' ');
            }
        }
    }

    /// Writes the translation up to a place.
    fn advance(&mut self, to: usize) {
        let is_text = self.at < to;
        while self.at < to {
            let word = &self.aligned.target[self.at / 4];
            let part = match self.at % 4 {
                0 => escape(&word.lead),
                1 if word.markup => word.core.as_str().into(),
                1 => escape(&word.core),
                2 => escape(&word.trail),
                _ if self.without_gap == Some(self.at) => "".into(),
                _ => {
                    let next = self.aligned.target.get(self.at / 4 + 1);
                    escape(next.map_or("", |next| &next.gap))
                }
            };
            self.out.push_str(&part);
            self.at += 1;
        }
        if is_text {
            self.without_gap = None;
        }
    }
}
