use attend_batch::Segments;
use candle_core::{Result, Tensor, bail};

use crate::Memory;

/// What a recurrent encoder makes of a batch.
#[derive(Clone)]
pub(crate) struct Encoded {
    /// `[n, h]`
    pub(crate) states: Tensor,
    pub(crate) segments: Segments,
    /// The last state of each layer, `[b, S]`, from which the decoder starts.
    pub(crate) finals: Vec<Tensor>,
}

/// The part of a [`Memory`] that only this family understands.
struct Finals(Vec<Tensor>);

impl From<Encoded> for Memory {
    fn from(encoded: Encoded) -> Self {
        Memory::new(encoded.states, encoded.segments).with_private(Finals(encoded.finals))
    }
}

impl Encoded {
    /// An error if the memory was made by a model of another family.
    pub(super) fn from_memory(memory: &Memory) -> Result<Self> {
        let Some(Finals(finals)) = memory.private() else {
            bail!("the memory is not of a recurrent model")
        };
        Ok(Self {
            states: memory.states.clone(),
            segments: memory.segments.clone(),
            finals: finals.clone(),
        })
    }
}
