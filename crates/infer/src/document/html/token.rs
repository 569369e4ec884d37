use std::borrow::Cow;

use super::entity::decode;

/// A part of a line of HTML.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// With its entities decoded.
    Text(Cow<'a, str>),
    Open(Tag<'a>),
    /// By its name, in lower case.
    Close(String),
    /// A comment, a document type or an instruction.
    Other(Cow<'a, str>),
}

/// An opening tag.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    /// In lower case.
    pub(super) name: String,
    pub(super) raw: &'a str,
    /// Whether it ends with `/>`.
    pub(super) is_closed: bool,
    /// Whether it says `translate="no"`.
    pub(super) is_verbatim: bool,
}

/// How many tags may lack their end before every `<` is text: each is searched to the end of the line.
const MOST_ENDLESS: usize = 16;

/// The tokens of a line. Every byte of the line is in one of them.
pub(super) struct Tokens<'a> {
    line: &'a str,
    pub(super) at: usize,
    endless: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        let (at, endless) = (0, 0);
        Self { line, at, endless }
    }

    /// What is left of the line.
    pub(super) fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    /// The line from an earlier place on.
    pub(super) fn since(&self, at: usize) -> &'a str {
        &self.line[at..self.at]
    }

    /// An element that has no markup inside, from its opening tag on, which was read. An end tag is added if it has
    /// none.
    pub(super) fn raw_element(&mut self, tag: &Tag) -> String {
        let name = &tag.name;
        let rest = self.rest();
        let ends = rest.match_indices("</").find_map(|(at, _)| {
            let found = rest.get(at + 2..at + 2 + name.len())?;
            let end = rest[at..].find('>')?;
            found.eq_ignore_ascii_case(name).then_some(at + end + 1)
        });
        let content = &rest[..ends.unwrap_or(rest.len())];
        self.at += content.len();
        let end = match ends {
            Some(_) => String::new(),
            None => format!("</{name}>"),
        };
        [tag.raw, content, &end].concat()
    }

    /// The tag, comment or instruction that the rest begins with, and its length.
    fn markup(&mut self) -> Option<(Token<'a>, usize)> {
        let rest = self.rest();
        let after = rest.get(1..)?;
        if after.starts_with("!--") {
            // As in HTML, `<!-->` is a whole comment, and one without an end goes to the end of the text.
            return Some(match rest[2..].find("-->") {
                Some(end) => (Token::Other(rest[..end + 5].into()), end + 5),
                None => (Token::Other(format!("{rest}-->").into()), rest.len()),
            });
        }
        let is_name = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
        let found = match after.strip_prefix('/') {
            Some(name) if is_name(name) => rest.find('>').map(|end| {
                let name = name_of(name).to_ascii_lowercase();
                (Token::Close(name), end + 1)
            }),
            None if after.starts_with(['!', '?']) => {
                let end = rest.find('>').map(|end| end + 1);
                end.map(|end| (Token::Other(rest[..end].into()), end))
            }
            None if is_name(after) => Tag::parse(rest)
                .map(|tag| (tag.raw.len(), tag))
                .map(|(len, tag)| (Token::Open(tag), len)),
            _ => return None,
        };
        self.endless += usize::from(found.is_none());
        found
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        if rest.starts_with('<')
            && self.endless < MOST_ENDLESS
            && let Some((token, len)) = self.markup()
        {
            self.at += len;
            return Some(token);
        }
        // A `<` that begins no tag is text.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let next = rest[first..]
            .find('<')
            .filter(|_| self.endless < MOST_ENDLESS);
        let end = next.map_or(rest.len(), |next| first + next);
        self.at += end;
        Some(Token::Text(decode(&rest[..end])))
    }
}

impl<'a> Tag<'a> {
    /// The opening tag that a text begins with. None if it does not end.
    fn parse(text: &'a str) -> Option<Self> {
        let is_space = |c: char| c.is_ascii_whitespace();
        let name = name_of(&text[1..]);
        let mut is_verbatim = false;
        let mut is_closed = false;
        let mut rest = &text[1 + name.len()..];
        loop {
            rest = rest.trim_start_matches(is_space);
            match rest.as_bytes().first()? {
                b'>' => break,
                b'/' => {
                    is_closed = true;
                    rest = &rest[1..];
                    continue;
                }
                _ => is_closed = false,
            }
            // An attribute may begin with `=`.
            let first = rest.chars().next().map_or(0, char::len_utf8);
            let end = rest[first..].find(|c| is_space(c) || "=>/".contains(c))? + first;
            let (key, after) = rest.split_at(end);
            rest = after.trim_start_matches(is_space);
            let Some(value) = rest.strip_prefix('=') else {
                continue;
            };
            let value = value.trim_start_matches(is_space);
            let (value, after) = match value.as_bytes().first()? {
                b'"' => value[1..].split_once('"')?,
                b'\'' => value[1..].split_once('\'')?,
                _ => value.split_at(value.find(|c| is_space(c) || c == '>')?),
            };
            rest = after;
            is_verbatim |=
                key.eq_ignore_ascii_case("translate") && value.eq_ignore_ascii_case("no");
        }
        Some(Self {
            name: name.to_ascii_lowercase(),
            raw: &text[..text.len() - rest.len() + 1],
            is_closed,
            is_verbatim,
        })
    }
}

fn name_of(text: &str) -> &str {
    let end = text.find(|c: char| c.is_ascii_whitespace() || "/>".contains(c));
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open<'a>(name: &str, raw: &'a str, is_closed: bool, is_verbatim: bool) -> Token<'a> {
        let name = name.into();
        Token::Open(Tag {
            name,
            raw,
            is_closed,
            is_verbatim,
        })
    }

    fn text(text: &str) -> Token<'_> {
        Token::Text(text.into())
    }

    #[test]
    fn tags_are_found_with_their_attributes_and_the_rest_is_text() {
        fn found(line: &str) -> Vec<Token<'_>> {
            Tokens::new(line).collect()
        }
        assert_eq!(
            found("a <B>b</B ><br/>"),
            [
                text("a "),
                open("b", "<B>", false, false),
                text("b"),
                Token::Close("b".into()),
                open("br", "<br/>", true, false)
            ]
        );
        let tag = r#"<a href="x>y" title='<"' hidden translate = NO>"#;
        assert_eq!(found(tag), [open("a", tag, false, true)]);
        assert_eq!(
            found("<a href=x/>"),
            [open("a", "<a href=x/>", false, false)]
        );
        assert_eq!(
            found("1 < 2 &amp; 3 > 2"),
            [text("1 "), text("< 2 & 3 > 2")]
        );
        assert_eq!(found("<3 </ <b"), [text("<3 "), text("</ "), text("<b")]);
        let other = ["<!-- <b> -->", "<!DOCTYPE html>", "<?x?>"];
        assert_eq!(
            found(&other.concat()),
            other.map(|raw| Token::Other(raw.into()))
        );
        assert_eq!(found("<!-- x"), [Token::Other("<!-- x-->".into())]);
        assert_eq!(found("<a b=\"x>"), [text("<a b=\"x>")]);
    }

    #[test]
    fn unfinished_tags_take_linear_time() {
        for unit in ["<a b=\"", "<a", "</a ", "<!", "<", "<a b='>"] {
            let line = unit.repeat((1 << 20) / unit.len());
            let start = std::time::Instant::now();
            assert!(Tokens::new(&line).count() > 0);
            assert!(start.elapsed().as_secs() < 3, "{unit}");
        }
    }
}
