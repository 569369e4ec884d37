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
    pub(super) fn start(&self) -> Result<Compute, attend_cli::Error> {
        let (device, kernels) = self.compute.start()?;
        // A GPU has memory of its own, which is not checked.
        let checked = device.is_cpu() && !self.ignore_memory;
        Ok(Compute {
            device,
            kernels,
            memory: checked.then(machine_memory).flatten(),
        })
    }
}
