//! The seam between the two halves of a model: what makes a memory of a source, and what decodes it.

use attend_batch::Packed;
use attend_ops::{Linear, Pass};
use candle_core::Result;

use crate::{AttentionMap, DecoderState, Memory, Output};

/// The half of a model that decodes: everything that comes after the memory. See [`crate::Train`] and
/// [`crate::Step`], whose methods these are.
pub(crate) trait Decoding: Send + Sync {
    fn decode(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Output>;

    fn output(&self) -> &Linear;

    /// The decoder's attention under teacher forcing.
    fn maps(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Vec<AttentionMap>>;

    fn start_token(&self) -> u32;

    fn admits(&self, _pass: &Pass) -> bool {
        false
    }

    fn start<'a>(
        &'a self,
        memory: &Memory,
        beams: usize,
        pass: &Pass,
    ) -> Result<Box<dyn DecoderState + 'a>>;
}
