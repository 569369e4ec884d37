use std::sync::Arc;

use candle_core::Device;

use crate::launch::{Launch, launch};
use crate::{Comm, Result, Solo};

/// The variable that names a folder in which ranks find each other, instead of by MPI.
pub(crate) const RENDEZVOUS: &str = "ATTEND_RENDEZVOUS";

/// Connects to the other ranks that the program was launched with. Without a launcher, or if it launched one process,
/// this is [`Solo`], and no library is started. Ranks that compute on GPUs exchange tensors by NCCL, if the program is
/// built with it, and otherwise through the memory of their machines.
///
/// Call it once. A program that succeeds ends with [`Comm::finish`].
pub fn connect(device: &Device) -> Result<Arc<dyn Comm>> {
    connect_in(device, |name| std::env::var(name).ok())
}

/// In an environment of these variables.
fn connect_in(device: &Device, lookup: impl Fn(&str) -> Option<String>) -> Result<Arc<dyn Comm>> {
    let Some(launch) = launch(&lookup)? else {
        return Ok(Arc::new(Solo));
    };
    #[cfg(feature = "nccl")]
    if let (Device::Cuda(device), Some(folder)) = (device, lookup(RENDEZVOUS)) {
        return Ok(Arc::new(by_files(device, launch, folder.as_ref())?));
    }
    by_mpi(device, launch, lookup)
}

/// NCCL between ranks that meet in a folder.
#[cfg(feature = "nccl")]
fn by_files(
    device: &candle_core::CudaDevice,
    launch: Launch,
    folder: &std::path::Path,
) -> Result<crate::Nccl> {
    use crate::nccl::{Nccl, Session, new_id};
    use crate::rendezvous::{Meeting, PATIENCE};

    let Launch { rank, size, .. } = launch;
    let meeting = Meeting::new(folder, rank, size, PATIENCE, new_id)?;
    let id = meeting.token().to_vec();
    Nccl::connect(device, (rank, size), &id, Session::Files(meeting))
}

#[cfg(feature = "mpi")]
fn by_mpi(
    device: &Device,
    launch: Launch,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Comm>> {
    let mpi = crate::Mpi::connect(launch, lookup)?;
    #[cfg(feature = "nccl")]
    {
        // Those with a GPU would wait for the others without end.
        let gpus = mpi.gather_bytes(&[u8::from(device.is_cuda())])?;
        if let Some(rank) = gpus.iter().position(|gpu| *gpu != gpus[0]) {
            return Err(crate::Error::OtherDevice { rank });
        }
    }
    #[cfg(feature = "nccl")]
    if let Device::Cuda(device) = device {
        use crate::nccl::{Nccl, Session, new_id};

        let mut id = match mpi.is_first() {
            true => new_id()?,
            false => Vec::new(),
        };
        mpi.broadcast(&mut id, 0)?;
        let ranks = (mpi.rank(), mpi.size());
        let nccl = Nccl::connect(device, ranks, &id, Session::Mpi(mpi))?;
        return Ok(Arc::new(nccl));
    }
    let _ = device; // only NCCL cares
    Ok(Arc::new(mpi))
}

#[cfg(not(feature = "mpi"))]
fn by_mpi(
    _device: &Device,
    launch: Launch,
    _lookup: impl Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Comm>> {
    Err(crate::Error::NoMpi {
        launched: launch.size,
        variable: launch.variable,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_a_launcher_is_alone() -> Result<()> {
        let comm = connect_in(&Device::Cpu, |_| None)?;
        assert!(comm.is_alone() && comm.is_first());
        Ok(())
    }

    #[cfg(not(feature = "mpi"))]
    #[test]
    fn a_build_without_mpi_does_not_train_as_many_models_as_there_are_ranks() {
        let environment = [("PMI_SIZE", "4"), ("PMI_RANK", "2")];
        let lookup = |name: &str| {
            let found = environment.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| value.to_string())
        };
        let Err(error) = connect_in(&Device::Cpu, lookup) else {
            panic!("it connected")
        };
        assert_eq!(
            error.to_string(),
            "launched as one of 4 ranks (PMI_SIZE=4), but this build lacks MPI"
        );
        let hint = error.hint().unwrap_or_default();
        assert!(
            hint.contains("cargo build --release --features mpi"),
            "{hint}"
        );
    }
}
