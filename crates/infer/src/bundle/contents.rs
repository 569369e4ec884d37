use std::path::{Path, PathBuf};

use attend_data::Tokenizers;
use attend_model::{Kernels, Loaded, Packing, Seq2Seq};
use attend_ops::PackedWeight;
use candle_core::Device;
use serde_json::Value;

use super::{
    Bundle, BundleConfig, CONFIG, GENERATION_CONFIG, GenerationConfig, Quantization, folder,
};
use crate::file::read_regular;
use crate::huggingface::{self, Family};
use crate::weights::{QuantizedFile, TensorSource, WeightsFile};
use crate::{DecodeConfig, Error, Result};

/// What a folder holds, before its weights are read: a bundle of Attend's, or a model that another program wrote.
pub struct Contents {
    /// The folder with the files: a checkpoint, if a run was given.
    pub folder: PathBuf,
    pub config: BundleConfig,
    pub tokenizers: Tokenizers,
    pub decode: DecodeConfig,
    /// By the names of Attend's weights. Names and shapes have been checked.
    pub(crate) weights: Box<dyn TensorSource>,
}

/// Who wrote a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Attend,
    HuggingFace,
    CTranslate2,
}

impl Contents {
    /// Opens a run folder (its `best`, else its `last` checkpoint), a checkpoint, a bundle, or the folder of a
    /// MarianMT, Pegasus or CTranslate2 model.
    pub fn open(path: &Path) -> Result<Self> {
        let folder = folder::resolve(path)?;
        match Format::of(&folder)? {
            Format::Attend => Self::open_bundle(folder),
            Format::HuggingFace => huggingface::open(folder),
            Format::CTranslate2 => crate::ctranslate2::open(folder),
        }
    }

    fn open_bundle(folder: PathBuf) -> Result<Self> {
        folder::verify(&folder)?;
        let config = BundleConfig::read(&folder.join(CONFIG))?;
        let decode = GenerationConfig::read(&folder.join(GENERATION_CONFIG))?;
        let tokenizers = Tokenizers::load(&folder)?;
        config.check_tokenizers(&tokenizers, &folder)?;
        let path = folder.join(Bundle::WEIGHTS);
        let failed = |source| Error::Weights {
            path: path.clone(),
            source,
        };
        let file = WeightsFile::open(&path)?;
        // Before anything is allocated: what the config asks for may be larger than the file.
        let (model, vocabularies) = (&config.model, config.vocabularies);
        let enough = model.check_weight_count(&file.shapes());
        enough.map_err(failed)?;
        let weights: Box<dyn TensorSource> = match config.quantization {
            None => {
                file.require_floats()?;
                Box::new(file)
            }
            Some(Quantization::Int8) => {
                let shapes = model.weight_shapes(vocabularies)?;
                Box::new(QuantizedFile::open(&path, &shapes)?)
            }
        };
        let fits = model.check_weights(vocabularies, &weights.shapes());
        fits.map_err(failed)?;
        Ok(Self {
            folder,
            config,
            tokenizers,
            decode,
            weights,
        })
    }

    /// Reads the weights.
    pub fn load(mut self, device: &Device) -> Result<Bundle> {
        let (config, weights) = (&self.config, &mut self.weights);
        let mut load = |name: &str| weights.read(name, device);
        let model = config.model.load(config.vocabularies, device, &mut load)?;
        Ok(self.bundle(model))
    }
}

impl Contents {
    /// Reads the weights of a model that only translates, in the form that does so fastest. With `packing` in 8 bits
    /// it is an error if the model, the device or the kernels cannot do that.
    pub fn load_to_translate(
        mut self,
        device: &Device,
        kernels: Kernels,
        packing: Packing,
    ) -> Result<Bundle> {
        let fused = device.is_cpu() && kernels == Kernels::Fused;
        if !fused || !self.config.model.can_pack() {
            return match packing {
                Packing::Float => self.load(device),
                Packing::Int8 => Err(Error::Usage {
                    message:
                        "only Transformers with scaled dot-product attention can be quantised, \
                              and only on the CPU"
                            .into(),
                    hint: "leave out --quantize".into(),
                }),
            };
        }
        let (config, weights) = (&self.config, &mut self.weights);
        let mut load = |name: &str| match weights.matrix(name)? {
            Some(matrix) => Ok(Loaded::Matrix(PackedWeight::int8(matrix))),
            None => Ok(Loaded::Tensor(weights.read(name, device)?)),
        };
        let model = config
            .model
            .load_packed(config.vocabularies, packing, &mut load)?;
        Ok(self.bundle(model))
    }

    fn bundle(self, model: Box<dyn Seq2Seq>) -> Bundle {
        let folder = self.folder.display();
        tracing::debug!(%folder, weights = model.weights().count(), "opened");
        Bundle {
            config: self.config,
            tokenizers: self.tokenizers,
            model,
            decode: self.decode,
        }
    }
}

impl Format {
    /// Tells by `config.json`, whose `model_type` says whose it is. That of CTranslate2 has none, and lies beside
    /// `model.bin`.
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        let path = folder.join(CONFIG);
        let json = read_regular(&path).map_err(|source| Error::read(&path, source))?;
        let damaged = |message: String| Error::Damaged {
            path: path.clone(),
            message,
        };
        let config: Value =
            serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))?;
        match config.get("model_type").and_then(Value::as_str) {
            Some(BundleConfig::MODEL_TYPE) => Ok(Self::Attend),
            Some(name) if Family::of(name).is_some() => Ok(Self::HuggingFace),
            Some(name) => Err(Error::Unsupported {
                path,
                what: format!("models of the type \"{name}\" are not supported"),
            }),
            None if folder.join("model.bin").exists() => Ok(Self::CTranslate2),
            None => Err(damaged("not the config of an Attend model".into())),
        }
    }
}
