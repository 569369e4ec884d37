//! TMX: translation memories in XML.

use super::decoded::{Decoded, TOO_LONG};
use super::unit::Unit;
use super::{Pair, Pairs, bad, pairs_of, short};
use crate::compression::Content;
use crate::input::Columns;
use crate::{Column, Error, Result};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

/// Maximum number of elements inside each other. A segment of TMX has about ten.
const MAX_DEPTH: usize = 256;

pub(crate) fn read(content: Content, columns: &Columns) -> Result<Pairs> {
    let Content {
        reader,
        path,
        compression,
    } = content;
    let kind = compression.map_or("TMX", |compression| compression.name());
    let language = |column: &Option<Column>, language: &str| match column {
        Some(Column::Name(name)) => name.clone(),
        _ => language.to_string(),
    };
    let (source, target) = (&columns.languages.0, &columns.languages.1);
    let languages = [
        language(&columns.source, source),
        language(&columns.target, target),
    ];
    let decoded = Decoded::new(reader).map_err(|source| Error::Damaged {
        path: path.clone(),
        kind,
        line: 0,
        source,
    })?;
    let mut reader = Reader::from_reader(decoded);
    reader.config_mut().allow_dangling_amp = true; // common, and it can only be the character
    let mut units = Units {
        reader,
        path,
        kind,
        languages,
        buffer: Vec::new(),
        open: Vec::new(),
        has_root: false,
    };
    Ok(pairs_of(move || units.next_unit()))
}

/// The units of a file: its `<tu>` elements.
struct Units<R> {
    reader: Reader<Decoded<R>>,
    path: PathBuf,
    kind: &'static str, // of what damage is, if the file cannot be read
    languages: [String; 2],
    buffer: Vec<u8>,
    open: Vec<Element>,
    has_root: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Unit,    // tu
    Variant, // tuv: the unit in one language
    Segment, // seg: its text
    Markup,  // bpt, ept, it, ph, ut: codes of another format, which are no text
    Other,
}

impl Element {
    fn of(name: &str) -> Self {
        match name {
            "tu" => Self::Unit,
            "tuv" => Self::Variant,
            "seg" => Self::Segment,
            "bpt" | "ept" | "it" | "ph" | "ut" => Self::Markup,
            _ => Self::Other, // hi and sub among them
        }
    }
}

impl<R: BufRead> Units<R> {
    fn next_unit(&mut self) -> Result<Option<Pair>> {
        let mut unit = Unit::default();
        loop {
            self.buffer.clear();
            self.reader.get_mut().begin_event();
            let event = self.reader.read_event_into(&mut self.buffer);
            let line = self.reader.get_ref().line();
            let event = event.map_err(|error| damaged(&self.path, self.kind, line, error))?;
            let in_segment = self.open.contains(&Element::Segment);
            let is_text = in_segment && !self.open.contains(&Element::Markup);
            match event {
                Event::Start(tag) => {
                    let element = Element::of(tag.local_name().as_ref());
                    if self.open.len() == MAX_DEPTH {
                        return Err(broken(
                            &self.path,
                            line,
                            "too many elements inside each other",
                        ));
                    }
                    self.has_root |= tag.local_name().as_ref() == "tmx";
                    match element {
                        Element::Unit => unit = Unit::at(line),
                        Element::Variant => unit.begin_variant(&language_of(&tag), &self.languages),
                        Element::Segment => unit.push(""),
                        Element::Markup | Element::Other => {}
                    }
                    self.open.push(element);
                }
                Event::Empty(tag) => match Element::of(tag.local_name().as_ref()) {
                    Element::Segment => unit.push(""),
                    Element::Unit => {
                        let problem = format!("no {}", self.languages[0]);
                        return Err(bad(&self.path, line, problem));
                    }
                    _ => {}
                },
                Event::End(_) => match self.open.pop() {
                    Some(Element::Variant) => unit.end_variant(),
                    Some(Element::Unit) => {
                        let is_utf16 = self.reader.get_ref().is_utf16();
                        let unit = unit.or_at(line); // around another one, which was given
                        let pair = unit.into_pair(&self.path, &self.languages, is_utf16);
                        return pair.map(Some);
                    }
                    _ => {}
                },
                Event::Text(text) if is_text => unit.push(&text.into_inner()),
                Event::CData(text) if is_text => unit.push(&text.into_inner()),
                Event::GeneralRef(name) if is_text => match resolve(&name) {
                    Ok(text) => unit.push(text.encode_utf8(&mut [0; 4])),
                    Err(problem) => unit.fail(problem),
                },
                Event::Decl(declaration) => {
                    let encoding = declaration.encoding();
                    if let Some(Ok(encoding)) = encoding
                        && !self.reader.get_ref().is_utf16()
                        && !["utf-8", "utf8", "us-ascii", "ascii"]
                            .contains(&encoding.to_ascii_lowercase().as_str())
                    {
                        let path = self.path.display();
                        return Err(Error::Unreadable {
                            problem: format!("{path}: the encoding {encoding} is not supported"),
                            hint: format!(
                                "convert it with `iconv -f {encoding} -t UTF-8 {path}`, and change its first line"
                            ),
                        });
                    }
                }
                Event::Eof if !self.open.is_empty() => {
                    return Err(broken(&self.path, line, "it ends inside of an element"));
                }
                Event::Eof if !self.has_root => {
                    return Err(broken(&self.path, line, "it has no <tmx> element"));
                }
                Event::Eof => return Ok(None),
                _ => {}
            }
        }
    }
}

fn broken(path: &Path, line: u64, problem: &'static str) -> Error {
    Error::Damaged {
        path: path.into(),
        kind: "TMX",
        line,
        source: io::Error::new(io::ErrorKind::InvalidData, problem),
    }
}

/// An error of the parser, or of the reader below it.
fn damaged(path: &Path, kind: &'static str, line: u64, error: quick_xml::Error) -> Error {
    let (path, line) = (path.into(), line.saturating_sub(1));
    match error {
        quick_xml::Error::Io(source) if source.raw_os_error().is_some() => Error::Io {
            path,
            source: io::Error::new(source.kind(), source),
        },
        quick_xml::Error::Io(source) if source.kind() != TOO_LONG => Error::Damaged {
            path,
            kind,
            line,
            source: io::Error::new(source.kind(), source),
        },
        error => Error::Damaged {
            path,
            kind: "TMX",
            line,
            source: io::Error::new(io::ErrorKind::InvalidData, error),
        },
    }
}

/// `xml:lang`, or `lang` in older files.
fn language_of(tag: &BytesStart) -> String {
    let mut attributes = tag.attributes();
    let mut attributes = attributes.with_checks(false).flatten();
    let language = attributes.find(|a| matches!(a.key.as_ref(), "xml:lang" | "lang"));
    let language = language.map(|attribute| attribute.value.to_string());
    language.unwrap_or_default()
}

/// A character reference, or one of the five entities of XML. Others are not expanded.
fn resolve(name: &str) -> std::result::Result<char, String> {
    let number = match name {
        "amp" => return Ok('&'),
        "lt" => return Ok('<'),
        "gt" => return Ok('>'),
        "quot" => return Ok('"'),
        "apos" => return Ok('\''),
        name => name.strip_prefix('#'),
    };
    let Some(number) = number else {
        return Err(format!("an unknown entity &{};", short(name)));
    };
    let code = match number.strip_prefix('x') {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    let character = code.ok().and_then(char::from_u32);
    character.ok_or_else(|| format!("a character reference &{}; of no character", short(name)))
}
