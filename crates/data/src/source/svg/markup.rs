//! What a document asks for, before a library that calls itself reads it.
//!
//! An SVG can be small and ask for more work than anybody has time for: elements that `use` elements that `use`
//! elements, or masks of masks. The elements and the references between them are a graph, whose paths are counted
//! without following them one by one.

use super::super::Problem;
use super::style::{Rule, references, rules};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::collections::HashMap;

/// The most elements inside one another, where one that is used counts where it is used.
const MOST_DEPTH: u32 = 100;
const MOST_ELEMENTS: usize = 50_000;
const MOST_ATTRIBUTES: usize = 256;
/// The most bytes of tags, where those of elements that are used count each time.
const MOST_WORK: u64 = 16 << 20;
/// What an element takes beside its tag.
const ELEMENT: u64 = 64;
/// The most comparisons of a style sheet's selectors with elements.
const MOST_MATCHES: usize = 10_000_000;

/// Elements that load or repeat what no count here covers.
const REFUSED: [&str; 3] = ["image", "feimage", "foreignobject"];
/// The same, if something refers to them.
const REFUSED_IF_USED: [&str; 3] = ["pattern", "marker", "filter"];

#[derive(Default)]
struct Element {
    name: String,
    classes: Vec<String>,
    id: Option<String>,
    /// The ids that it refers to.
    refers: Vec<String>,
    children: Vec<usize>,
    bytes: u64,
}

/// An error if the document refers to other files, or asks for too much.
pub(super) fn check(text: &str) -> Result<(), Problem> {
    let mut document = Document::default();
    document.read(text)?;
    document.apply_styles()?;
    document.count_work()
}

#[derive(Default)]
struct Document {
    elements: Vec<Element>,
    styles: String,
}

fn refuse(what: impl Into<String>) -> Problem {
    Problem::new(what, "simplify the SVG, or convert it to PNG")
}

impl Document {
    fn read(&mut self, text: &str) -> Result<(), Problem> {
        let mut reader = Reader::from_str(text);
        let damaged = |why: String| {
            let what = format!("damaged SVG: {why}");
            Problem::new(what, "write it again, or convert it to PNG")
        };
        let mut open: Vec<usize> = Vec::new();
        loop {
            let event = reader.read_event();
            let event = event.map_err(|error| damaged(error.to_string()))?;
            let in_style = open
                .last()
                .is_some_and(|&element| self.elements[element].name == "style");
            match event {
                Event::Start(tag) => {
                    let element = self.add(&tag, open.last().copied())?;
                    open.push(element);
                    if open.len() > MOST_DEPTH as usize {
                        return Err(refuse(format!(
                            "has SVG more than {MOST_DEPTH} levels deep"
                        )));
                    }
                }
                Event::Empty(tag) => drop(self.add(&tag, open.last().copied())?),
                Event::End(_) => drop(open.pop()),
                Event::Text(text) if in_style => self.styles.push_str(&text),
                Event::CData(text) if in_style => self.styles.push_str(&text),
                Event::GeneralRef(name) if in_style => {
                    let known = name.resolve_char_ref().ok().flatten();
                    self.styles.push(known.unwrap_or(' '));
                }
                Event::DocType(text) if text.contains("<!ENTITY") => {
                    return Err(refuse("is SVG that declares entities"));
                }
                Event::PI(text) if text.starts_with("xml-stylesheet") => {
                    return Err(refuse("is SVG with a style sheet in another file"));
                }
                Event::Eof if !open.is_empty() => {
                    return Err(damaged("it ends inside of an element".into()));
                }
                Event::Eof => return Ok(()),
                _ => {}
            }
        }
    }

    fn add(&mut self, tag: &BytesStart, parent: Option<usize>) -> Result<usize, Problem> {
        if self.elements.len() == MOST_ELEMENTS {
            return Err(refuse(format!(
                "has more than {MOST_ELEMENTS} elements of SVG"
            )));
        }
        let name = tag.local_name().as_ref().to_ascii_lowercase();
        if REFUSED.contains(&&*name) {
            return Err(refuse(match reference(tag)? {
                Some(file) if !file.starts_with("data:") => {
                    format!("is SVG that refers to another file: {}", short(&file))
                }
                _ => format!("is SVG with a picture inside: <{name}> is not drawn"),
            }));
        }
        let mut element = Element {
            bytes: tag.len() as u64,
            name,
            ..Element::default()
        };
        for (count, attribute) in tag.attributes().with_checks(false).enumerate() {
            let attribute = attribute.map_err(|error| refuse(format!("damaged SVG: {error}")))?;
            if count == MOST_ATTRIBUTES {
                let what =
                    format!("has an element of SVG with more than {MOST_ATTRIBUTES} attributes");
                return Err(refuse(what));
            }
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|error| refuse(format!("damaged SVG: {error}")))?;
            match attribute.key.local_name().as_ref() {
                "id" => element.id = Some(value.to_string()),
                "class" => element.classes = value.split_whitespace().map(String::from).collect(),
                // A link leads somewhere only if somebody follows it.
                "href" if element.name == "a" => {}
                "href" => match value.trim().strip_prefix('#') {
                    Some(id) => element.refers.push(id.into()),
                    None if value.trim().is_empty() => {}
                    None => return Err(other_file(&value)),
                },
                "filter" if !matches!(value.trim(), "" | "none" | "inherit") => {
                    return Err(refuse("is SVG with a filter, which is not drawn"));
                }
                _ => element
                    .refers
                    .extend(references(&value).map_err(|file| other_file(&file))?),
            }
        }
        let number = self.elements.len();
        self.elements.push(element);
        if let Some(parent) = parent {
            self.elements[parent].children.push(number);
        }
        Ok(number)
    }

    /// Adds the references that style sheets make.
    fn apply_styles(&mut self) -> Result<(), Problem> {
        let all = rules(&self.styles).map_err(|file| match file.is_empty() {
            true => refuse("is SVG with a style sheet that is too complex"),
            false => other_file(&file),
        })?;
        let selectors = self.styles.matches(['{', ',']).count();
        if selectors.saturating_mul(self.elements.len()) > MOST_MATCHES {
            return Err(refuse("is SVG with a style sheet that is too large"));
        }
        for Rule { selector, refers } in &all {
            for element in &mut self.elements {
                if selector.matches(&element.name, element.id.as_deref(), &element.classes) {
                    element.refers.extend(refers.iter().cloned());
                }
            }
        }
        Ok(())
    }

    /// Counts the bytes and the depth of the whole document, with all that is used in its place.
    fn count_work(&self) -> Result<(), Problem> {
        let mut ids: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, element) in self.elements.iter().enumerate() {
            if let Some(id) = &element.id {
                ids.entry(id).or_default().push(number);
            }
        }
        // What an element leads to: the elements in it and those that it refers to.
        let next = |element: &Element, i: usize| -> Option<usize> {
            let mut found = element.children.iter().copied();
            let i = match i.checked_sub(element.children.len()) {
                None => return found.nth(i),
                Some(i) => i,
            };
            let all = element.refers.iter().filter_map(|id| ids.get(&**id));
            all.flatten().copied().nth(i)
        };
        const OPEN: (u64, u32) = (u64::MAX, 0);
        let mut known: Vec<Option<(u64, u32)>> = vec![None; self.elements.len()];
        // The elements on the way, each with the number of those after it that are done, their work and depth.
        let mut way: Vec<(usize, usize, u64, u32)> = Vec::new();
        if !self.elements.is_empty() {
            way.push((0, 0, 0, 0));
            known[0] = Some(OPEN);
        }
        while let Some((number, done, work, depth)) = way.last_mut() {
            let element = &self.elements[*number];
            let Some(after) = next(element, *done) else {
                let whole = (*work + element.bytes + ELEMENT, *depth + 1);
                if whole.0 > MOST_WORK || whole.1 > MOST_DEPTH {
                    return Err(refuse("is SVG whose elements use one another too often"));
                }
                known[*number] = Some(whole);
                way.pop();
                continue;
            };
            let name = &*self.elements[after].name;
            if *done >= element.children.len() && REFUSED_IF_USED.contains(&name) {
                return Err(refuse(format!("is SVG with a {name}, which is not drawn")));
            }
            match known[after] {
                Some(OPEN) => return Err(refuse("is SVG with an element that uses itself")),
                Some((w, d)) => {
                    *done += 1;
                    *work = work.saturating_add(w);
                    *depth = (*depth).max(d);
                }
                None => {
                    known[after] = Some(OPEN);
                    way.push((after, 0, 0, 0));
                }
            }
        }
        Ok(())
    }
}

/// What an element refers to by `href`.
fn reference(tag: &BytesStart) -> Result<Option<String>, Problem> {
    let mut attributes = tag.attributes();
    let mut all = attributes.with_checks(false).flatten();
    let found = all.find(|attribute| attribute.key.local_name().as_ref() == "href");
    Ok(found.map(|attribute| attribute.value.to_string()))
}

fn other_file(name: &str) -> Problem {
    refuse(match name.trim().starts_with("data:") {
        true => "is SVG with another file inside".into(),
        false => format!("is SVG that refers to another file: {}", short(name.trim())),
    })
}

fn short(name: &str) -> String {
    const SHOWN: usize = 60;
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.into(),
    }
}
