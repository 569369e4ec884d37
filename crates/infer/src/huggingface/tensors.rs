//! The tensors of a MarianMT or Pegasus model by the names of Attend's weights, and back.
//!
//! Attend's names are MarianMT's, so that only exceptions are here: embeddings that transformers stores under
//! several names, the shape of the output bias, and tables of positions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use attend_model::{
    LoadError, ModelConfig, NormKind, Tie, TransformerConfig, Vocabularies, sinusoids,
};
use candle_core::{Device, Result as TensorResult, Tensor};

use super::family::Family;
use crate::weights::TensorSource;
use crate::{Error, Result};

const SHARED: &str = "model.shared.weight";
const SOURCE: &str = "model.encoder.embed_tokens.weight";
const TARGET: &str = "model.decoder.embed_tokens.weight";
const OUTPUT: &str = "lm_head.weight";
const BIAS: &str = "final_logits_bias";
const POSITIONS: [&str; 2] = [
    "model.encoder.embed_positions.weight",
    "model.decoder.embed_positions.weight",
];

/// The names under which transformers may store a weight: the first that is there is read. The others, if they are
/// there too, must be the same.
fn stored_names(name: &str, tie: Tie) -> Vec<&str> {
    match (name, tie) {
        (SHARED, _) => vec![SHARED, SOURCE, TARGET, OUTPUT],
        (TARGET, Tie::Decoder) => vec![TARGET, OUTPUT],
        // Files of older versions have what the two sides share once.
        (SOURCE | TARGET | OUTPUT, _) => vec![name, SHARED],
        _ => vec![name],
    }
}

/// The tensors of a folder, under the names of Attend's weights.
pub(super) struct Renamed {
    source: Box<dyn TensorSource>,
    shapes: BTreeMap<String, Vec<usize>>,
    tie: Tie,
    path: PathBuf,
}

impl Renamed {
    /// Checks that the folder has every weight of the model and nothing unknown. `path` is for errors.
    pub(super) fn new(
        mut source: Box<dyn TensorSource>,
        model: &mut TransformerConfig,
        vocabularies: Vocabularies,
        path: &Path,
    ) -> Result<Self> {
        let shapes = source.shapes();
        check_positions(&mut *source, &shapes, model.d_model, path)?;
        model.output_bias = has_bias(&mut *source, &shapes)?;
        // Pegasus ties all or nothing, so an output that is tied to the target alone is stored twice.
        let twice = |name: &str| shapes.contains_key(name);
        if model.norm == NormKind::Pre && model.tie == Tie::None && twice(TARGET) && twice(OUTPUT) {
            let same = same_values(&mut *source, TARGET, OUTPUT)?;
            model.tie = if same { Tie::Decoder } else { Tie::None };
        }
        let mut renamed = Self {
            source,
            shapes,
            tie: model.tie,
            path: path.into(),
        };
        renamed.check(model, vocabularies)?;
        renamed.check_tied()?;
        Ok(renamed)
    }

    fn check(&self, model: &TransformerConfig, vocabularies: Vocabularies) -> Result<()> {
        let failed = |source| Error::Weights {
            path: self.path.clone(),
            source,
        };
        let config = ModelConfig::Transformer(model.clone());
        // Before the names of all layers are listed, of which a config can ask for very many.
        let enough = config.check_weight_count(&self.shapes);
        enough.map_err(failed)?;
        let expected = config.weight_shapes(vocabularies)?;
        let mut known: BTreeSet<&str> = POSITIONS.into_iter().collect();
        known.extend([BIAS, SHARED]);
        for (name, expected) in &expected {
            let stored = stored_names(name, self.tie);
            let Some(found) = self.stored(name) else {
                return Err(failed(LoadError::Missing(name.clone())));
            };
            let shape = &self.shapes[found];
            let flat = name == BIAS && shape[..] == [1, expected[0]];
            if shape != expected && !flat {
                return Err(failed(LoadError::Shape {
                    name: found.to_string(),
                    found: shape.clone(),
                    expected: expected.clone(),
                }));
            }
            known.extend(stored);
        }
        match self.shapes.keys().find(|name| !known.contains(&***name)) {
            Some(name) => Err(failed(LoadError::Unknown(name.clone()))),
            None => Ok(()),
        }
    }

    /// The name under which a weight is stored.
    fn stored(&self, name: &str) -> Option<&str> {
        let mut names = stored_names(name, self.tie).into_iter();
        names.find_map(|name| {
            self.shapes
                .get_key_value(name)
                .map(|(name, _)| name.as_str())
        })
    }

    /// An error if tensors that are tied are stored under several names, and are not the same.
    fn check_tied(&mut self) -> Result<()> {
        let names = match self.tie {
            Tie::All => stored_names(SHARED, self.tie),
            Tie::Decoder => stored_names(TARGET, self.tie),
            Tie::None => return Ok(()),
        };
        let stored = names
            .into_iter()
            .filter(|name| self.shapes.contains_key(*name));
        let stored: Vec<&str> = stored.collect();
        let Some((first, others)) = stored.split_first() else {
            return Ok(());
        };
        for other in others {
            if !same_values(&mut *self.source, first, other)? {
                return Err(Error::Unsupported {
                    path: self.path.clone(),
                    what: format!("`{first}` and `{other}` are tied, but they differ"),
                });
            }
        }
        Ok(())
    }
}

impl TensorSource for Renamed {
    fn shapes(&self) -> BTreeMap<String, Vec<usize>> {
        self.shapes.clone()
    }

    fn read(&mut self, name: &str, device: &Device) -> TensorResult<Tensor> {
        let Some(stored) = self.stored(name).map(str::to_string) else {
            candle_core::bail!("{}: no tensor `{name}`", self.path.display())
        };
        let tensor = self.source.read(&stored, device)?;
        match name {
            BIAS => tensor.flatten_all(),
            _ => Ok(tensor),
        }
    }
}

fn same_values(source: &mut dyn TensorSource, a: &str, b: &str) -> TensorResult<bool> {
    let [a, b] = [a, b].map(|name| source.read(name, &Device::Cpu));
    let (a, b) = (a?, b?);
    if a.dims() != b.dims() {
        return Ok(false);
    }
    let different = a.ne(&b)?.flatten_all()?.max(0)?;
    Ok(different.to_scalar::<u8>()? == 0)
}

/// Whether there is a bias that is not zero. transformers always stores one.
fn has_bias(source: &mut dyn TensorSource, shapes: &BTreeMap<String, Vec<usize>>) -> Result<bool> {
    if !shapes.contains_key(BIAS) {
        return Ok(false);
    }
    let bias = source.read(BIAS, &Device::Cpu)?.flatten_all()?;
    Ok(bias.to_vec1::<f32>()?.iter().any(|value| *value != 0.0))
}

/// Refuses tables of positions that are not the sinusoids, since they are not loaded. transformers uses a stored
/// table.
fn check_positions(
    source: &mut dyn TensorSource,
    shapes: &BTreeMap<String, Vec<usize>>,
    d: usize,
    path: &Path,
) -> Result<()> {
    for name in POSITIONS {
        let Some(shape) = shapes.get(name) else {
            continue;
        };
        let refused = || Error::Unsupported {
            path: path.into(),
            what: format!("`{name}` is not the table of sinusoids"),
        };
        let [rows, columns] = shape[..] else {
            return Err(refused());
        };
        if columns != d {
            return Err(refused());
        }
        let stored = source.read(name, &Device::Cpu)?;
        let expected = sinusoids(rows, d, &Device::Cpu)?;
        let difference = (stored - expected)?.abs()?.flatten_all()?.max(0)?;
        // The file may hold 16-bit floats: bfloat16 has 8 bits of precision.
        let is_close = difference.to_scalar::<f32>()? < 4e-3;
        if !is_close {
            return Err(refused());
        }
    }
    Ok(())
}

/// The tensors that transformers reads, from those of a model.
pub(super) fn for_transformers(
    family: Family,
    model: &TransformerConfig,
    mut tensors: BTreeMap<String, Tensor>,
    vocabulary: usize,
    positions: usize,
) -> TensorResult<BTreeMap<String, Tensor>> {
    let bias = match tensors.remove(BIAS) {
        Some(bias) => bias.reshape((1, vocabulary))?,
        None => Tensor::zeros((1, vocabulary), candle_core::DType::F32, &Device::Cpu)?,
    };
    tensors.insert(BIAS.to_string(), bias);
    if family == Family::Pegasus {
        for name in POSITIONS {
            let table = sinusoids(positions, model.d_model, &Device::Cpu)?;
            tensors.insert(name.to_string(), table);
        }
        // Where nothing is tied it stores all four, and does without the first.
        if let Some(target) = tensors.get(TARGET).cloned() {
            tensors.entry(OUTPUT.to_string()).or_insert(target);
        }
        if let Some(source) = tensors.get(SOURCE).cloned() {
            tensors.insert(SHARED.to_string(), source);
        }
    }
    Ok(tensors)
}
