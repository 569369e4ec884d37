use attend_cli::ComputeArgs;
use attend_train::{Compute, machine_memory};

/// Where a training computes.
#[derive(clap::Args)]
pub(super) struct TrainComputeArgs {
    #[command(flatten)]
    compute: ComputeArgs,
    /// Train even if the training needs more memory than this machine has, by estimate
    #[arg(long, help_heading = "Computing")]
    ignore_memory: bool,
}

impl TrainComputeArgs {
    /// Starts the threads, opens the device, and connects to the processes that the program was launched with.
    pub(super) fn start(&self) -> anyhow::Result<Compute> {
        let (device, kernels) = self.compute.start()?;
        let comm = attend_comm::connect(&device)?;
        attend_cli::set_rank(comm.rank());
        // A GPU has memory of its own, which is not checked.
        let checked = device.is_cpu() && !self.ignore_memory;
        let sharing = attend_comm::local_size().unwrap_or(1) as u64;
        let memory = checked.then(machine_memory).flatten();
        Ok(Compute {
            device,
            kernels,
            memory: memory.map(|memory| memory / sharing),
            comm,
        })
    }
}
