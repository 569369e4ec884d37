use attend_batch::Packed;
use attend_ops::{Kernels, Linear, Pass, project};
use candle_core::{Result, Tensor};

use super::config::TransformerConfig;
use super::decoder::Decoder;
use super::embedding::Embedding;
use super::state::FusedState;
use crate::cache::{Cache, CachedState, StepCached};
use crate::decoding;
use crate::embedding::TargetTables;
use crate::weights::Init;
use crate::{AttentionMap, DecoderState, Memory, Output};

/// The half of a Transformer that decodes.
pub(crate) struct Decoding {
    pub(super) target: Embedding,
    pub(super) decoder: Decoder,
    /// The output matrix `[v, d]`, and a bias `[v]` if the config has one; the last row, padding, is never predicted.
    pub(super) output: Linear,
    pub(super) d: usize,
}

impl Decoding {
    pub(crate) fn new(
        config: &TransformerConfig,
        tables: TargetTables,
        init: &mut Init,
    ) -> Result<Self> {
        let TargetTables {
            embedding,
            mut output,
        } = tables;
        if config.output_bias {
            let tokens = embedding.dims()[0];
            output.bias = Some(init.bias("final_logits_bias", tokens)?);
        }
        Ok(Self {
            target: Embedding::new(embedding, "decoder", config, init),
            decoder: Decoder::new(config, init)?,
            output,
            d: config.d_model,
        })
    }

    /// The decoder under teacher forcing; adds its attention to `maps` if there are any.
    fn run_decoder(
        &self,
        memory: &Memory,
        target: &Packed,
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor> {
        let inputs = target.shifted(decoding::Decoding::start_token(self));
        let x = self.target.embed(&inputs, &target.segments, pass)?;
        self.decoder
            .forward(&x, &target.segments, memory, maps, pass)
    }
}

impl decoding::Decoding for Decoding {
    fn decode(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Output> {
        Ok(Output {
            hidden: self.run_decoder(memory, target, None, pass)?,
            penalty: None,
        })
    }

    fn output(&self) -> &Linear {
        &self.output
    }

    fn maps(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Vec<AttentionMap>> {
        let mut maps = Vec::new();
        self.run_decoder(memory, target, Some(&mut maps), pass)?;
        Ok(maps)
    }

    fn start_token(&self) -> u32 {
        (self.target.table.dims()[0] - 1) as u32
    }

    fn admits(&self, pass: &Pass) -> bool {
        pass.kernels == Kernels::Fused && self.decoder.is_fused()
    }

    fn start<'a>(
        &'a self,
        memory: &Memory,
        beams: usize,
        pass: &Pass,
    ) -> Result<Box<dyn DecoderState + 'a>> {
        if decoding::Decoding::admits(self, pass) {
            let state = FusedState::new(self, memory, beams, pass)?;
            return Ok(Box::new(state));
        }
        let sentences = memory.segments.count();
        let source = self.decoder.source_keys_values(memory, pass)?;
        let (dtype, device) = (memory.states.dtype(), memory.states.device());
        let shape = (sentences * beams, Cache::FIRST_CAPACITY, 2 * self.d);
        let own = source.iter().map(|_| Tensor::zeros(shape, dtype, device));
        let cache = Cache {
            length: 0,
            rows: vec![beams; sentences],
            own: own.collect::<Result<_>>()?,
            source,
            segments: memory.segments.clone(),
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
        cache.reserve()?;
        let positions = vec![cache.length as u32; last.len()];
        let x = self.target.embed_step(last, &positions, pass)?;
        let hidden = self.decoder.step(&x, cache, maps, pass)?;
        project(&hidden, &self.output, pass)
    }
}
