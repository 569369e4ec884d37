use attend_model::Kernels;
use candle_core::Device;

use crate::{Error, MemorySize, Result};

/// Where a run computes, and with which kernels.
#[derive(Clone, Debug)]
pub struct Compute {
    pub device: Device,
    pub kernels: Kernels,
    /// The bytes of memory that there are: a training that needs more is refused. `None` refuses nothing.
    pub memory: Option<u64>,
}

impl Compute {
    /// An error if so many bytes are more than there are.
    pub(crate) fn check_memory(&self, needed: u64) -> Result<()> {
        match self.memory.filter(|&available| needed > available) {
            None => Ok(()),
            Some(available) => Err(Error::TooLarge {
                needed: MemorySize(needed),
                available: MemorySize(available),
            }),
        }
    }
}
