use std::path::PathBuf;
use std::process::ExitCode;

use attend_train::{Teacher, distill};

use super::config_args::ConfigArgs;
use super::synthetic_args::SyntheticArgs;

/// Train a student on a teacher's translations: `train distill runs/teacher student.toml`
#[derive(clap::Args)]
#[command(after_help = "\
The teacher translates the sources of the training data, as its own settings for decoding say. Its translations are kept
beside the run's folder, in parts of 2,000 lines: what is there is not translated again, so an interrupted command goes on
where it was when it is given again. Then the student is trained on them. `train resume RUN` continues that training.")]
pub(crate) struct Args {
    /// The teacher: a run, a checkpoint, a bundle, the model of another program, or hf://OWNER/NAME
    teacher: PathBuf,
    #[command(flatten)]
    student: ConfigArgs,
    /// Train on the given targets as well
    #[arg(long)]
    and_original: bool,
    /// The teacher's beam size [default: the teacher's own]
    #[arg(long, value_name = "K")]
    beam: Option<usize>,
    #[command(flatten)]
    synthetic: SyntheticArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.synthetic
        .run(&args.student, "distilled", |config, folder, compute| {
            let teacher = Teacher::open(&args.teacher, compute, |decode| {
                if let Some(beam) = args.beam {
                    (decode.beam, decode.sampling) = (beam, false);
                }
            })?;
            distill(config, &teacher, folder, args.and_original, &*compute.comm)
        })
}
