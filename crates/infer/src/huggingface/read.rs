use std::path::{Path, PathBuf};

use attend_data::{Tokenizer, Tokenizers};
use attend_model::ModelConfig;

use super::config::HubConfig;
use super::generation;
use super::tensors::Renamed;
use crate::bundle::{BundleConfig, CONFIG, Contents, GENERATION_CONFIG, vocabularies};
use crate::file::read_regular;
use crate::weights::open_weights;
use crate::{DecodeConfig, Error, Result};

/// The folder, in that of a model with two tokenizers, that has the one of the target.
pub(super) const TARGET_FOLDER: &str = "target";

/// The model and the search that `config.json` describes, where it has the settings of `generate` too. `path` is for
/// errors.
pub fn parse_hub_config(json: &[u8], path: &Path) -> Result<(ModelConfig, DecodeConfig)> {
    let config = HubConfig::parse(json, path)?;
    let decode = generation::parse(json, path, &config)?;
    let model = config.model();
    let valid = model.validate();
    valid.map_err(|error| Error::Damaged {
        path: path.into(),
        message: error.to_string(),
    })?;
    Ok((model, decode))
}

/// Opens the folder of a MarianMT or Pegasus model.
pub(crate) fn open(folder: PathBuf) -> Result<Contents> {
    let path = folder.join(CONFIG);
    let json = read(&path)?;
    let config = HubConfig::parse(&json, &path)?;
    let decode = match folder.join(GENERATION_CONFIG) {
        newer if newer.exists() => generation::parse(&read(&newer)?, &newer, &config)?,
        _ => generation::parse(&json, &path, &config)?,
    };
    let tokenizers = load_tokenizers(&folder)?;
    check_tokenizers(&config, &tokenizers, &folder)?;
    let vocabularies = vocabularies(&tokenizers);
    let mut model = config.model();
    let valid = model.validate_with(vocabularies);
    valid.map_err(|error| Error::Damaged {
        path,
        message: error.to_string(),
    })?;
    let weights = open_weights(&folder)?;
    let ModelConfig::Transformer(transformer) = &mut model else {
        unreachable!("a config of this kind is a Transformer's")
    };
    let weights = Renamed::new(weights, transformer, vocabularies, &folder)?;
    Ok(Contents {
        config: BundleConfig::new(model, vocabularies, config.max_position_embeddings),
        tokenizers,
        decode,
        weights: Box::new(weights),
        folder,
    })
}

/// One tokenizer, or one for each side: `target/` has the second.
fn load_tokenizers(folder: &Path) -> Result<Tokenizers> {
    let target = folder.join(TARGET_FOLDER).join("tokenizer.json");
    if !target.exists() {
        return Ok(Tokenizers::load(folder)?);
    }
    let source = Tokenizer::load(folder.join("tokenizer.json"))?;
    let target = Tokenizer::load(target)?;
    let size = source.vocab_size().max(target.vocab_size()) as u32;
    Ok(
        match (0..size).all(|id| source.token(id) == target.token(id)) {
            true => Tokenizers::Shared { source, target },
            false => Tokenizers::Separate { source, target },
        },
    )
}

/// The model and its tokenizers must have the same tokens with a meaning of their own.
fn check_tokenizers(config: &HubConfig, tokenizers: &Tokenizers, folder: &Path) -> Result<()> {
    let (source, target) = (tokenizers.require_source()?, tokenizers.target());
    let found = (source.vocab_size(), target.vocab_size());
    if found != config.tokens() {
        let in_words = |(source, target)| format!("{source} source and {target} target tokens");
        return Err(Error::Vocabularies {
            folder: folder.into(),
            found: in_words(found),
            expected: in_words(config.tokens()),
        });
    }
    if config.eos_token_id != target.eos() || source.eos() != target.eos() {
        return Err(Error::Unsupported {
            path: folder.join(CONFIG),
            what: format!(
                "eos_token_id is {} where the tokenizers have {} and {}",
                config.eos_token_id,
                source.eos(),
                target.eos()
            ),
        });
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    read_regular(path).map_err(|source| Error::read(path, source))
}
