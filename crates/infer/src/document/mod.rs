//! Lines of text to requests for a translator, and its translations back to lines.
//!
//! A model translates sentences of a limited length. A line may be more than that: a paragraph, a line of HTML, or
//! longer than anything that the model was trained on. [`Document::new`] takes lines apart into requests, and
//! [`Document::finish`] puts their translations together: one line for each line, with the white space that was
//! between its pieces, its markup and its protected text.
//!
//! | file | contents |
//! |---|---|
//! | `layout` | what is done with lines |
//! | `line` | takes one line apart, and puts its translation together |
//! | `sentences`, `split` | pieces of a text: sentences, and what fits the model |
//! | `scan`, `protect` | URLs, numbers and the like, which come out as they went in |
//! | `html/` | inline markup |
//! | `aligned` | a line and its translation as linked words, which both of these edit |
//! | `diagonal` | links without a model |
//! | `words` | words and punctuation |

mod aligned;
mod diagonal;
mod html;
mod layout;
mod line;
mod protect;
mod scan;
mod sentences;
mod split;
mod words;

#[cfg(test)]
mod tests;

pub use diagonal::Diagonal;
pub use layout::{CountTokens, Format, Layout, TermsOf};
pub use scan::Kind;

use serde::{Deserialize, Serialize};

use crate::plan::missing;
use crate::{AlignWords, Error, Link, Pair, Request, Result, Translation};

use line::Line;

/// A line to translate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paragraph {
    pub text: String,
    /// The line's number: random draws depend on it, and on nothing else of the input.
    pub number: u64,
    /// What the translation begins with.
    pub prefix: Option<String>,
}

/// The translation of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Translated {
    /// One line, without a line break.
    pub text: String,
    /// The mean of the scores of its pieces. Each is divided by its length already, so the scores of lines with
    /// different numbers of sentences can be compared.
    pub score: f32,
    /// Whether a piece ended because of `decode.max_length` or `max_length_ratio`, not by itself.
    pub cut: bool,
    /// Whether a piece ended in a loop.
    pub repeats: bool,
    /// Required phrases that it does not have.
    pub missing_terms: Vec<String>,
    /// A tag that had no end on the line, or no beginning, and was repaired.
    pub repaired: Option<String>,
    /// Whether the line was split because it is longer than the model's sentences.
    pub split: bool,
    /// How many requests it was.
    pub pieces: usize,
    /// Source tokens of its longest piece, `</s>` included.
    pub source_tokens: usize,
    /// Which words stand for each other, if [`Layout::with_links`] asks for them. Words are those of the whole line.
    pub links: Vec<Link>,
}

/// Lines in pieces that are to be translated.
pub struct Document<'a> {
    layout: &'a Layout<'a>,
    lines: Vec<Line>,
    requests: Vec<Request>,
}

impl<'a> Document<'a> {
    /// Takes lines apart.
    pub fn new(paragraphs: Vec<Paragraph>, layout: &'a Layout<'a>) -> Result<Self> {
        let mut requests = Vec::with_capacity(paragraphs.len());
        let mut lines = Vec::with_capacity(paragraphs.len());
        for paragraph in paragraphs {
            let (line, of_line) = Line::new(paragraph, layout)?;
            lines.push(line);
            requests.extend(of_line);
        }
        Ok(Self {
            layout,
            lines,
            requests,
        })
    }

    /// What is to be translated. A line can have any number of requests.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The lines, from one translation for each request. `aligner` is asked only for what needs links: lines with
    /// markup, and those in which something protected has changed.
    pub fn finish(
        self,
        translations: &[Translation],
        aligner: &dyn AlignWords,
    ) -> Result<Vec<Translated>> {
        let (wanted, found) = (self.requests.len(), translations.len());
        if wanted != found {
            return Err(Error::Usage {
                message: format!("{wanted} requests have {found} translations"),
                hint: "give one translation for each request, in the same order".into(),
            });
        }
        let mut pairs = Vec::new();
        let mut first = 0;
        let mut needs = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            let own = first..first + line.pieces();
            first = own.end;
            needs.push(line.needs_links(&translations[own.clone()], self.layout));
            if needs.last() == Some(&true) {
                let requests = self.requests[own.clone()].iter();
                pairs.extend(
                    requests
                        .zip(&translations[own])
                        .map(|(request, translation)| Pair {
                            source: &request.text,
                            target: &translation.hypotheses[0],
                        }),
                );
            }
        }
        let links = match pairs.is_empty() {
            true => Vec::new(),
            false => aligner.links(&pairs)?,
        };
        let mut links = links.into_iter();
        let (mut translations, mut requests) = (translations, &self.requests[..]);
        let finish = |(line, needs_links): (Line, bool)| {
            let (own, rest) = translations.split_at(line.pieces());
            let (asked, others) = requests.split_at(line.pieces());
            (translations, requests) = (rest, others);
            let links: Vec<Vec<Link>> = match needs_links {
                true => links.by_ref().take(own.len()).collect(),
                false => Vec::new(),
            };
            let mut translated = line.finish(own, needs_links.then_some(&*links), self.layout);
            // In the whole line: what is put back can replace a term.
            let terms: Vec<String> = asked.iter().flat_map(|it| it.terms.clone()).collect();
            translated.missing_terms = missing(&terms, &translated.text);
            translated
        };
        Ok(self.lines.into_iter().zip(needs).map(finish).collect())
    }
}
