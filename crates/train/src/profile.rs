use std::time::{Duration, Instant};

use attend_ops::profile::{self, Part};

use crate::Run;

/// Measures how long each operation of the training steps takes.
pub struct Profile {
    start: Instant,
    step: u64,
    seconds: f64,
}

impl Profile {
    /// Starts measuring.
    pub fn start(run: &Run) -> Self {
        profile::start();
        Self {
            start: Instant::now(),
            step: run.state.step,
            seconds: run.state.seconds,
        }
    }

    /// Prints to stderr how long each part of a step took.
    pub fn report(&self, run: &Run) {
        let steps = run.state.step - self.step;
        if steps == 0 {
            return;
        }
        let seconds = run.state.seconds - self.seconds;
        let saving = self.start.elapsed().as_secs_f64() - seconds;
        run.log.print(&format!(
            "time of each part, on average over {steps} steps:"
        ));
        for line in lines(&profile::times(), seconds, steps) {
            run.log.print(&line);
        }
        run.log.print(&format!(
            "not included: {saving:.1} s for validating, saving and starting"
        ));
    }
}

/// One line for each part, for the rest, and for the whole step. Only the fused operations are measured; with
/// other kernels everything is in the rest.
fn lines(times: &[(Part, Duration)], seconds: f64, steps: u64) -> Vec<String> {
    let line = |name: &str, time: f64| {
        let (milliseconds, share) = (1e3 * time / steps as f64, 100.0 * time / seconds);
        format!("  {name:38} {milliseconds:10.3} ms {share:6.1}%")
    };
    let measured: f64 = times.iter().map(|(_, time)| time.as_secs_f64()).sum();
    let parts = times
        .iter()
        .map(|(part, time)| line(part.name(), time.as_secs_f64()));
    let rest = line("other: candle, batches, the log", seconds - measured);
    parts.chain([rest, line("a step", seconds)]).collect()
}
