use std::sync::Mutex;

use candle_core::{Device, Result, Tensor};

/// Sinusoidal positions (§3.5), in MarianMT's layout: all sines, then all cosines.
///
/// P\[pos\] = \[sin(pos w₀), …, sin(pos w_{d/2-1}), cos(pos w₀), …\],  w_k = 10000^(-2k/d).
pub(crate) struct Positions {
    d: usize,
    device: Device,
    /// Grows when a longer sentence is encoded, so there is no maximum length.
    table: Mutex<Option<Tensor>>,
}

impl Positions {
    pub(crate) fn new(d: usize, device: &Device) -> Self {
        Self {
            d,
            device: device.clone(),
            table: Mutex::new(None),
        }
    }

    /// A table of at least the first `longest` positions, `[≥ longest, d]`.
    pub(crate) fn upto(&self, longest: usize) -> Result<Tensor> {
        let mut table = self.table.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(table) = &*table
            && table.dim(0)? >= longest
        {
            return Ok(table.clone());
        }
        let rows = longest.next_power_of_two().max(64);
        let longer = sinusoids(rows, self.d, &self.device)?;
        *table = Some(longer.clone());
        Ok(longer)
    }
}

/// The first `rows` sinusoidal positions of a Transformer of width `d`, `[rows, d]`: those that it adds to its
/// embeddings, for programs that store them with a model.
pub fn sinusoids(rows: usize, d: usize, device: &Device) -> Result<Tensor> {
    let half = d / 2;
    let rate = |k: usize| 10_000f64.powf(-2.0 * k as f64 / d as f64);
    let mut table = Vec::with_capacity(rows * d);
    for position in 0..rows {
        let angle = |k| position as f64 * rate(k);
        table.extend((0..half).map(|k| angle(k).sin() as f32));
        table.extend((0..half).map(|k| angle(k).cos() as f32));
    }
    Tensor::from_vec(table, (rows, d), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_do_not_change_when_the_table_grows() -> Result<()> {
        let positions = Positions::new(8, &Device::Cpu);
        let short = positions.upto(3)?.narrow(0, 0, 3)?.to_vec2::<f32>()?;
        let long = positions.upto(5000)?;
        assert!(long.dim(0)? >= 5000);
        assert_eq!(long.narrow(0, 0, 3)?.to_vec2::<f32>()?, short);
        assert_eq!(short[0], [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        assert!((short[2][1] - (2.0f32 * 0.1).sin()).abs() < 1e-6);
        Ok(())
    }
}
