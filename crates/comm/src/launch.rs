use crate::{Error, Result};

/// What a launcher says about the job that this process is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The number of this process.
    pub(crate) rank: usize,
    pub(crate) size: usize,
    /// The variable of the environment that says so.
    pub(crate) variable: &'static str,
}

/// The variables that hold the number of ranks, and that of this one. Those of MPI libraries come first: their
/// launchers may run inside a step of Slurm, whose tasks are then the machines.
const VARIABLES: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), // Open MPI
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),   // MVAPICH
    ("PMI_SIZE", "PMI_RANK"),                         // MPICH, Intel MPI, `srun --mpi=pmi2`
    // `srun`. SLURM_NTASKS would not do: batch scripts, which run once, have it as well.
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
];

/// The variables that hold the number of a rank among those of its machine.
const LOCAL: [&str; 4] = [
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
];

/// The variables that hold the number of ranks on this machine. Slurm's may go on, as in `2(x3),1`.
const LOCAL_SIZE: [&str; 4] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "SLURM_STEP_TASKS_PER_NODE",
];

/// What the environment says. `None` without a launcher, or if it launched a single process.
pub(crate) fn launch(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<Launch>> {
    for (variable, rank_variable) in VARIABLES {
        let (Some(size), Some(rank)) = (lookup(variable), lookup(rank_variable)) else {
            continue;
        };
        let (size, rank) = (number(variable, size)?, number(rank_variable, rank)?);
        return match size {
            0 => Err(Error::Environment {
                variable,
                value: "0".into(),
                expected: "a number of processes",
            }),
            1 => Ok(None),
            _ => Ok(Some(Launch {
                rank,
                size,
                variable,
            })),
        };
    }
    Ok(None)
}

fn number(variable: &'static str, value: String) -> Result<usize> {
    value.trim().parse().map_err(|_| Error::Environment {
        variable,
        value,
        expected: "a number of processes",
    })
}

/// The number of this process among those of its machine, from 0, if a launcher says so: each takes a GPU of its own.
pub fn local_rank() -> Option<usize> {
    let mut values = LOCAL.iter().filter_map(|name| std::env::var(name).ok());
    values.find_map(|value| value.trim().parse().ok())
}

/// The number of processes of the job that share this machine, if a launcher says so. Machines of Slurm are taken to have
/// equally many.
pub fn local_size() -> Option<usize> {
    let mut values = LOCAL_SIZE
        .iter()
        .filter_map(|name| std::env::var(name).ok());
    values.find_map(|value| leading_number(&value))
}

fn leading_number(value: &str) -> Option<usize> {
    let value = value.trim();
    let end = value.find(|c: char| !c.is_ascii_digit());
    let number = value[..end.unwrap_or(value.len())].parse().ok();
    number.filter(|&number| number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch_in(environment: &[(&str, &str)]) -> Result<Option<Launch>> {
        launch(|name| {
            let found = environment.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| value.to_string())
        })
    }

    fn found(rank: usize, size: usize, variable: &'static str) -> Result<Option<Launch>> {
        Ok(Some(Launch {
            rank,
            size,
            variable,
        }))
    }

    #[test]
    fn each_launcher_says_how_many_ranks_there_are() {
        for (variable, rank) in VARIABLES {
            let environment = [(variable, "4"), (rank, "3")];
            assert_eq!(launch_in(&environment), found(3, 4, variable));
        }
    }

    #[test]
    fn the_number_of_ranks_on_a_machine_is_what_slurms_list_begins_with() {
        for (value, number) in [
            ("4", Some(4)),
            ("2(x3),1", Some(2)),
            ("", None),
            ("0", None),
        ] {
            assert_eq!(leading_number(value), number, "{value}");
        }
    }

    #[test]
    fn a_process_of_its_own_has_no_launcher() {
        for environment in [
            &[][..],
            &[("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")],
            // A batch script of Slurm.
            &[("SLURM_NTASKS", "4"), ("SLURM_PROCID", "0")],
            // A size without a rank is left over from something else.
            &[("PMI_SIZE", "4")],
        ] {
            assert_eq!(launch_in(environment), Ok(None), "{environment:?}");
        }
    }

    #[test]
    fn a_launcher_inside_a_step_of_slurm_goes_first() {
        let slurm = [("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_PROCID", "1")];
        let open_mpi = [("OMPI_COMM_WORLD_SIZE", "8"), ("OMPI_COMM_WORLD_RANK", "5")];
        let both = [slurm, open_mpi].concat();
        assert_eq!(launch_in(&both), found(5, 8, "OMPI_COMM_WORLD_SIZE"));
        let one = [("PMI_SIZE", "1"), ("PMI_RANK", "0")];
        assert_eq!(launch_in(&[slurm, one].concat()), Ok(None));
    }

    #[test]
    fn a_size_that_is_no_number_is_an_error() {
        for value in ["", "0", "-1", "many"] {
            let error = launch_in(&[("PMI_SIZE", value), ("PMI_RANK", "0")]);
            assert!(matches!(error, Err(Error::Environment { .. })), "{value}");
        }
    }
}
