//! The model that training starts from: `train.init`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use attend_cli::Bars;
use attend_data::{Tokenizer, Tokenizers};
use attend_infer::{Bundle, Contents, DecodeConfig, hub};
use attend_model::{ModelConfig, Seq2Seq};
use candle_core::{Device, Tensor};
use serde::Serialize;
use toml::Table;

use crate::freeze::without_layer;
use crate::{Config, Error, Result, differences};

/// The weights and the tokenizers of a model that was trained before.
pub(crate) struct Init {
    path: PathBuf,
    pub(crate) tokenizers: Tokenizers,
    model: ModelConfig,
    tensors: HashMap<String, Tensor>,
}

/// What became of every tensor.
#[derive(Debug, Default)]
struct Account {
    taken: usize,
    /// Taken, with more rows for new tokens.
    grown: Vec<String>,
    new: Vec<String>,
    left_out: Vec<String>,
}

/// The settings of the model at this path that a config leaves to it: `model` and `decode`.
pub(crate) fn settings(path: &Path) -> Result<Table> {
    #[derive(Serialize)]
    struct Settings<'a> {
        model: &'a ModelConfig,
        decode: &'a DecodeConfig,
    }
    let contents = Contents::open(&hub::local(path, &Bars)?)?;
    let settings = Table::try_from(Settings {
        model: &contents.config.model,
        decode: &contents.decode,
    });
    Ok(settings.expect("configs are always valid TOML"))
}

impl Init {
    /// Opens a model of the hub, a bundle, a run, or whatever else `infer` can translate with.
    pub(crate) fn open(path: &Path, device: &Device) -> Result<Self> {
        let bundle = Bundle::open(&hub::local(path, &Bars)?, device)?;
        let weights = bundle.model.weights().iter();
        let tensors = weights.map(|weight| (weight.name().to_string(), weight.value().clone()));
        Ok(Self {
            path: path.into(),
            tensors: tensors.collect(),
            tokenizers: bundle.tokenizers,
            model: bundle.config.model,
        })
    }

    /// Says what a config sets otherwise than this model's.
    pub(crate) fn report_differences(&self, config: &Config) {
        let as_there = Config {
            model: self.model.clone(),
            ..config.clone()
        };
        for difference in differences(&as_there, config) {
            tracing::info!("other than there: {difference}");
        }
    }

    /// The weights that a new model begins with: those of the same name and shape, with new rows for new tokens, and
    /// the new model's own for all others. Says what was taken and what was not.
    pub(crate) fn weights(
        mut self,
        fresh: &dyn Seq2Seq,
        tokenizers: &Tokenizers,
    ) -> Result<HashMap<String, Tensor>> {
        let mut account = Account::default();
        let mut weights = HashMap::new();
        for weight in fresh.weights().iter() {
            let (name, fresh) = (weight.name(), weight.value().detach());
            let taken = self.tensors.remove(name);
            let value = match taken.map(|old| self.fit(name, &old, &fresh, tokenizers)) {
                Some(Fit::Same(old)) => {
                    account.taken += 1;
                    old
                }
                Some(Fit::Grown(old)) => {
                    account.grown.push(name.to_string());
                    old?
                }
                Some(Fit::Other) => {
                    account.left_out.push(name.to_string());
                    account.new.push(name.to_string());
                    fresh
                }
                None => {
                    account.new.push(name.to_string());
                    fresh
                }
            };
            weights.insert(name.to_string(), value);
        }
        account.left_out.extend(self.tensors.into_keys());
        account.left_out.sort();
        account.report(&self.path)?;
        Ok(weights)
    }

    /// How a tensor fits a weight of the new model. The rows of embeddings and outputs are tokens, so they fit only
    /// if the vocabulary begins with the same tokens.
    fn fit(&self, name: &str, old: &Tensor, fresh: &Tensor, tokenizers: &Tokenizers) -> Fit {
        let Some(side) = Side::of(name) else {
            return match old.dims() == fresh.dims() {
                true => Fit::Same(old.clone()),
                false => Fit::Other,
            };
        };
        let (Some(before), Some(now)) =
            (side.tokenizer(&self.tokenizers), side.tokenizer(tokenizers))
        else {
            return Fit::Other;
        };
        let columns = |tensor: &Tensor| tensor.dims().get(1).copied();
        if columns(old) != columns(fresh) || !continues(before, now) {
            return Fit::Other;
        }
        match old.dims() == fresh.dims() {
            true => Fit::Same(old.clone()),
            false => Fit::Grown(with_new_rows(old, fresh)),
        }
    }
}

enum Fit {
    Same(Tensor),
    Grown(candle_core::Result<Tensor>),
    Other,
}

/// Whose tokens the rows of a weight are.
enum Side {
    Source,
    Target,
}

impl Side {
    fn of(name: &str) -> Option<Self> {
        match name {
            "model.encoder.embed_tokens.weight" => Some(Self::Source),
            "model.shared.weight"
            | "model.decoder.embed_tokens.weight"
            | "lm_head.weight"
            | "final_logits_bias" => Some(Self::Target),
            _ => None,
        }
    }

    fn tokenizer<'a>(&self, tokenizers: &'a Tokenizers) -> Option<&'a Tokenizer> {
        match self {
            Self::Source => tokenizers.source(),
            Self::Target => Some(tokenizers.target()),
        }
    }
}

/// Whether a vocabulary has the tokens of another one, at the same ids. `<pad>` is always last.
fn continues(before: &Tokenizer, now: &Tokenizer) -> bool {
    let words = before.vocab_size() - 1;
    words < now.vocab_size() && (0..words as u32).all(|id| before.token(id) == now.token(id))
}

/// The rows of the tokens that were there, those of new tokens, and the last, which is `<pad>`'s.
fn with_new_rows(old: &Tensor, fresh: &Tensor) -> candle_core::Result<Tensor> {
    let (before, now) = (old.dim(0)? - 1, fresh.dim(0)? - 1);
    let words = old.narrow(0, 0, before)?;
    let new = fresh.narrow(0, before, now - before)?;
    Tensor::cat(&[&words, &new, &old.narrow(0, before, 1)?], 0)
}

impl Account {
    /// One line for each kind of tensor. It is an error if nothing was taken.
    fn report(&self, path: &Path) -> Result<()> {
        let path = path.display();
        if self.taken + self.grown.len() == 0 {
            return Err(Error::Config {
                place: "train.init".into(),
                message: format!("no weight of {path} has the name and shape of one of the model"),
                hint: Some("leave [model] out: the model is then that of train.init".into()),
            });
        }
        let (taken, new, left_out) = (
            self.taken + self.grown.len(),
            self.new.len(),
            self.left_out.len(),
        );
        tracing::info!("{path}: {taken} weights taken, {new} new, {left_out} left out");
        for (what, names) in [
            ("with new rows for new tokens", &self.grown),
            ("new", &self.new),
            ("left out", &self.left_out),
        ] {
            if !names.is_empty() {
                tracing::info!("{what}: {}", grouped(names));
            }
        }
        Ok(())
    }
}

/// All names, those of different layers together: `model.encoder.layers.*.fc1.weight (6)`.
fn grouped(names: &[String]) -> String {
    let mut groups = BTreeMap::new();
    for name in names {
        *groups.entry(without_layer(name)).or_insert(0) += 1;
    }
    let groups = groups.into_iter().map(|(name, count)| match count {
        1 => name,
        count => format!("{name} ({count})"),
    });
    groups.collect::<Vec<_>>().join(", ")
}
