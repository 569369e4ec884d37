//! How two runs differ.

use std::fmt;
use std::fs;
use std::path::Path;

use candle_core::Device;

use crate::log::timeless;
use crate::{Checkpoint, Checkpoints, Difference, Result, differences};

/// Two runs beside each other, by their newest sound checkpoints.
#[derive(Debug)]
pub struct Comparison {
    /// What they were made from and by, where it differs: (name, of the first, of the second).
    pub provenance: Vec<(String, String, String)>,
    pub config: Vec<Difference>,
    pub steps: (u64, u64),
    pub best: (Option<f64>, Option<f64>),
    /// The first line of training in the logs that differs, but for times: its step.
    pub parted: Option<u64>,
    pub parameters: Parameters,
    /// Whether the optimizers' tensors and the rest of the state are the same bits.
    pub same_state: bool,
}

#[derive(Debug, PartialEq)]
pub enum Parameters {
    SameBits,
    /// The largest difference, and where it is.
    Apart {
        most: f64,
        name: String,
    },
    /// They have other names or shapes.
    OtherModel,
}

impl Comparison {
    /// Whether nothing but the folders' names and the time they took tells them apart.
    pub fn is_same(&self) -> bool {
        let same_config = self.config.iter().all(|difference| difference.key == "out");
        self.provenance.is_empty()
            && same_config
            && self.steps.0 == self.steps.1
            && self.best.0 == self.best.1
            && self.parted.is_none()
            && self.parameters == Parameters::SameBits
            && self.same_state
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.is_same() {
            return write!(f, "no difference");
        }
        for (name, a, b) in &self.provenance {
            let short = |text: &str| text.chars().take(24).collect::<String>();
            writeln!(f, "{name}: {} → {}", short(a), short(b))?;
        }
        for difference in &self.config {
            writeln!(f, "{difference}")?;
        }
        if self.steps.0 != self.steps.1 {
            writeln!(f, "step: {} → {}", self.steps.0, self.steps.1)?;
        }
        if self.best.0 != self.best.1 {
            let text = |value: Option<f64>| value.map_or("none".into(), |value| value.to_string());
            writeln!(f, "best: {} → {}", text(self.best.0), text(self.best.1))?;
        }
        match self.parted {
            Some(step) => writeln!(f, "logs: the first difference is at step {step}")?,
            None => writeln!(f, "logs: no difference as far as both go")?,
        }
        match &self.parameters {
            Parameters::SameBits => writeln!(f, "parameters: the same bits")?,
            Parameters::OtherModel => writeln!(f, "parameters: of other names or shapes")?,
            Parameters::Apart { most, name } => {
                writeln!(f, "parameters: up to {most:.3e} apart, in {name}")?;
            }
        }
        match self.same_state {
            true => write!(f, "the rest of the state: the same bits"),
            false => write!(f, "the rest of the state: different"),
        }
    }
}

/// Compares the newest sound checkpoints of two runs, and their logs.
pub fn compare(a: &Path, b: &Path) -> Result<Comparison> {
    let (first, second) = (Checkpoints::of(a).newest()?, Checkpoints::of(b).newest()?);
    let parts = first.provenance.parts().into_iter();
    let others = second.provenance.parts();
    let provenance = parts.filter_map(|(name, value)| {
        let other = others.iter().find(|(other, _)| *other == name);
        let other = other.map_or("none".to_string(), |(_, value)| value.clone());
        (other != value).then_some((name, value, other))
    });
    let best = |checkpoint: &Checkpoint| checkpoint.state.best.map(|best| best.value);
    let same_steps = first.state.step == second.state.step;
    Ok(Comparison {
        provenance: provenance.collect(),
        config: differences(&first.config()?, &second.config()?),
        steps: (first.state.step, second.state.step),
        best: (best(&first), best(&second)),
        parted: parted(
            &a.join("metrics.jsonl"),
            &b.join("metrics.jsonl"),
            same_steps,
        ),
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
    Ok(match same {
        true => Parameters::SameBits,
        false => Parameters::Apart { most, name },
    })
}

/// The step of the first line in which two logs differ by more than the time it took.
fn parted(a: &Path, b: &Path, same_steps: bool) -> Option<u64> {
    let lines = |path: &Path| {
        let mut lines = timeless(&fs::read_to_string(path).unwrap_or_default());
        lines.retain(|line| line["event"] != "test");
        lines
    };
    let (a, b) = (lines(a), lines(b));
    let differs = a.iter().zip(&b).find(|(a, b)| a != b);
    let differs = differs.map(|(a, _)| a);
    // Of logs of equal length in steps, neither may have more lines.
    let (short, long) = if a.len() < b.len() {
        (&a, &b)
    } else {
        (&b, &a)
    };
    let more = long.get(short.len()).filter(|_| same_steps);
    differs.or(more).and_then(|line| line["step"].as_u64())
}
