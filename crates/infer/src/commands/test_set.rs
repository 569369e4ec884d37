use std::path::{Path, PathBuf};

use attend_batch::SourceShape;
use attend_infer::{Error, Hypotheses, Result, Translator};

use super::line_file::LineFile;

/// A file of sentences, one on each line.
pub(super) struct TextFile {
    pub(super) path: PathBuf,
    pub(super) lines: Vec<String>,
    file: LineFile,
}

impl TextFile {
    /// `-` is standard input.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let file = LineFile::new(path);
        let lines = file.open()?;
        let lines = lines.collect::<attend_data::Result<Vec<String>>>()?;
        let path = match file.is_stdin() {
            true => file.name().into(),
            false => path.into(),
        };
        Ok(Self { path, lines, file })
    }

    /// The best translations of the lines. If the model does not read text, they are paths, relative to the file.
    pub(super) fn translate(
        &self,
        translator: &Translator,
        shape: SourceShape,
    ) -> Result<Hypotheses> {
        if shape == SourceShape::Text {
            return Hypotheses::of(translator, &self.lines);
        }
        let paths = self.lines.iter().map(|line| self.file.resolve(line));
        let translated = Hypotheses::of(translator, &paths.collect::<Vec<_>>());
        translated.map_err(|error| self.file.locate(error, 0))
    }

    pub(super) fn read_all(paths: &[PathBuf]) -> Result<Vec<Self>> {
        paths.iter().map(|path| Self::read(path)).collect()
    }
}

/// An error unless all files have the same number of lines, and at least one.
pub(super) fn check_lines<'a>(files: impl IntoIterator<Item = &'a TextFile>) -> Result<()> {
    let mut files = files.into_iter();
    let Some(first) = files.next() else {
        return Ok(());
    };
    for other in files {
        if first.lines.len() != other.lines.len() {
            return Err(Error::Data(attend_data::Error::UnequalLines {
                source_path: first.path.clone(),
                source_lines: first.lines.len(),
                target_path: other.path.clone(),
                target_lines: other.lines.len(),
            }));
        }
    }
    if first.lines.is_empty() {
        let paths = vec![first.path.clone()];
        return Err(Error::Data(attend_data::Error::EmptyCorpus { paths }));
    }
    Ok(())
}
