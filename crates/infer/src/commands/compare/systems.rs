use std::fs;
use std::path::{Path, PathBuf};

use attend_cli::{Bars, bar};
use attend_infer::compare::System;
use attend_infer::{Ensemble, Error, Result, Translator, hub};
use attend_model::{Encode, Kernels, Packing};
use candle_core::Device;

use super::super::output::Output;
use super::super::test_set::TextFile;
use super::super::warnings::LengthWarnings;

/// A system whose translations are to be compared.
pub(super) enum Candidate {
    Model(PathBuf),
    File(TextFile),
}

pub(super) fn is_model(path: &Path) -> bool {
    hub::is_remote(path) || path.is_dir()
}

/// The error of a model without anything to translate.
pub(super) fn no_source(model: &Path) -> Error {
    Error::Usage {
        message: format!("{} is a model, but there is no --src", model.display()),
        hint: "give the source sentences with --src".into(),
    }
}

impl Candidate {
    pub(super) fn open(path: &Path) -> Result<Self> {
        match is_model(path) {
            true => Ok(Self::Model(path.into())),
            false => TextFile::read(path).map(Self::File),
        }
    }

    pub(super) fn file(&self) -> Option<&TextFile> {
        match self {
            Self::Model(_) => None,
            Self::File(file) => Some(file),
        }
    }

    /// The translations: those of the file, or those of the model, which is closed again.
    pub(super) fn system(
        self,
        source: Option<&TextFile>,
        device: &Device,
        kernels: Kernels,
    ) -> Result<System> {
        let run = match self {
            Self::File(file) => {
                return Ok(System {
                    name: file.path.display().to_string(),
                    lines: file.lines,
                });
            }
            Self::Model(run) => run,
        };
        let Some(source) = source else {
            return Err(no_source(&run));
        };
        let folder = hub::local(&run, &Bars)?;
        let models = Ensemble::open(&[folder], device, kernels, Packing::Float)?;
        let decode = &models.decode;
        decode.validate()?;
        let bar = bar(Some(source.lines.len() as u64));
        let advance = |lines: usize| bar.advance(lines as u64);
        let translator = Translator::new(&models.ensemble, &models.tokenizers, decode, kernels);
        let translator = translator.observed_by(&advance);
        let hypotheses = source.translate(&translator, models.ensemble.source())?;
        drop(bar);
        let mut warnings = LengthWarnings::new(models.max_length, decode.max_source_length);
        for (line, tokens) in hypotheses.source_tokens.iter().enumerate() {
            warnings.check(line + 1, *tokens);
        }
        warnings.finish();
        Ok(System {
            name: run.display().to_string(),
            lines: hypotheses.lines,
        })
    }
}

/// Keeps translations in a folder.
pub(super) struct Saver<'a>(&'a Path);

impl<'a> Saver<'a> {
    /// Creates the folder.
    pub(super) fn new(folder: &'a Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|source| Error::Write {
            path: folder.into(),
            source,
        })?;
        Ok(Self(folder))
    }

    /// The file of a system.
    pub(super) fn path(folder: &Path, number: usize, system: &Path) -> PathBuf {
        let name = system.file_name();
        let name = name.map_or("model".into(), |name| name.to_string_lossy());
        folder.join(format!("{number}-{name}.txt"))
    }

    /// Writes the translations of a system, counted from 1: `2-base.txt`.
    pub(super) fn save(&self, number: usize, system: &System) -> Result<()> {
        let path = Self::path(self.0, number, Path::new(&system.name));
        let mut file = Output::open(Some(&path))?;
        for line in &system.lines {
            file.line(line)?;
        }
        file.flush()
    }
}
