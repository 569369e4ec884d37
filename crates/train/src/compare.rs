//! How two runs differ.

use std::fmt;
use std::path::Path;

use attend_infer::run::{Checkpoint, RunFolder};
use candle_core::Device;

use crate::checkpoint::config_of;
use crate::{Config, Difference, Metric, Result, differences};

/// Two runs side by side, by their newest checkpoints that are not damaged.
#[derive(Debug)]
pub struct Comparison {
    /// Differences in what the runs were made from, and by which program.
    pub provenance: Vec<Difference>,
    pub config: Vec<Difference>,
    /// Of each run.
    pub steps: [u64; 2],
    /// Of each run, with its metric. The loss has a minus sign.
    pub best: [Option<(Metric, f64)>; 2],
    /// The step of the first line that differs in the logs, except for times.
    pub first_difference: Option<u64>,
    pub parameters: Parameters,
    /// Whether the optimizers' tensors and the rest of the state are the same bits.
    pub same_state: bool,
}

#[derive(Debug, PartialEq)]
pub enum Parameters {
    SameBits,
    /// The largest difference, and where it is.
    Differ {
        most: f64,
        name: String,
    },
    /// They have other names or shapes.
    OtherModel,
}

impl Comparison {
    /// Whether the runs differ only in the names of their folders and in the time they took.
    pub fn is_same(&self) -> bool {
        let same_config = self.config.iter().all(|difference| difference.key == "out");
        self.provenance.is_empty()
            && same_config
            && self.steps[0] == self.steps[1]
            && self.best[0] == self.best[1]
            && self.first_difference.is_none()
            && self.parameters == Parameters::SameBits
            && self.same_state
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.is_same() {
            return write!(f, "no difference");
        }
        for difference in self.provenance.iter().chain(&self.config) {
            writeln!(f, "{difference}")?;
        }
        let [first, second] = self.steps;
        if first != second {
            writeln!(f, "step: {first} → {second}")?;
        }
        let [first, second] = self.best;
        if first != second {
            let text = |best: Option<(Metric, f64)>| match best {
                Some((metric, value)) => metric.describe(value),
                None => "none".to_string(),
            };
            writeln!(f, "best: {} → {}", text(first), text(second))?;
        }
        match self.first_difference {
            Some(step) => writeln!(f, "logs: the first difference is at step {step}")?,
            None => writeln!(f, "logs: no difference as far as both go")?,
        }
        match &self.parameters {
            Parameters::SameBits => writeln!(f, "parameters: the same bits")?,
            Parameters::OtherModel => writeln!(f, "parameters: of other names or shapes")?,
            Parameters::Differ { most, name } => {
                writeln!(f, "parameters: up to {most:.3e} apart, in {name}")?;
            }
        }
        f.write_str(if self.same_state {
            "the rest of the state: the same bits"
        } else {
            "the rest of the state: different"
        })
    }
}

/// Compares the newest checkpoints of two runs that are not damaged, and their logs.
pub fn compare(a: &Path, b: &Path) -> Result<Comparison> {
    let (a, b) = (RunFolder::new(a), RunFolder::new(b));
    let (first, second) = (a.newest()?, b.newest()?);
    let entries = first.provenance.entries().into_iter();
    let others = second.provenance.entries();
    let provenance = entries.filter_map(|(name, value)| {
        let other = others.iter().find(|(other, _)| *other == name);
        let other = other.map_or("none".to_string(), |(_, value)| value.clone());
        let short = |text: String| text.chars().take(24).collect();
        (other != value).then(|| Difference {
            key: name,
            before: Some(short(value)),
            after: Some(short(other)),
        })
    });
    let configs = [config_of(&first)?, config_of(&second)?];
    let best = |checkpoint: &Checkpoint, config: &Config| {
        let best = checkpoint.state.best?;
        Some((config.train.metric, best.value))
    };
    let same_steps = first.state.step == second.state.step;
    Ok(Comparison {
        provenance: provenance.collect(),
        config: differences(&configs[0], &configs[1]),
        steps: [first.state.step, second.state.step],
        best: [best(&first, &configs[0]), best(&second, &configs[1])],
        first_difference: first_difference(&a, &b, same_steps)?,
        parameters: parameters(&first, &second)?,
        same_state: first.has_state_of(&second),
    })
}

fn parameters(a: &Checkpoint, b: &Checkpoint) -> Result<Parameters> {
    let (a, b) = (a.parameters(&Device::Cpu)?, b.parameters(&Device::Cpu)?);
    let same_names = a.len() == b.len() && a.keys().all(|name| b.contains_key(name));
    if !same_names
        || a.iter()
            .any(|(name, tensor)| tensor.shape() != b[name].shape())
    {
        return Ok(Parameters::OtherModel);
    }
    let (mut most, mut name, mut same) = (0.0, String::new(), true);
    for (key, tensor) in &a {
        let (x, y) = (
            tensor.flatten_all()?.to_vec1::<f32>()?,
            b[key].flatten_all()?.to_vec1::<f32>()?,
        );
        for (x, y) in x.into_iter().zip(y) {
            same &= x.to_bits() == y.to_bits();
            let apart = f64::from(x - y).abs();
            if apart > most {
                (most, name) = (apart, key.clone());
            }
        }
    }
    Ok(if same {
        Parameters::SameBits
    } else {
        Parameters::Differ { most, name }
    })
}

/// The step of the first line in which two logs differ, except for times.
fn first_difference(a: &RunFolder, b: &RunFolder, same_steps: bool) -> Result<Option<u64>> {
    let lines = |run: &RunFolder| -> Result<Vec<serde_json::Value>> {
        let mut lines = run.event_log()?.unwrap_or_default().without_times();
        lines.retain(|line| line["event"] != "test");
        Ok(lines)
    };
    let (a, b) = (lines(a)?, lines(b)?);
    let differs = a.iter().zip(&b).find(|(a, b)| a != b);
    let differs = differs.map(|(a, _)| a);
    // If both runs are at the same step, neither log may have more lines than the other.
    let (short, long) = if a.len() < b.len() {
        (&a, &b)
    } else {
        (&b, &a)
    };
    let more = long.get(short.len()).filter(|_| same_steps);
    Ok(differs.or(more).and_then(|line| line["step"].as_u64()))
}
