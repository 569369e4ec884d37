use std::ops::Range;

use crate::document::protect::Protected;

use super::builder::Builder;

/// A line of HTML: its text, and its markup as a tree over it.
#[derive(Debug, Default)]
pub(crate) struct Markup {
    /// The text without its markup. White space is one space.
    pub(crate) text: String,
    pub(crate) protected: Vec<Protected>,
    /// Where no sentence goes on: the ends of paragraphs, cells and the like.
    pub(crate) breaks: Vec<usize>,
    pub(super) nodes: Vec<Node>,
    /// The nodes that are in no other.
    pub(super) roots: Vec<usize>,
    /// The first tag that had to be repaired: one without its end, or an end without its beginning.
    pub(crate) repaired: Option<String>,
}

/// An element, or markup without content.
#[derive(Debug)]
pub(super) struct Node {
    /// The opening tag, or all of what has no content.
    pub(super) open: String,
    /// The closing tag. Empty for what has no content.
    pub(super) close: String,
    /// What it covers of the text.
    pub(super) place: Range<usize>,
    pub(super) children: Vec<usize>,
    /// Whether white space is before it, and after it.
    pub(super) spaces: (bool, bool),
    /// Whether it separates words without a space, as `<br>` does.
    pub(super) is_break: bool,
    /// Whether it goes on with an element that ended too early.
    pub(super) is_again: bool,
}

impl Markup {
    /// Reads a line. Whatever is unbalanced is repaired: an element without an end goes to the end of the line or
    /// of the element around it, an end without a beginning is left out.
    pub(crate) fn parse(line: &str) -> Self {
        let mut markup = Builder::new(line).build();
        if !line.ends_with(char::is_whitespace) {
            markup.text.truncate(markup.text.trim_end().len());
        }
        let end = markup.text.len();
        for node in &mut markup.nodes {
            node.place = node.place.start.min(end)..node.place.end.min(end);
        }
        markup.breaks.retain(|at| *at > 0 && *at < end);
        markup.breaks.dedup();
        markup
    }

    pub(crate) fn has_tags(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// Whether there is text before an offset that is not in another paragraph.
    pub(super) fn goes_on_before(&self, offset: usize) -> bool {
        let before = self.text[..offset].trim_end().len();
        before > 0 && !self.has_break(before, offset)
    }

    /// Whether there is text after an offset that is not in another paragraph.
    pub(super) fn goes_on_after(&self, offset: usize) -> bool {
        let rest = &self.text[offset..];
        let after = offset + (rest.len() - rest.trim_start().len());
        after < self.text.len() && !self.has_break(offset, after)
    }

    fn has_break(&self, from: usize, to: usize) -> bool {
        let next = self.breaks.partition_point(|at| *at < from);
        self.breaks.get(next).is_some_and(|at| *at <= to)
    }

    /// Moves it with its text.
    pub(crate) fn move_by(&mut self, to: impl Fn(usize) -> usize) {
        for node in &mut self.nodes {
            node.place = to(node.place.start)..to(node.place.end);
        }
        self.breaks.iter_mut().for_each(|at| *at = to(*at));
    }
}
