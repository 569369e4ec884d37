use crate::document::protect::Protected;
use crate::document::words::{is_punctuation, trim, words};

use super::token::{Tag, Token, Tokens};
use super::tree::{Markup, Node};

/// Elements deeper than this are left out: browsers have such a limit too.
const DEEPEST: usize = 100;
/// The most words of an element that is kept as it is within a sentence. A longer one is not shown to the model.
const MOST_VERBATIM: usize = 8;

const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];
/// Their content is no text.
const RAW: [&str; 4] = ["script", "style", "textarea", "title"];
/// Their content is kept as it is.
const VERBATIM: [&str; 6] = ["code", "kbd", "pre", "samp", "svg", "var"];
const BLOCK: [&str; 36] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "html",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "td",
    "th",
    "tr",
];
/// If the end tag of an element around them comes first, these go on after it.
const FORMATTING: [&str; 13] = [
    "a", "b", "big", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];
/// Elements that end where another one of the same group begins.
const ENDED_BY_NEXT: [&[&str]; 5] = [&["p"], &["li"], &["dt", "dd"], &["td", "th"], &["option"]];

/// Reads the tokens of a line into a tree.
pub(super) struct Builder<'a> {
    tokens: Tokens<'a>,
    markup: Markup,
    /// The elements that are open, with their names.
    open: Vec<(String, usize)>,
    /// The names of open elements that are too deep.
    left_out: Vec<String>,
    /// Whether the last space of the text is there only to keep words apart.
    is_soft: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self {
            tokens: Tokens::new(line),
            markup: Markup::default(),
            open: Vec::new(),
            left_out: Vec::new(),
            is_soft: false,
        }
    }

    pub(super) fn build(mut self) -> Markup {
        while let Some(token) = self.tokens.next() {
            self.add(token);
        }
        let optional = |name: &str| ENDED_BY_NEXT.iter().any(|group| group.contains(&name));
        let open = self.open.iter().find(|(name, _)| !optional(name));
        if let Some(name) = open.map(|(name, _)| format!("<{name}>")) {
            self.repaired(name);
        }
        self.close_to(0);
        self.markup
    }

    /// Notes the first tag that had to be repaired.
    fn repaired(&mut self, tag: String) {
        self.markup.repaired.get_or_insert(tag);
    }

    fn add(&mut self, token: Token<'a>) {
        match token {
            Token::Text(text) => self.text(&text),
            Token::Other(raw) => self.void(raw.into_owned(), false),
            Token::Close(name) => self.close(&name),
            Token::Open(tag) => self.tag(tag),
        }
    }

    fn text(&mut self, text: &str) {
        let to = &mut self.markup.text;
        for c in text.chars() {
            if !c.is_whitespace() {
                self.is_soft = false;
                to.push(c);
            } else if to.ends_with(char::is_whitespace) {
                self.is_soft = false;
                // Only indentation has more than one space.
                if to.trim_start().is_empty() && self.markup.nodes.is_empty() {
                    to.push(c);
                }
            } else if !to.is_empty() || self.markup.nodes.is_empty() {
                to.push(c);
            }
        }
    }

    fn tag(&mut self, tag: Tag<'a>) {
        let name = &*tag.name;
        let is_block = BLOCK.contains(&name);
        if is_block {
            self.break_here();
        }
        if RAW.contains(&name) && !tag.is_closed {
            let from = self.tokens.at;
            let raw = self.tokens.raw_element(&tag);
            if !self.tokens.since(from).ends_with('>') {
                self.repaired(format!("<{}>", tag.name));
            }
            self.void(raw, false);
        } else if VOID.contains(&name) || tag.is_closed {
            self.void(tag.raw.into(), name == "br");
        } else if tag.is_verbatim || VERBATIM.contains(&name) {
            self.verbatim(&tag, is_block);
        } else {
            self.open(tag);
        }
        if is_block {
            self.break_here();
        }
    }

    fn break_here(&mut self) {
        self.markup.breaks.push(self.markup.text.len());
    }

    fn space_before(&self) -> bool {
        let text = &self.markup.text;
        text.ends_with(char::is_whitespace) && !self.is_soft && !text.trim_start().is_empty()
    }

    fn space_after(&self) -> bool {
        self.tokens.rest().starts_with(char::is_whitespace)
    }

    fn push(&mut self, open: String, close: String, is_break: bool) -> usize {
        let at = self.markup.text.len();
        let index = self.markup.nodes.len();
        self.markup.nodes.push(Node {
            open,
            close,
            place: at..at,
            children: Vec::new(),
            spaces: (self.space_before(), self.space_after()),
            is_break,
            is_again: false,
        });
        match self.open.last() {
            Some((_, parent)) => self.markup.nodes[*parent].children.push(index),
            None => self.markup.roots.push(index),
        }
        index
    }

    fn void(&mut self, raw: String, is_break: bool) {
        self.push(raw, String::new(), is_break);
        let text = &mut self.markup.text;
        if is_break && !text.is_empty() && !text.ends_with(char::is_whitespace) {
            text.push(' ');
            self.is_soft = true;
        }
    }

    fn open(&mut self, tag: Tag) {
        let group = ENDED_BY_NEXT
            .iter()
            .find(|group| group.contains(&&*tag.name));
        let last = self.open.last().map(|(name, _)| &**name);
        if group.is_some_and(|group| last.is_some_and(|last| group.contains(&last))) {
            self.close_to(self.open.len() - 1);
        }
        self.open_element(tag.name, tag.raw.into());
    }

    fn open_element(&mut self, name: String, raw: String) {
        if self.open.len() >= DEEPEST {
            self.left_out.push(name);
            return;
        }
        let index = self.push(raw, format!("</{name}>"), false);
        self.open.push((name, index));
    }

    fn close(&mut self, name: &str) {
        if self.left_out.last().is_some_and(|last| last == name) {
            self.left_out.pop();
            return;
        }
        let Some(at) = self.open.iter().rposition(|(open, _)| open == name) else {
            return self.repaired(format!("</{name}>"));
        };
        let again: Vec<(String, String)> = self.open[at + 1..]
            .iter()
            .filter(|(name, _)| FORMATTING.contains(&&**name))
            .map(|(name, index)| (name.clone(), self.markup.nodes[*index].open.clone()))
            .collect();
        self.close_to(at);
        if BLOCK.contains(&name) {
            self.break_here();
        }
        for (name, raw) in again {
            let index = self.markup.nodes.len();
            self.open_element(name, raw);
            if let Some(node) = self.markup.nodes.get_mut(index) {
                node.is_again = true;
            }
        }
    }

    /// Closes elements until so many are open.
    fn close_to(&mut self, depth: usize) {
        self.left_out.clear();
        let end = self.markup.text.len();
        let space_after = self.space_after();
        for (_, index) in self.open.drain(depth..) {
            let node = &mut self.markup.nodes[index];
            node.place.end = end;
            node.spaces.1 = space_after;
            // What goes on with nothing is left out.
            if node.is_again && node.place.is_empty() && node.children.is_empty() {
                (node.open, node.close) = (String::new(), String::new());
                node.spaces = (false, false);
            }
        }
    }

    /// Reads an element that is kept as it is. Its text is shown to the model if it is short.
    fn verbatim(&mut self, tag: &Tag, is_block: bool) {
        let mut raw = tag.raw.to_string();
        let mut text = String::new();
        let mut open = vec![tag.name.clone()];
        while !open.is_empty() {
            let from = self.tokens.at;
            let Some(token) = self.tokens.next() else {
                break;
            };
            match token {
                Token::Text(part) => {
                    text.push_str(&part);
                    push_text(&mut raw, self.tokens.since(from));
                }
                Token::Other(part) => raw.push_str(&part),
                Token::Open(tag) if RAW.contains(&&*tag.name) && !tag.is_closed => {
                    raw.push_str(&self.tokens.raw_element(&tag));
                }
                Token::Open(tag) => {
                    raw.push_str(tag.raw);
                    if !tag.is_closed && !VOID.contains(&&*tag.name) {
                        open.push(tag.name);
                    }
                }
                Token::Close(name) => {
                    if let Some(at) = open.iter().rposition(|open| *open == name) {
                        end_tags(&mut raw, open.drain(at + 1..));
                        open.pop();
                        raw.push_str(self.tokens.since(from));
                    }
                }
            }
        }
        if let Some(name) = open.first() {
            self.repaired(format!("<{name}>"));
        }
        end_tags(&mut raw, open.drain(..));
        let count = words(&text).len();
        if is_block || count == 0 || count > MOST_VERBATIM {
            return self.void(raw, !is_block);
        }
        let start = self.markup.text.len();
        self.text(&text);
        let all = &self.markup.text;
        let place = trim(all, start.min(all.len())..all.len());
        let before = all[..place.start].chars().next_back();
        let after = self.tokens.rest().chars().next();
        let is_edge =
            |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || c == '<' || is_punctuation(c));
        let item = Protected {
            text: all[place.clone()].into(),
            place,
            written: raw,
            is_markup: true,
            is_alone: is_edge(before) && is_edge(after),
            kind: None,
        };
        self.markup.protected.push(item);
    }
}

/// Writes text as it is, but for a `<` that would begin a tag at another place.
fn push_text(raw: &mut String, text: &str) {
    let mut parts = text.split('<');
    raw.extend(parts.next());
    for part in parts {
        let begins = part.starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c));
        raw.push_str(if begins || part.is_empty() {
            "&lt;"
        } else {
            "<"
        });
        raw.push_str(part);
    }
}

/// Writes the end tags of elements that are open, the innermost first.
fn end_tags(raw: &mut String, open: impl DoubleEndedIterator<Item = String>) {
    for name in open.rev() {
        raw.push_str(&format!("</{name}>"));
    }
}
