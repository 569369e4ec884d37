use attend_batch::Packed;
use attend_ops::{DropoutSite, EmbeddingDropout, Linear, Pass, Weight, dropout, project};
use candle_core::{Result, Tensor};

use super::alignment::{Alignment, AttentionPenalty};
use super::attention_config::AttentionChoice;
use super::config::RecurrentConfig;
use super::cross_map;
use super::decoder::{Decoded, Decoder, StepInput};
use super::encoded::Encoded;
use crate::attention::{Context, Hard, KeysValues, Scope};
use crate::cache::{Cache, CachedState, StepCached};
use crate::decoding;
use crate::embedding::{TargetTables, embed_words};
use crate::weights::Init;
use crate::{AttentionMap, DecoderState, Memory, Output, Penalty};

/// The half of a recurrent model that decodes.
pub(crate) struct Decoding {
    /// The table of the target's words.
    target: Weight,
    output: Linear,
    decoder: Decoder,
    /// λ of the doubly stochastic penalty.
    doubly_stochastic: f32,
    target_drop: DropoutSite,
    hidden_drop: DropoutSite,
}

impl Decoding {
    pub(crate) fn new(
        config: &RecurrentConfig,
        tables: TargetTables,
        init: &mut Init,
    ) -> Result<Self> {
        let drop = |name: &str| DropoutSite::new(config.dropout, name);
        Ok(Self {
            target: tables.embedding,
            output: tables.output,
            decoder: Decoder::new(config, init)?,
            doubly_stochastic: match &config.attention {
                AttentionChoice::None => 0.0,
                AttentionChoice::Some(attention) => attention.doubly_stochastic,
            },
            target_drop: drop("model.decoder.embed_tokens"),
            hidden_drop: drop("model.decoder.output"),
        })
    }

    /// The context, if it is a hard one.
    fn hard(&self) -> Option<&Hard> {
        match &self.decoder.attention.as_ref()?.attention.context {
            Context::Hard(hard) => Some(hard),
            Context::Soft => None,
        }
    }

    /// Teacher forcing.
    pub(super) fn run_decoder(
        &self,
        encoded: &Encoded,
        target: &Packed,
        pass: &Pass,
    ) -> Result<Decoded> {
        let segments = &target.segments;
        let inputs = target.shifted(decoding::Decoding::start_token(self));
        let embed = |order: Option<&[u32]>| {
            let drop = self.target_drop.of_embeddings(segments, pass);
            let Some(rows) = order else {
                return embed_words(&self.target, &inputs, &drop, pass);
            };
            let ids: Vec<u32> = rows.iter().map(|&row| inputs[row as usize]).collect();
            embed_words(&self.target, &ids, &drop.select(rows), pass)
        };
        let decoded = self.decoder.forward(encoded, segments, embed, pass)?;
        let drop = self.hidden_drop.of_rows(segments, pass);
        let hidden = dropout(&decoded.hidden, &drop, pass)?;
        Ok(Decoded { hidden, ..decoded })
    }

    /// What is minimised in addition to the cross-entropy, if anything.
    pub(super) fn penalty(&self, alignment: Alignment) -> Option<Box<dyn Penalty>> {
        let hard = self.hard().cloned();
        if hard.is_none() && self.doubly_stochastic == 0.0 {
            return None;
        }
        Some(Box::new(AttentionPenalty {
            alignment,
            doubly_stochastic: self.doubly_stochastic,
            hard,
        }))
    }
}

impl decoding::Decoding for Decoding {
    fn decode(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Output> {
        let decoded = self.run_decoder(&Encoded::from_memory(memory)?, target, pass)?;
        Ok(Output {
            hidden: decoded.hidden,
            penalty: decoded.alignment.and_then(|it| self.penalty(it)),
        })
    }

    fn output(&self) -> &Linear {
        &self.output
    }

    fn maps(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Vec<AttentionMap>> {
        let encoded = Encoded::from_memory(memory)?;
        let alignment = self.run_decoder(&encoded, target, pass)?.alignment;
        let weights = alignment.map(|it| it.choice.map_or(it.weights, |choice| choice.taken));
        Ok(weights.map(cross_map).into_iter().collect())
    }

    fn start_token(&self) -> u32 {
        (self.target.dims()[0] - 1) as u32
    }

    fn start<'a>(
        &'a self,
        memory: &Memory,
        beams: usize,
        pass: &Pass,
    ) -> Result<Box<dyn DecoderState + 'a>> {
        let encoded = Encoded::from_memory(memory)?;
        let sentences = encoded.segments.count();
        let rows = (0..sentences as u32).flat_map(|i| std::iter::repeat_n(i, beams));
        let rows = Tensor::new(rows.collect::<Vec<_>>(), encoded.states.device())?;
        let own = self.decoder.start(&encoded, pass)?;
        let own = own.iter().map(|own| own.detach().index_select(&rows, 0));
        let source = self.decoder.source_keys_values(&encoded, pass)?;
        let cache = Cache {
            length: 0,
            rows: vec![beams; sentences],
            own: own.collect::<Result<_>>()?,
            source: source.iter().map(Tensor::detach).collect(),
            segments: encoded.segments,
        };
        Ok(Box::new(CachedState {
            model: self,
            cache,
            pass: *pass,
        }))
    }
}

impl StepCached for Decoding {
    fn step(
        &self,
        cache: &mut Cache,
        last: &[u32],
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor> {
        let x = embed_words(&self.target, last, &EmbeddingDropout::NONE, pass)?;
        let input = StepInput {
            gates: &self.decoder.step_input(&x, &cache.own, pass)?,
            rows: 0..last.len(),
        };
        let over = match &cache.source[..] {
            [keys, values] => Some(KeysValues::new(keys, values, pass)?),
            _ => None,
        };
        let scope = Scope::at(cache.length, cache.rows_by_sentence(), &cache.segments);
        let own = &mut cache.own;
        let step = self.decoder.step(own, input, over.as_ref(), &scope, pass)?;
        let hidden = self.decoder.readout(&step, &x, pass)?;
        own.iter_mut().for_each(|own| *own = own.detach());
        if let (Some(maps), Some(attended)) = (maps, step.attended) {
            let choice = attended.choice.map(|choice| choice.taken);
            maps.push(cross_map(choice.unwrap_or(attended.weights)));
        }
        project(&hidden, &self.output, pass)
    }
}
