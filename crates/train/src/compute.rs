use std::fmt;
use std::sync::Arc;

use attend_comm::Comm;
use attend_model::Kernels;
use candle_core::Device;

use crate::{Error, MemorySize, Result};

/// Where a run computes, with which kernels, and together with whom.
#[derive(Clone)]
pub struct Compute {
    pub device: Device,
    pub kernels: Kernels,
    /// The bytes of memory that there are: a training that needs more is refused. `None` refuses nothing.
    pub memory: Option<u64>,
    /// The processes that train together.
    pub comm: Arc<dyn Comm>,
}

impl fmt::Debug for Compute {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Compute")
            .field("device", &self.device)
            .field("kernels", &self.kernels)
            .field("memory", &self.memory)
            .field("rank", &self.comm.rank())
            .field("ranks", &self.comm.size())
            .finish()
    }
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
