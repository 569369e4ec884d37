use attend_ops::{Param, Pass, Site};
use candle_core::Result;

use crate::weights::Init;

/// Layer dropout (Fan et al. 2020): in training, x ← b · (layer(x) - x) + x with b = 0 with probability p, and 1
/// otherwise, for all sentences of a batch alike. In evaluation b = 1; nothing is scaled.
pub(super) struct LayerDropout {
    rate: f32,
    layers: Vec<Layer>,
}

struct Layer {
    site: Site,
    params: Vec<Param>,
}

impl LayerDropout {
    /// Of the layers `STACK.0`, `STACK.1`, …, whose weights are there already.
    pub(super) fn new(rate: f32, stack: &str, layers: usize, init: &Init) -> Self {
        let layer = |n| {
            let name = format!("{stack}.{n}");
            Layer {
                site: Site::named(&name),
                params: match rate {
                    0.0 => Vec::new(),
                    _ => init.params_of(&name),
                },
            }
        };
        let layers = (0..layers).map(layer).collect();
        Self { rate, layers }
    }

    /// The layers that are computed in this pass. The parameters of the others have a gradient of zero. One layer is
    /// always kept, without which a decoder would not read its source.
    pub(super) fn kept(&self, pass: &Pass) -> Result<Vec<usize>> {
        let all = 0..self.layers.len();
        let mut kept: Vec<usize> = all
            .filter(|&n| !pass.happens(self.rate, self.layers[n].site))
            .collect();
        if kept.is_empty() {
            kept.extend(self.layers.len().checked_sub(1));
        }
        for (n, layer) in self.layers.iter().enumerate() {
            if !kept.contains(&n) {
                layer.params.iter().try_for_each(Param::add_zero)?;
            }
        }
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use attend_ops::Kernels;
    use candle_core::Device;

    use super::*;
    use crate::weights::{Init, Values};

    #[test]
    fn layers_are_left_out_at_their_rate_but_never_all_of_them() -> Result<()> {
        let mut init = Init::new(Values::Seed(1), &Device::Cpu);
        for n in 0..3 {
            init.linear(&format!("stack.{n}.fc"), 2, 2)?;
        }
        let dropout = LayerDropout::new(0.5, "stack", 3, &init);
        let weights = init.finish();
        let mut counts = [0; 4];
        for draw in 0..4000 {
            weights.params().for_each(Param::clear);
            let pass = Pass::train(Kernels::Fused, 1, draw);
            let kept = dropout.kept(&pass)?;
            assert_eq!(dropout.kept(&pass)?, kept);
            counts[kept.len()] += 1;
            for (n, layer) in dropout.layers.iter().enumerate() {
                for param in &layer.params {
                    let is_zero = param.gradient().is_some();
                    assert_eq!(is_zero, !kept.contains(&n), "{}", param.name());
                }
            }
        }
        // Binomial, with the case of none added to that of one.
        for (count, expected) in counts.into_iter().zip([0.0, 0.5, 0.375, 0.125]) {
            assert!(
                (f64::from(count) / 4000.0 - expected).abs() < 0.03,
                "{counts:?}"
            );
        }
        let eval = Pass::eval(Kernels::Fused);
        assert_eq!(dropout.kept(&eval)?, [0, 1, 2]);
        Ok(())
    }
}
