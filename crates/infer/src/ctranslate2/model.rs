use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, Write};
use std::path::Path;

use attend_model::{ModelConfig, NormKind, TransformerConfig, Vocabularies, sinusoids};
use candle_core::{Device, Tensor};

use super::names::{self, Variable};
use super::scalars::{self, Scalar, Setting, settings};
use super::writer::Writer;
use super::{Kind, ModelFile};
use crate::{Error, Quantization, Result};

/// How far positions may be from ours: other programs round them differently.
const POSITION_ERROR: f32 = 1e-4;

/// A Transformer and its weights.
pub struct Model {
    pub config: TransformerConfig,
    pub vocabularies: Vocabularies,
    /// By the names that Attend and MarianMT have for them.
    pub tensors: BTreeMap<String, Tensor>,
    /// How matrices are written, if not as floats.
    pub quantization: Option<Quantization>,
}

/// A variable to write.
enum Item {
    Setting(Scalar),
    Weights(Variable),
    Positions,
}

impl Model {
    /// Writes a `model.bin` with this many positions, after [`Model::check`]. `path` is for errors.
    pub(super) fn write(&self, out: impl Write, path: &Path, positions: usize) -> Result<()> {
        let d = self.config.d_model;
        // Sorted by name, as CTranslate2's converter does.
        let mut items = BTreeMap::from([(names::POSITIONS.to_string(), Item::Positions)]);
        for Setting { name, value, .. } in settings(&self.config) {
            items.insert(name, Item::Setting(value));
        }
        for variable in names::variables(&self.config, self.vocabularies) {
            items.insert(variable.name.clone(), Item::Weights(variable));
        }
        let quantized = |variable: &Variable| {
            self.quantization == Some(Quantization::Int8) && variable.shape.len() == 2
        };
        let scales = items.values().filter(|item| match item {
            Item::Weights(variable) => quantized(variable),
            _ => false,
        });
        let count = items.len() + scales.count();
        let mut writer = Writer::new(out, path, count)?;
        for (name, item) in &items {
            match item {
                Item::Setting(value) => writer.scalar(name, *value)?,
                Item::Positions => {
                    writer.begin(name, Kind::F32, &[positions, d])?;
                    writer.rows(&sinusoids(positions, d, &Device::Cpu)?, positions)?;
                }
                Item::Weights(variable) if quantized(variable) => {
                    writer.begin(name, Kind::I8, &variable.shape)?;
                    let mut scales = Vec::new();
                    for weight in &variable.weights {
                        let tensor = self.tensor(weight)?;
                        scales.extend(writer.quantized_rows(tensor, variable.rows())?);
                    }
                    let scales = Tensor::new(scales, &Device::Cpu)?;
                    let rows = scales.dim(0)?;
                    writer.begin(&names::scales(name), Kind::F32, &[rows])?;
                    writer.rows(&scales, rows)?;
                }
                Item::Weights(variable) => {
                    writer.begin(name, Kind::F32, &variable.shape)?;
                    for weight in &variable.weights {
                        writer.rows(self.tensor(weight)?, variable.rows())?;
                    }
                }
            }
        }
        writer.finish(&names::aliases(self.config.tie))
    }

    /// Whether there is everything to write and nothing else, and whether CTranslate2 can decode with it.
    pub(super) fn check(&self) -> Result<()> {
        let variables = names::variables(&self.config, self.vocabularies);
        let mut known = BTreeSet::new();
        for variable in &variables {
            for name in &variable.weights {
                known.insert(&**name);
                let (found, expected) = (self.tensor(name)?.dims(), variable.weight_shape());
                if found != expected {
                    let what = format!("weight `{name}` has shape {found:?}, not {expected:?}");
                    return Err(mismatch(what));
                }
            }
        }
        if let Some(name) = self.tensors.keys().find(|name| !known.contains(&***name)) {
            return Err(mismatch(format!(
                "weight `{name}` belongs to no variable of CTranslate2"
            )));
        }
        if i16::try_from(self.config.heads).is_err() {
            return Err(Error::Unexportable {
                what: format!("it has {} heads", self.config.heads),
                hint: format!("CTranslate2 counts them up to {}", i16::MAX),
            });
        }
        self.check_start(&variables)
    }

    /// CTranslate2 has no `<pad>`, and starts from a zero vector instead.
    fn check_start(&self, variables: &[Variable]) -> Result<()> {
        let target = variables
            .iter()
            .find(|variable| variable.name == names::TARGET);
        for name in target.iter().flat_map(|variable| &variable.weights) {
            let pad = self.vocabularies.target.saturating_sub(1);
            let row: Vec<f32> = self
                .tensor(name)?
                .get(pad)?
                .to_device(&Device::Cpu)?
                .to_vec1()?;
            if row.iter().any(|value| *value != 0.0) {
                return Err(Error::Unexportable {
                    what: format!("the last row of `{name}`, which is <pad>, is not zero"),
                    hint: "CTranslate2 decodes from a zero vector: export a model that `train` wrote, where \
                           that row is always zero"
                        .into(),
                });
            }
        }
        Ok(())
    }

    fn tensor(&self, name: &str) -> Result<&Tensor> {
        let tensor = self.tensors.get(name);
        tensor.ok_or_else(|| mismatch(format!("weight `{name}` is missing")))
    }

    /// Reads a `model.bin`. `joint` says whether both sides have the same vocabulary. Rows of `<pad>`, which it does
    /// not have, are zero; rates of dropout, which it does not have either, are 0.
    pub fn read<R: Read + Seek>(file: &mut ModelFile<R>, joint: bool) -> Result<Self> {
        let (config, vocabularies) = read_config(file, joint)?;
        let variables = names::variables(&config, vocabularies);
        check_variables(file, &config, &variables)?;
        check_settings(file, &config)?;
        check_positions(file, config.d_model)?;
        let mut tensors = BTreeMap::new();
        for variable in &variables {
            let values = file.read(&variable.name, &Device::Cpu)?;
            for (i, name) in variable.weights.iter().enumerate() {
                let rows = variable.rows();
                let mut tensor = values.narrow(0, i * rows, rows)?;
                if variable.of_words {
                    let pad = tensor.narrow(0, 0, 1)?.zeros_like()?;
                    tensor = Tensor::cat(&[&tensor, &pad], 0)?;
                }
                // A part of a stack would keep the whole stack alive.
                tensors.insert(name.clone(), tensor.force_contiguous()?);
            }
        }
        Ok(Self {
            config,
            vocabularies,
            tensors,
            quantization: None,
        })
    }
}

impl Variable {
    /// How many of its rows each weight has.
    fn rows(&self) -> usize {
        self.shape
            .first()
            .map_or(0, |rows| rows / self.weights.len())
    }

    /// The shape of each of the weights that it is made of.
    fn weight_shape(&self) -> Vec<usize> {
        let mut shape = self.shape.clone();
        if let Some(rows) = shape.first_mut() {
            *rows = self.rows() + usize::from(self.of_words);
        }
        shape
    }
}

/// What the variables say about the model.
fn read_config<R: Read + Seek>(
    file: &mut ModelFile<R>,
    joint: bool,
) -> Result<(TransformerConfig, Vocabularies)> {
    let setting = |file: &mut ModelFile<R>, name: &str| {
        let value = file.scalar(name)?;
        value.ok_or_else(|| file.unsupported(format!("no variable `{name}`")))
    };
    let heads = setting(file, "encoder/num_heads")?;
    let pre_norm = setting(file, "encoder/pre_norm")?;
    let activation = setting(file, "encoder/activation")?;
    let Some(activation) = scalars::activation(activation) else {
        let what = format!("activation {activation} is not ReLU, swish or exact GELU");
        return Err(file.unsupported(what));
    };
    let matrix = |name: &str| match file.shape(name) {
        Some([rows, columns]) => Ok((*rows, *columns)),
        _ => Err(file.unsupported(format!("no matrix `{name}`"))),
    };
    let ((source, _), (target, d_model)) = (matrix(names::SOURCE)?, matrix(names::TARGET)?);
    let layers = |side: &str| {
        let there = |n: &usize| file.shape(&names::of_layer(side, *n)).is_some();
        (0..).take_while(there).count()
    };
    let [source_table, target_table, output_table] =
        [names::SOURCE, names::TARGET, names::OUTPUT].map(|name| file.stored_name(name));
    let config = TransformerConfig {
        encoder_layers: layers("encoder"),
        decoder_layers: layers("decoder"),
        d_model,
        heads: heads as usize, // a negative number becomes 0
        d_ff: matrix(names::INNER)?.0,
        dropout: 0.0,
        attention_dropout: 0.0,
        activation_dropout: 0.0,
        activation,
        norm: if pre_norm == 0.0 {
            NormKind::Post
        } else {
            NormKind::Pre
        },
        tie: names::tie(source_table, target_table, output_table, joint),
        output_bias: file.shape(names::OUTPUT_BIAS).is_some(),
        ..TransformerConfig::default()
    };
    let vocabularies = Vocabularies {
        source: Some(source + 1),
        target: target + 1,
        joint,
    };
    let model = ModelConfig::Transformer(config.clone());
    let valid = model.validate_with(vocabularies);
    valid.map_err(|error| file.unsupported(error.to_string()))?;
    Ok((config, vocabularies))
}

/// Every variable must be there in its shape, and no other: it could change what the model computes.
fn check_variables<R: Read + Seek>(
    file: &ModelFile<R>,
    config: &TransformerConfig,
    variables: &[Variable],
) -> Result<()> {
    let mut known: BTreeSet<String> = variables.iter().map(|v| v.name.clone()).collect();
    known.extend(variables.iter().map(|v| names::scales(&v.name)));
    known.extend(settings(config).into_iter().map(|setting| setting.name));
    for (alias, name) in names::aliases(config.tie) {
        known.extend([alias.to_string(), name.to_string()]);
    }
    if let Some(name) = file.names().find(|name| !known.contains(*name)) {
        return Err(file.unsupported(format!("`{name}` is not part of a plain Transformer")));
    }
    for Variable { name, shape, .. } in variables {
        match file.shape(name) {
            Some(found) if found == shape => {}
            Some(found) => {
                let what = format!("`{name}` has shape {found:?}, not {shape:?}");
                return Err(file.unsupported(what));
            }
            None => return Err(file.unsupported(format!("no variable `{name}`"))),
        }
    }
    Ok(())
}

fn check_settings<R: Read + Seek>(
    file: &mut ModelFile<R>,
    config: &TransformerConfig,
) -> Result<()> {
    for setting in settings(config) {
        let (name, expected) = (&setting.name, setting.value.value());
        // Embeddings may be scaled by a number, or by √d if a flag is set.
        let flag = name.ends_with("/scale_embeddings");
        match file.scalar(name)? {
            None if setting.needed => return Err(file.unsupported(format!("no variable `{name}`"))),
            Some(found) if setting.matters && found != expected && !(flag && found == 1.0) => {
                return Err(file.unsupported(format!("`{name}` is {found}, not {expected}")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Attend computes positions, and does not load them.
fn check_positions<R: Read + Seek>(file: &mut ModelFile<R>, d: usize) -> Result<()> {
    for name in [names::POSITIONS, names::SOURCE_POSITIONS] {
        let Some([rows, columns]) = file.shape(name) else {
            // CTranslate2 then computes positions that are not the paper's.
            return Err(file.unsupported(format!("no matrix `{name}`")));
        };
        let (rows, same_width) = (*rows, *columns == d);
        let differ = || format!("`{name}` is not a table of the sinusoids that Attend computes");
        if !same_width {
            return Err(file.unsupported(differ()));
        }
        let found: Vec<f32> = file.read(name, &Device::Cpu)?.flatten_all()?.to_vec1()?;
        let ours: Vec<f32> = sinusoids(rows, d, &Device::Cpu)?.flatten_all()?.to_vec1()?;
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= POSITION_ERROR;
        if !found.iter().zip(&ours).all(near) {
            return Err(file.unsupported(differ()));
        }
    }
    Ok(())
}

/// The weights are not those of the config.
fn mismatch(what: String) -> Error {
    let hint = "the files of a bundle must match: copy the whole folder again".into();
    Error::Unexportable { what, hint }
}
