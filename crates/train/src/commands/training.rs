use std::io::{self, Write};
use std::process::ExitCode;

use attend_cli::release_memory;
use attend_comm::Comm;
use attend_infer::metrics;
use attend_train::{Ending, Profile, Run, Stop, Translated, train};

/// Trains to the end, then shows what the model can do.
pub(super) fn train_and_test(
    run: Run,
    comm: &dyn Comm,
    stop: &Stop,
    profile: bool,
) -> anyhow::Result<ExitCode> {
    let code = train_test_and_show(run, comm, stop, profile)?;
    comm.finish()?;
    Ok(code)
}

fn train_test_and_show(
    mut run: Run,
    comm: &dyn Comm,
    stop: &Stop,
    profile: bool,
) -> anyhow::Result<ExitCode> {
    release_memory();
    let profile = profile.then(|| Profile::start(&run));
    let ending = train(&mut run, stop)?;
    let first = comm.is_first();
    if let Some(profile) = profile.filter(|_| first) {
        profile.report(&run);
    }
    let folder = run.config.out.display().to_string();
    if let Ending::Signal(status) = ending {
        tracing::warn!(
            "stopped at step {}; continue with `train resume {folder}`",
            run.state.step
        );
        return Ok(ExitCode::from(status));
    }
    if ending == Ending::Patience {
        tracing::info!("stopped early: validation no longer improves");
    }
    stop.exit_on_signal();
    if let Some(translated) = run.test()?.filter(|_| first) {
        show(&translated, run.config.train.samples)?;
    }
    if !first {
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(error) = run.write_report() {
        tracing::warn!("no report of the run: {error}");
    }
    tracing::info!("translate with it: `infer translate {folder}`");
    Ok(ExitCode::SUCCESS)
}

/// Sample translations of the test set, then its scores.
fn show(translated: &Translated, samples: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    // Spread over the set, since neighbours in a corpus are often alike.
    let every = (translated.lines.len() / samples.max(1)).max(1);
    for sample in translated.lines.iter().step_by(every).take(samples) {
        writeln!(out, "source       {}", sample.source)?;
        writeln!(out, "reference    {}", sample.reference)?;
        writeln!(out, "translation  {}\n", sample.translation)?;
    }
    let scores = [translated.bleu.clone(), translated.chrf.clone()];
    writeln!(out, "{}", metrics::text(&scores))
}
