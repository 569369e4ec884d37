//! How much of the source a translation has attended to.

use attend_model::{AttentionMap, Place};
use candle_core::{DType, Device, Tensor};

use crate::{Error, Result};

/// The attention of a step to the source: the mean of the heads of the last layer, `[r, s]`.
pub(super) struct Attention {
    values: Vec<f32>,
    columns: usize,
}

impl Attention {
    pub(super) fn of(maps: &[AttentionMap]) -> Result<Self> {
        let cross = || maps.iter().filter(|map| map.place == Place::Cross);
        let Some(last) = cross().map(|map| map.layer).max() else {
            return Err(Error::Usage {
                message: "decode.coverage_penalty: the model has no attention to the source".into(),
                hint: "set it to 0".into(),
            });
        };
        let heads = cross().filter(|map| map.layer == last);
        let heads: Vec<&Tensor> = heads.map(|map| &map.weights).collect();
        let mean = Tensor::stack(&heads, 0)?.mean(0)?; // (r, s)
        let (_, columns) = mean.dims2()?;
        let mean = mean.to_device(&Device::Cpu)?.to_dtype(DType::F32)?;
        Ok(Self {
            values: mean.flatten_all()?.to_vec1()?,
            columns,
        })
    }

    /// What a row attends to of a source of so many keys: the tokens of a sentence, or the regions of a picture.
    pub(super) fn row(&self, row: usize, keys: usize) -> &[f32] {
        &self.values[row * self.columns..][..keys]
    }
}

/// The attention that each token of the source has had so far. Empty if nobody asks.
#[derive(Clone, Default)]
pub(super) struct Coverage(Vec<f32>);

impl Coverage {
    /// What has had no attention at all counts as this, for the penalty to be finite.
    const LEAST: f32 = 1e-6;

    /// With the attention of one more step.
    pub(super) fn plus(&self, attention: &[f32]) -> Self {
        let mut sums = self.0.clone();
        sums.resize(attention.len(), 0.0);
        for (sum, new) in sums.iter_mut().zip(attention) {
            *sum += new;
        }
        Self(sums)
    }

    /// The sum of log(min(c, 1)) over the tokens (Wu et al. 2016, equation 14): 0 if each has had its share.
    pub(super) fn log(&self) -> f64 {
        let logs = self
            .0
            .iter()
            .map(|c| f64::from(c.clamp(Self::LEAST, 1.0)).ln());
        logs.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lacks_attention_is_penalised() {
        let coverage = Coverage::default();
        assert_eq!(coverage.log(), 0.0);
        let coverage = coverage.plus(&[0.5, 0.5, 0.0]).plus(&[0.25, 0.75, 0.0]);
        let expected = 0.75f64.ln() + f64::from(Coverage::LEAST).ln();
        assert!((coverage.log() - expected).abs() < 1e-6);
    }
}
