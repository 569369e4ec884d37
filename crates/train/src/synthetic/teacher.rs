use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use attend_batch::SourceShape;
use attend_cli::Bars;
use attend_infer::run::Checkpoint;
use attend_infer::{
    Bundle, Contents, DecodeConfig, Error as InferError, Manifest, Translator, hub, sha256,
};
use attend_model::{Kernels, Packing};

use crate::{Compute, Error, Result};

/// A model that writes one side of the training data.
pub struct Teacher {
    bundle: Bundle,
    kernels: Kernels,
    /// A hash of all that its translations depend on.
    identity: String,
}

/// What it gave for a line, if that is worth learning.
pub(super) enum Taught {
    Translation(String),
    /// It is empty, was cut off, or repeats itself, or the line was too long.
    Unfit,
}

impl Teacher {
    /// Opens a run, a bundle, or a model of another program, also on the hub. `change` may change how it translates.
    pub fn open(
        path: &Path,
        compute: &Compute,
        change: impl FnOnce(&mut DecodeConfig),
    ) -> Result<Self> {
        let path = hub::local(path, &Bars)?;
        let contents = Contents::open(&path)?;
        let mut identity = fingerprint(&contents.folder)?;
        let kernels = compute.kernels;
        let mut bundle = contents.load_to_translate(&compute.device, kernels, Packing::Float)?;
        if bundle.model.source() != SourceShape::Text {
            return Err(Error::NoTranslator(path));
        }
        change(&mut bundle.decode);
        bundle.decode.validate().map_err(InferError::from)?;
        let decode = serde_json::to_string(&bundle.decode).map_err(candle_core::Error::wrap)?;
        identity = sha256(format!("{identity} {decode}").as_bytes());
        Ok(Self {
            bundle,
            kernels,
            identity,
        })
    }

    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// Whether a tag that is put before sources is one of its tokens.
    pub(super) fn knows(&self, tag: &str) -> bool {
        let source = self.bundle.tokenizers.source();
        source.is_some_and(|tokenizer| {
            let ids = tokenizer.encode(tag).unwrap_or_default();
            matches!(ids[..], [id, eos] if id != tokenizer.unk() && eos == tokenizer.eos())
        })
    }

    /// One translation for each line.
    pub(super) fn translate(
        &self,
        lines: &[String],
        advance: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Taught>> {
        let Bundle {
            model,
            tokenizers,
            decode,
            ..
        } = &self.bundle;
        let observer = |lines: usize| advance(lines);
        let translator = Translator::new(&**model, tokenizers, decode, self.kernels);
        let translations = translator
            .observed_by(&observer)
            .translate(lines)?
            .into_iter();
        Ok(translations
            .map(|translation| {
                let whole = translation.source_tokens <= decode.max_source_length;
                let fit = whole && !translation.cut && !translation.repeats;
                match translation.text().trim() {
                    "" => Taught::Unfit,
                    text if fit => Taught::Translation(text.to_string()),
                    _ => Taught::Unfit,
                }
            })
            .collect())
    }
}

/// A hash of a model's files.
fn fingerprint(folder: &Path) -> Result<String> {
    let read = || {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // How it translates is part of the identity anyway.
            let others = [Manifest::NAME, "generation_config.json"];
            let trainers = Checkpoint::TRAINER_FILES.contains(&&*name);
            if entry.path().is_file() && !trainers && !others.contains(&&*name) {
                files.insert(name, sha256(&fs::read(entry.path())?));
            }
        }
        Ok(files)
    };
    let files = read().map_err(|source| InferError::Read {
        path: folder.to_path_buf(),
        source,
    })?;
    Ok(sha256(format!("{files:?}").as_bytes()))
}
