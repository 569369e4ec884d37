use attend_model::Kernels;
use candle_core::Device;

/// Where a run computes, and with which kernels.
#[derive(Clone, Debug)]
pub struct Compute {
    pub device: Device,
    pub kernels: Kernels,
}
