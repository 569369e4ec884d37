//! Lines to their translations. The ranks of a job share them.

use attend_comm::{Comm, broadcast_value, gather_values, share};
use attend_infer::document::{Document, Layout, Paragraph, Translated};
use attend_infer::{AlignWords, Error, Translation, Translator};
use serde::{Deserialize, Serialize};

use super::files;

/// What translates lines.
pub(super) struct Work<'a> {
    pub(super) translator: &'a Translator<'a>,
    pub(super) layout: &'a Layout<'a>,
    pub(super) aligner: &'a dyn AlignWords,
    /// Whether lines are text. Otherwise they name files.
    pub(super) reads_text: bool,
    /// How many translations of a line are kept.
    pub(super) best: usize,
}

/// What became of some lines.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) lines: Vec<Line>,
    /// Why the line after these could not be translated.
    pub(super) fault: Option<Fault>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) translated: Translated,
    /// Its best translations and their scores.
    pub(super) best: Vec<(String, f32)>,
}

/// Why a file cannot be read.
#[derive(Serialize, Deserialize)]
pub(super) struct Fault {
    pub(super) problem: String,
    pub(super) hint: String,
}

impl Work<'_> {
    /// Translates lines on all ranks. The others are in [`Work::help`].
    pub(super) fn lead(&self, lines: Vec<Paragraph>, comm: &dyn Comm) -> anyhow::Result<Done> {
        if comm.is_alone() || lines.is_empty() {
            return Ok(self.translate(lines)?);
        }
        let lines = broadcast_value(comm, Some(&lines))?;
        self.translate_together(lines, comm)
    }

    /// Translates what the first rank gives, until that has no more lines.
    pub(super) fn help(&self, comm: &dyn Comm) -> anyhow::Result<()> {
        loop {
            let lines: Vec<Paragraph> = broadcast_value(comm, None)?;
            if lines.is_empty() {
                return Ok(());
            }
            self.translate_together(lines, comm)?;
        }
    }

    /// Tells the other ranks that there are no more lines.
    pub(super) fn end(&self, comm: &dyn Comm) -> anyhow::Result<()> {
        if !comm.is_alone() {
            broadcast_value(comm, Some(&Vec::<Paragraph>::new()))?;
        }
        Ok(())
    }

    /// Every rank translates its share of the lines, and has the translations of all.
    fn translate_together(
        &self,
        mut lines: Vec<Paragraph>,
        comm: &dyn Comm,
    ) -> anyhow::Result<Done> {
        let lengths = lines.iter().map(|line| line.text.len() + 1);
        let own = share(lengths, comm.rank(), comm.size());
        let own = self.translate(lines.drain(own).collect())?;
        let mut done = Done::default();
        for part in gather_values(comm, &own)? {
            done.lines.extend(part.lines);
            if part.fault.is_some() {
                done.fault = part.fault;
                break;
            }
        }
        Ok(done)
    }

    fn translate(&self, lines: Vec<Paragraph>) -> attend_infer::Result<Done> {
        if !self.reads_text {
            return self.caption(lines);
        }
        let document = Document::new(lines, self.layout)?;
        let translations = self.translator.translate_requests(document.requests())?;
        // With several translations of a line, every line is one request.
        let best: Vec<_> = translations.iter().map(|it| self.best_of(it)).collect();
        let mut best = best.into_iter();
        let line = |translated| Line {
            translated,
            best: best.next().unwrap_or_default(),
        };
        let lines = document.finish(&translations, self.aligner)?.into_iter();
        Ok(Done {
            lines: lines.map(line).collect(),
            fault: None,
        })
    }

    /// Translates lines up to the first whose file cannot be read.
    fn caption(&self, lines: Vec<Paragraph>) -> attend_infer::Result<Done> {
        let requests = files::requests(lines);
        let (mut sound, mut fault) = (&requests[..], None);
        loop {
            match self.translator.translate_requests(sound) {
                Ok(translations) => {
                    let line = |translation: &Translation| Line {
                        translated: files::translated(translation),
                        best: self.best_of(translation),
                    };
                    let lines = translations.iter().map(line).collect();
                    return Ok(Done { lines, fault });
                }
                Err(Error::Line { index, source, .. }) if index < sound.len() => {
                    sound = &sound[..index];
                    fault = Some(Fault {
                        problem: source.to_string(),
                        hint: source.hint().unwrap_or_default(),
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn best_of(&self, translation: &Translation) -> Vec<(String, f32)> {
        let hypotheses = translation.hypotheses.iter().take(self.best);
        hypotheses.map(|it| (it.text.clone(), it.score)).collect()
    }
}

impl Fault {
    /// The error of the line with this index, before its place is known.
    pub(super) fn error(self, index: usize) -> Error {
        let Self { problem, hint } = self;
        Error::Line {
            index,
            place: format!("line {}", index + 1),
            source: attend_data::Error::Unreadable { problem, hint },
        }
    }
}
