//! Captions of pictures (Xu et al. 2015, "Show, Attend and Tell"): convolutions divide a picture into regions, and
//! a decoder attends to them before every word. Rows of features, such as the frames of speech, can take the place
//! of the regions.
//!
//! The decoder is that of a recurrent model or of a Transformer, without changes.
//!
//! L regions of a picture, n of all pictures together; d the decoder's width.

mod blocks;
mod config;
mod family;
mod footprint;
mod places;
mod regions;
#[cfg(test)]
mod tests;

pub use config::{BlockConfig, CaptionConfig, PictureConfig};

use attend_batch::{Packed, Source, SourceShape};
use attend_ops::{Kernels, Linear, Pass};
use candle_core::Result;

use crate::weights::Init;
use crate::{
    AttentionMap, DecoderState, Encode, Memory, Output, Step, Train, Vocabularies, Weights,
};
use family::Family;
use regions::Regions;

pub struct Caption {
    weights: Weights,
    shape: SourceShape,
    /// Rows and columns of the last map.
    map: Option<(usize, usize)>,
    regions: Regions,
    family: Family,
}

impl Caption {
    pub(crate) fn new(
        config: &CaptionConfig,
        vocabularies: Vocabularies,
        mut init: Init,
    ) -> Result<Self> {
        let map = config.regions().map(|map| (map.height, map.width));
        Ok(Self {
            shape: config.source(),
            map,
            regions: Regions::new(config, &mut init)?,
            family: Family::new(config, vocabularies, &mut init)?,
            weights: init.finish(),
        })
    }

    fn run_encoder(
        &self,
        source: &Source,
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Memory> {
        let (regions, segments) = self.regions.forward(source, pass)?;
        self.family.memory(regions, segments, maps, pass)
    }
}

impl Encode for Caption {
    fn source(&self) -> SourceShape {
        self.shape
    }

    fn regions(&self) -> Option<(usize, usize)> {
        self.map
    }

    fn encode(&self, source: &Source, pass: &Pass) -> Result<Memory> {
        self.run_encoder(source, None, pass)
    }
}

impl Train for Caption {
    fn weights(&self) -> &Weights {
        &self.weights
    }

    fn decode(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Output> {
        self.family.decoding.decode(memory, target, pass)
    }

    fn output(&self) -> &Linear {
        self.family.decoding.output()
    }

    fn attention(
        &self,
        source: &Source,
        target: &Packed,
        kernels: Kernels,
    ) -> Result<Vec<AttentionMap>> {
        let pass = Pass::eval(kernels);
        let mut maps = Vec::new();
        let memory = self.run_encoder(source, Some(&mut maps), &pass)?;
        maps.extend(self.family.decoding.maps(&memory, target, &pass)?);
        Ok(maps)
    }
}

impl Step for Caption {
    fn start_token(&self) -> u32 {
        self.family.decoding.start_token()
    }

    fn admits(&self, pass: &Pass) -> bool {
        self.family.decoding.admits(pass)
    }

    fn start<'a>(
        &'a self,
        memory: &Memory,
        beams: usize,
        pass: &Pass,
    ) -> Result<Box<dyn DecoderState + 'a>> {
        self.family.decoding.start(memory, beams, pass)
    }
}
