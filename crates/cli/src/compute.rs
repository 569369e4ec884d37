use std::fmt;
use std::str::FromStr;

use attend_ops::{Isa, Kernels};
use candle_core::Device;

use crate::Error;
use crate::process::{keep_freed_memory, start_threads};

type Result<T> = std::result::Result<T, Error>;

/// Where and how to compute.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Computing")]
pub struct ComputeArgs {
    /// Where to compute: `auto` (CUDA or Metal if there is one, else the CPU), `cpu`, `cuda` (the first GPU, or one for
    /// each rank of a machine), `cuda:N` (the Nth GPU, counted from 0) or `metal`
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceArg::Auto)]
    pub device: DeviceArg,

    /// How many threads compute on the CPU; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,

    /// Compute every operation with candle's own ops, which is slow on the CPU: the reference that
    /// the fused kernels are checked against
    #[arg(long, hide = true)]
    pub composed: bool,
}

/// The device that a user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceArg {
    #[default]
    Auto,
    Cpu,
    /// The GPU with this number, or that of this rank.
    Cuda(Option<usize>),
    Metal,
}

impl ComputeArgs {
    /// Starts the threads and opens the device. Call it once, before anything computes.
    pub fn start(&self) -> Result<(Device, Kernels)> {
        keep_freed_memory();
        self.start_to_serve()
    }

    /// The same for a program that runs for weeks: freed memory goes back to the system after a second, since its
    /// batches are of all sizes, and the sum of what they had would grow for a long time.
    pub fn start_to_serve(&self) -> Result<(Device, Kernels)> {
        check_isa()?;
        start_threads(self.threads)?;
        let device = self.device.open()?;
        let kernels = if self.composed {
            Kernels::Composed
        } else {
            Kernels::of(&device)
        };
        Ok((device, kernels))
    }

    /// As they are written on a command line.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = vec![
            format!("--device={}", self.device),
            format!("--threads={}", self.threads),
        ];
        args.extend(self.composed.then(|| "--composed".to_string()));
        args
    }
}

impl DeviceArg {
    /// Opens the device. A device asked for by name is never replaced by another.
    pub fn open(self) -> Result<Device> {
        match self {
            Self::Auto => Ok(automatic()),
            Self::Cpu => Ok(Device::Cpu),
            Self::Cuda(_) if !cfg!(feature = "cuda") => Err(without("CUDA", "cuda")),
            Self::Metal if !cfg!(feature = "metal") => Err(without("Metal", "metal")),
            Self::Cuda(index) => {
                Device::new_cuda(index.unwrap_or_else(own_gpu)).map_err(|e| unavailable(self, &e))
            }
            Self::Metal => Device::new_metal(0).map_err(|e| unavailable(self, &e)),
        }
    }
}

/// The number of the GPU of this rank among those that it sees.
fn own_gpu() -> usize {
    let rank = attend_comm::local_rank().unwrap_or(0);
    #[cfg(feature = "cuda")]
    if let Ok(count @ 1..) = candle_core::cuda_backend::cudarc::driver::CudaContext::device_count()
    {
        return rank % count as usize;
    }
    rank
}

/// A version of the kernels that `ATTEND_ISA` asks for and that cannot run is an error, never replaced.
fn check_isa() -> Result<()> {
    Isa::from_env().map(|_| ()).map_err(|message| {
        let available = Isa::available().into_iter().map(|isa| isa.to_string());
        let available = available.collect::<Vec<_>>().join(", ");
        let hint = format!("unset it, or set it to one of: {available}");
        Error { message, hint }
    })
}

fn automatic() -> Device {
    let candidates = [
        (cfg!(feature = "cuda"), DeviceArg::Cuda(None)),
        (cfg!(feature = "metal"), DeviceArg::Metal),
    ];
    for (built_in, candidate) in candidates {
        match candidate.open() {
            Ok(device) => return device,
            Err(error) if built_in => tracing::warn!("computing on the CPU: {error}"),
            Err(_) => {}
        }
    }
    Device::Cpu
}

fn without(name: &str, feature: &str) -> Error {
    Error {
        message: format!("this build has no {name}"),
        hint: format!("build one that has: `cargo build --release --features {feature}`"),
    }
}

fn unavailable(device: DeviceArg, error: &candle_core::Error) -> Error {
    Error {
        message: format!("cannot use device {device}: {error}"),
        hint: "see what there is with `nvidia-smi`, or choose `--device cpu`".into(),
    }
}

impl FromStr for DeviceArg {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(None)),
            "metal" => Ok(Self::Metal),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|index| index.parse().ok())
                .map(|index| Self::Cuda(Some(index)))
                .ok_or_else(|| "expected auto, cpu, cuda, cuda:N or metal".into()),
        }
    }
}

impl fmt::Display for DeviceArg {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(index)) => write!(f, "cuda:{index}"),
            Self::Metal => f.write_str("metal"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_parse_and_print() {
        for (text, device, printed) in [
            ("auto", DeviceArg::Auto, "auto"),
            ("cpu", DeviceArg::Cpu, "cpu"),
            ("cuda", DeviceArg::Cuda(None), "cuda"),
            ("cuda:3", DeviceArg::Cuda(Some(3)), "cuda:3"),
            ("metal", DeviceArg::Metal, "metal"),
        ] {
            assert_eq!(text.parse(), Ok(device));
            assert_eq!(device.to_string(), printed);
        }
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CUDA"] {
            assert!(text.parse::<DeviceArg>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_device_that_was_not_built_in_is_an_error_and_auto_falls_back() {
        if !cfg!(feature = "cuda") {
            let error = DeviceArg::Cuda(None).open().unwrap_err();
            assert_eq!(error.to_string(), "this build has no CUDA");
            assert!(error.hint.contains("--features cuda"));
        }
        if !cfg!(any(feature = "cuda", feature = "metal")) {
            assert!(DeviceArg::Auto.open().unwrap().is_cpu());
        }
    }
}
