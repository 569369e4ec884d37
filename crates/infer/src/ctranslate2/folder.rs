use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use attend_data::{Tokenizer, Tokenizers};
use attend_model::ModelConfig;
use candle_core::Tensor;
use serde::{Deserialize, Serialize};

use super::{Model, ModelFile};
use crate::bundle::{json, parse, read};
use crate::export::exportable;
use crate::{BundleConfig, Contents, DecodeConfig, Error, LengthMeasure, Result};

const MODEL: &str = "model.bin";
const CONFIG: &str = "config.json";
const SHARED: &str = "shared_vocabulary.json";
const SOURCE: &str = "source_vocabulary.json";
const TARGET: &str = "target_vocabulary.json";

/// Positions that are written at least: the longest input that CTranslate2 reads by default.
const POSITIONS: usize = 1024;

/// What `layer_norm_epsilon` is where `config.json` does not say. It is ours.
const EPSILON: f32 = 1e-5;

/// `config.json`, as far as it is read.
#[derive(Deserialize)]
struct Config {
    layer_norm_epsilon: Option<f32>,
}

/// `config.json` as it is written.
#[derive(Serialize)]
struct Written {
    add_source_bos: bool,
    add_source_eos: bool,
    bos_token: &'static str,
    decoder_start_token: String,
    eos_token: String,
    layer_norm_epsilon: Option<f32>,
    unk_token: String,
}

/// Writes a Transformer to a folder that CTranslate2 loads, with the files of its tokenizers. The folder is created
/// if it does not exist. `model.bin` is the last file, without which nothing loads the folder.
pub fn write_folder(
    folder: &Path,
    config: &BundleConfig,
    decode: &DecodeConfig,
    tokenizers: &Tokenizers,
    tensors: &BTreeMap<String, Tensor>,
) -> Result<()> {
    let model = Model {
        config: exportable(&config.model)?.clone(),
        vocabularies: config.vocabularies,
        tensors: tensors.clone(),
        quantization: config.quantization,
    };
    model.check()?;
    config.check_tokenizers(tokenizers, folder)?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|source| Error::Write { path, source })
    };
    fs::create_dir_all(folder).map_err(|source| Error::Write {
        path: folder.into(),
        source,
    })?;
    let target = tokenizers.target();
    write(CONFIG, &json(&Written::of(target)?))?;
    match tokenizers.source() {
        Some(source) if !tokenizers.is_joint() => {
            write(SOURCE, &json(&words(source)?))?;
            write(TARGET, &json(&words(target)?))?;
        }
        _ => write(SHARED, &json(&words(target)?))?,
    }
    for (name, bytes) in tokenizers.files() {
        write(name, &bytes)?;
    }
    // A longer input or output is an error of CTranslate2.
    let longest = [
        config.max_length.unwrap_or(0),
        decode.max_length,
        decode.max_source_length,
    ];
    let positions = longest.into_iter().fold(POSITIONS, usize::max);
    let path = folder.join(MODEL);
    let file = File::create(&path).map_err(|source| Error::Write {
        path: path.clone(),
        source,
    })?;
    model.write(BufWriter::new(file), &path, positions)
}

impl Written {
    fn of(target: &Tokenizer) -> Result<Self> {
        let eos = word(target, target.eos())?;
        Ok(Self {
            add_source_bos: false,
            // Every source ends with `</s>`. Converted models leave it to the caller to append it; with this, the
            // tokens of a line are enough, and nobody forgets it.
            add_source_eos: true,
            bos_token: "<s>", // not used, but a key that must be there
            // Not used either: decoding starts from a zero vector.
            decoder_start_token: eos.clone(),
            eos_token: eos,
            layer_norm_epsilon: None,
            unk_token: word(target, target.unk())?,
        })
    }
}

/// All tokens but the last, `<pad>`.
fn words(tokenizer: &Tokenizer) -> Result<Vec<String>> {
    (0..tokenizer.pad()).map(|id| word(tokenizer, id)).collect()
}

fn word(tokenizer: &Tokenizer, id: u32) -> Result<String> {
    tokenizer.token(id).ok_or_else(|| Error::Unexportable {
        what: format!("its tokenizer has no token with the id {id}"),
        hint: "CTranslate2 needs a token for every id: train with a tokenizer that has one".into(),
    })
}

/// Opens a folder that has the files of a tokenizer too, as [`write_folder`] writes it. The search is CTranslate2's
/// own by default.
pub(crate) fn open(folder: PathBuf) -> Result<Contents> {
    let model = read_folder(&folder)?;
    let tokenizers = Tokenizers::load(&folder)?;
    let config = BundleConfig {
        max_length: None,
        ..BundleConfig::new(
            ModelConfig::Transformer(model.config),
            model.vocabularies,
            0,
        )
    };
    config.check_tokenizers(&tokenizers, &folder)?;
    Ok(Contents {
        folder,
        config,
        tokenizers,
        decode: DecodeConfig {
            beam: 2,
            length_penalty: 1.0,
            length_measure: LengthMeasure::Tokens,
            early_stopping: true.into(),
            ..DecodeConfig::default()
        },
        weights: Box::new(model.tensors),
    })
}

/// Reads a Transformer that CTranslate2 can load.
pub fn read_folder(folder: &Path) -> Result<Model> {
    if !folder.is_dir() {
        return Err(Error::NoFolder(folder.into()));
    }
    let path = folder.join(CONFIG);
    let config: Config = parse(&read(&path)?, &path)?;
    if let Some(epsilon) = config.layer_norm_epsilon
        && epsilon != EPSILON
    {
        let what = format!("layer_norm_epsilon is {epsilon}, not {EPSILON}");
        return Err(Error::Unsupported { path, what });
    }
    let joint = folder.join(SHARED).exists();
    let model = Model::read(&mut ModelFile::open(&folder.join(MODEL))?, joint)?;
    let source = model.vocabularies.source.unwrap_or(0);
    let target = model.vocabularies.target;
    let files = match joint {
        true => vec![(SHARED, source), (SHARED, target)],
        false => vec![(SOURCE, source), (TARGET, target)],
    };
    for (name, rows) in files {
        let path = folder.join(name);
        let words: Vec<String> = parse(&read(&path)?, &path)?;
        if words.len() + 1 != rows {
            let (words, rows) = (words.len(), rows.saturating_sub(1));
            return Err(Error::Damaged {
                path,
                message: format!("{words} tokens, where {MODEL} has {rows}"),
            });
        }
    }
    Ok(model)
}
