use std::fmt::Display;
use std::path::Path;

use attend_infer::document::Translated;
use attend_infer::{Link, Result};

use super::work::Line;
use crate::commands::output::Output;
use crate::commands::warnings::{LengthWarnings, LineReports, Problem};

/// Prints lines, and warns of what is wrong with them.
pub(super) struct Printer {
    style: Style,
    output: Output,
    alignments: Option<Output>,
    lengths: LengthWarnings,
    reports: LineReports,
    /// The longest sentences that are translated whole, if long lines are split.
    longest: usize,
    /// Lines printed so far.
    printed: usize,
}

/// What is printed of a line.
#[derive(Clone, Copy)]
pub(super) enum Style {
    /// The best translation.
    Text,
    /// The score, a tab and the best translation.
    Scored,
    /// The n best translations, in Moses' format.
    Best,
}

impl Printer {
    /// Opens the files. `longest` is the length of the longest sentences that are translated whole, if there is one.
    pub(super) fn open(
        style: Style,
        output: Option<&Path>,
        alignments: Option<&Path>,
        lengths: LengthWarnings,
        longest: Option<usize>,
    ) -> Result<Self> {
        let output = Output::open(output)?;
        let alignments = alignments.map(|path| Output::open(Some(path)));
        Ok(Self {
            style,
            output,
            alignments: alignments.transpose()?,
            lengths,
            reports: LineReports::default(),
            longest: longest.unwrap_or_default(),
            printed: 0,
        })
    }

    /// How many lines were printed.
    pub(super) fn printed(&self) -> usize {
        self.printed
    }

    pub(super) fn print(&mut self, line: Line) -> Result<()> {
        let Line { translated, best } = line;
        let Translated { text, score, .. } = &translated;
        match self.style {
            Style::Text => self.output.line(text)?,
            Style::Scored => self.output.line(format_args!("{score:.6}\t{text}"))?,
            Style::Best => {
                for (text, score) in best {
                    let line = self.printed;
                    self.output
                        .line(format_args!("{line} ||| {text} ||| {score:.6}"))?;
                }
            }
        }
        if let Some(alignments) = &mut self.alignments {
            alignments.line(pharaoh(&translated.links))?;
        }
        self.printed += 1;
        self.warn(translated);
        Ok(())
    }

    /// Warns of the line that was printed last.
    fn warn(&mut self, translated: Translated) {
        let line = self.printed;
        self.lengths.check(line, translated.source_tokens);
        if translated.split {
            let (pieces, longest) = (translated.pieces, self.longest);
            self.reports.add(Problem::Split { pieces, longest }, line);
        }
        if translated.cut {
            self.reports.add(Problem::Cut, line);
        }
        if translated.repeats {
            self.reports.add(Problem::Repeats, line);
        }
        if let Some(tag) = translated.repaired {
            self.reports.add(Problem::Repaired(tag), line);
        }
        if !translated.missing_terms.is_empty() {
            self.reports
                .add(Problem::MissingTerms(translated.missing_terms), line);
        }
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.output.flush()?;
        self.alignments.as_mut().map_or(Ok(()), Output::flush)
    }

    /// Prints how many warnings were not printed.
    pub(super) fn finish(self) {
        self.lengths.finish();
        self.reports.finish();
    }
}

/// Links as the program Pharaoh wrote them, which other tools read.
fn pharaoh(links: &[Link]) -> impl Display {
    let links: Vec<String> = links.iter().map(Link::to_string).collect();
    links.join(" ")
}
