use attend_batch::Packed;
use attend_data::Tokenizer;
use attend_model::{Kernels, Place};
use attend_ops::on_pool;
use candle_core::DType;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Models, Result};

/// How the tokens of a translation attend to those of its source.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Attention {
    /// The source's tokens. The last is `</s>`; the others together are the sentence.
    pub source: Vec<String>,
    /// The translation's tokens, in the same way.
    pub target: Vec<String>,
    pub layers: usize,
    pub heads: usize,
    /// By layer, head, token of the translation and token of the source.
    pub weights: Vec<Vec<Vec<Vec<f32>>>>,
}

impl Attention {
    /// The most weights of one answer, which are about 7 bytes each.
    pub const MOST: usize = 1 << 20;

    /// The number of weights.
    pub fn count(&self) -> usize {
        self.layers * self.heads * self.source.len() * self.target.len()
    }

    /// The attention with teacher forcing; none if there are more than so many weights.
    pub(super) fn of(
        models: &Models,
        source: &str,
        target: &[u32],
        (layers, heads): (usize, usize),
        most: usize,
        kernels: Kernels,
    ) -> Result<Option<Self>> {
        let (model, tokenizers) = (&models.ensemble.members()[0], &models.tokenizers);
        let tokens = tokenizers.require_source()?.encode(source)?;
        let weights = layers * heads * tokens.len() * target.len();
        if weights > most || target.is_empty() {
            return Ok(None);
        }
        let maps = on_pool(|| {
            let source = Packed::of_sentences([&tokens]).into();
            let target = Packed::of_sentences([target]);
            model.attention(&source, &target, kernels)
        })?;
        let mut weights = vec![vec![Vec::new(); heads]; layers];
        for map in maps.iter().filter(|map| map.place == Place::Cross) {
            let rows: Vec<Vec<f32>> = map.weights.to_dtype(DType::F32)?.to_vec2()?;
            let rounded = rows
                .into_iter()
                .map(|row| row.into_iter().map(rounded).collect());
            weights[map.layer][map.head] = rounded.collect();
        }
        Ok(Some(Self {
            source: surfaces(tokenizers.require_source()?, &tokens)?,
            target: surfaces(tokenizers.target(), target)?,
            layers,
            heads,
            weights,
        }))
    }
}

/// To four decimals, which are enough to see and short to send.
fn rounded(weight: f32) -> f32 {
    (weight * 1e4).round() / 1e4
}

/// The text of each token, with the white space before it: all together are the text of the tokens. A special token
/// is its name. If a character has several tokens, it is the text of the last one.
pub(super) fn surfaces(tokenizer: &Tokenizer, ids: &[u32]) -> Result<Vec<String>> {
    let special = [tokenizer.eos(), tokenizer.pad()];
    let mut before = String::new();
    let mut first = 0; // where the text of the tokens begins that are decoded together
    let mut surfaces = Vec::with_capacity(ids.len());
    for (i, &id) in ids.iter().enumerate() {
        if special.contains(&id) {
            surfaces.push(tokenizer.token(id).unwrap_or_default());
            continue;
        }
        let text = tokenizer.decode(&ids[first..=i])?;
        if text.ends_with(char::REPLACEMENT_CHARACTER) {
            surfaces.push(String::new());
            continue;
        }
        match text.strip_prefix(&before) {
            Some(rest) => {
                surfaces.push(rest.to_string());
                before = text;
            }
            // A decoder for which a text is not the sum of its parts.
            None => {
                surfaces.push(tokenizer.decode(&[id])?);
                (first, before) = (i + 1, String::new());
            }
        }
    }
    Ok(surfaces)
}
