//! A model for other programs: Hugging Face's transformers, or CTranslate2.
//!
//! An export proves itself: what was written is read back, and must translate a sample to the same tokens.
//!
//! | file | contents |
//! |---|---|
//! | `origin` | what is known of where a model comes from |
//! | `card` | the model card, `README.md` |
//! | `proof` | the comparison of the model with its export |

mod card;
mod origin;
mod proof;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use attend_batch::SourceShape;
use attend_model::{Kernels, ModelConfig, ScoreKind, Seq2Seq, TransformerConfig};
use attend_ops::Int8Matrix;
use candle_core::{Device, Tensor};

use crate::bundle::{Bundle, Contents, Manifest, Quantization};
use crate::huggingface::{self, expressible};
use crate::staging::Staging;
use crate::{BundleConfig, Error, Heads, LengthMeasure, Result, ctranslate2};
use card::Card;
use origin::Origin;
use proof::prove;

/// The languages of source and target of a model, if the folder that it was opened from is a checkpoint's.
pub fn languages(folder: &Path) -> Option<(String, String)> {
    let origin = Origin::of(folder);
    let (source, target) = origin.languages()?;
    Some((source.into(), target.into()))
}

/// The program that an export is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    /// A folder that transformers loads: MarianMT if the model is post-norm, Pegasus if it is pre-norm
    Hf,
    /// A folder that CTranslate2 loads
    Ctranslate2,
}

/// What the user says of an export.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// A licence, by the name that the hub knows it by.
    pub license: Option<String>,
    /// The name of the model for its card, such as OWNER/NAME.
    pub name: Option<String>,
    /// How matrices are written, if not as floats.
    pub quantization: Option<Quantization>,
}

/// What was exported.
#[derive(Debug)]
pub struct Exported {
    /// Sentences of the sample, whose translations are the same.
    pub proved: usize,
}

/// Exports a run, a checkpoint or a bundle to a new folder. Nothing is left there if that fails, or if the export
/// translates otherwise than the model.
pub fn export(
    run: &Path,
    format: ExportFormat,
    place: &Path,
    options: &ExportOptions,
    kernels: Kernels,
) -> Result<Exported> {
    let contents = Contents::open(run)?;
    exportable(&contents.config.model)?;
    let origin = Origin::of(&contents.folder);
    let mut bundle = contents.load(&Device::Cpu)?;
    bundle.config.quantization = None; // a bundle in 8 bits was read as floats
    if options.quantization.is_some() && format == ExportFormat::Hf {
        return Err(Error::Unexportable {
            what: "transformers has no models in 8 bits of this kind".into(),
            hint: "leave out --quantize, or export --to ctranslate2".into(),
        });
    }
    let staging = Staging::new(place)?;
    let decode = expressible(&bundle.decode);
    if bundle.decode.beam > 1 && bundle.decode.length_measure == LengthMeasure::Gnmt {
        tracing::warn!(
            "the length penalty there is tokens^{}, not GNMT's: some translations will be others",
            decode.length_penalty
        );
    }
    let (config, tokenizers) = (&bundle.config, &bundle.tokenizers);
    let tensors = tensors(&bundle);
    match format {
        ExportFormat::Hf => {
            staging.write(&huggingface::files(config, tokenizers, &decode, tensors)?)?;
        }
        ExportFormat::Ctranslate2 => {
            let config = BundleConfig {
                quantization: options.quantization,
                ..config.clone()
            };
            ctranslate2::write_folder(staging.path(), &config, &decode, tokenizers, &tensors)?;
            if options.quantization.is_some() {
                // What is proved is that the export has the weights that quantising gives.
                bundle.model = requantized(&bundle)?;
            }
        }
    }
    let card = Card {
        format,
        name: options.name.as_deref().unwrap_or_else(|| file_name(place)),
        license: options.license.as_deref(),
        bundle: &bundle,
        decode: &decode,
        origin: &origin,
    };
    staging.write(&[("README.md".to_string(), card.to_string().into_bytes())])?;
    let proved = prove(
        &bundle,
        staging.path(),
        &decode,
        &origin.sample(&bundle)?,
        kernels,
    );
    let proved = proved.map_err(|error| match error {
        Error::ExportDiffers { message, .. } => Error::ExportDiffers {
            folder: run.into(),
            message,
        },
        error => error,
    })?;
    staging.finish()?;
    Ok(Exported { proved })
}

/// The model, if other programs have its kind: a Transformer with scaled dot products.
pub(crate) fn exportable(model: &ModelConfig) -> Result<&TransformerConfig> {
    let refused = |what: &str, hint: &str| {
        Err(Error::Unexportable {
            what: what.into(),
            hint: hint.into(),
        })
    };
    if model.source() != SourceShape::Text {
        return refused(
            &format!("it reads {}", model.source()),
            "only models that read text can be exported",
        );
    }
    let kind = "only Transformers can be exported: train a [model.transformer]";
    let transformer = match model {
        ModelConfig::Transformer(transformer) => transformer,
        ModelConfig::Recurrent(_) => return refused("it is recurrent", kind),
        ModelConfig::Snail(_) => return refused("it is a SNAIL", kind),
        ModelConfig::Caption(_) => return refused("its sources are not text", kind),
        ModelConfig::Lstmn(_) => return refused("it is an LSTMN", kind),
    };
    if transformer
        .score
        .0
        .iter()
        .any(|score| *score != ScoreKind::ScaledDot)
    {
        return refused(
            "its attention has another score than scaled-dot",
            "other programs have no other: train with model.transformer.score = \"scaled-dot\"",
        );
    }
    Ok(transformer)
}

/// Writes a model of another program as a bundle. Nothing is left there if that fails.
pub fn import(source: &Path, place: &Path) -> Result<Bundle> {
    let bundle = Bundle::open(source, &Device::Cpu)?;
    write_bundle(&bundle, place)?;
    Ok(bundle)
}

/// Writes a model as a bundle whose matrices are in 8 bits. Nothing is left there if that fails.
pub fn quantize(source: &Path, place: &Path) -> Result<Bundle> {
    let contents = Contents::open(source)?;
    if contents.config.quantization.is_some() {
        return Err(Error::Usage {
            message: format!("{}: is in 8 bits already", source.display()),
            hint: "copy it, or quantise the model that it was made from".into(),
        });
    }
    let heads = Heads::of_folder(&contents.folder)?;
    let mut bundle = contents.load(&Device::Cpu)?;
    if !bundle.config.model.can_pack() {
        return Err(Error::Usage {
            message: format!("{}: cannot be quantised", source.display()),
            hint: "only Transformers with scaled dot-product attention can".into(),
        });
    }
    bundle.config.quantization = Some(Quantization::Int8);
    write_bundle(&bundle, place)?;
    if let Some(heads) = heads {
        heads.save(place)?; // no part of the bundle, but chosen for this model
    }
    Ok(bundle)
}

fn write_bundle(bundle: &Bundle, place: &Path) -> Result<()> {
    let staging = Staging::new(place)?;
    let files = Bundle::files(
        &bundle.config,
        &bundle.tokenizers,
        &bundle.decode,
        &tensors(bundle),
    )?;
    let manifest = Manifest::of(&files).to_json();
    staging.write(&files)?;
    staging.write(&[(Manifest::NAME.to_string(), manifest)])?;
    staging.finish()
}

/// The model with the weights that are left of it in 8 bits.
fn requantized(bundle: &Bundle) -> Result<Box<dyn Seq2Seq>> {
    let tensors = tensors(bundle);
    let mut load = |name: &str| {
        let tensor = &tensors[name];
        let [outputs, inputs] = *tensor.dims() else {
            return Ok(tensor.clone());
        };
        let values = tensor.flatten_all()?.to_vec1::<f32>()?;
        let (bytes, scales) = Int8Matrix::quantize(&values, outputs, inputs);
        let size = bytes.len();
        match Int8Matrix::new(Arc::new(bytes), 0..size, &scales, inputs) {
            Some(matrix) => Tensor::from_vec(matrix.dequantize(), (outputs, inputs), &Device::Cpu),
            None => candle_core::bail!("`{name}` cannot be quantised"),
        }
    };
    let config = &bundle.config;
    Ok(config
        .model
        .load(config.vocabularies, &Device::Cpu, &mut load)?)
}

/// The weights of a model, by name.
fn tensors(bundle: &Bundle) -> BTreeMap<String, Tensor> {
    let weights = bundle.model.weights().iter();
    weights
        .map(|weight| (weight.name().to_string(), weight.value().clone()))
        .collect()
}

fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("model")
}
