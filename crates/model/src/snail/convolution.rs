use attend_ops::{DropoutSite, Linear, Pass, Segments, beside, dropout, gated, linear, shift};
use candle_core::{Result, Tensor};

/// A causal convolution of two places (Algorithm 1), r apart:
///
/// f, g = W [x_{t-r} ; x_t] + b,  y_t = [x_t ; tanh(f) ⊙ σ(g)],
///
/// with zeros before the beginning of the sentence.
pub(super) struct Convolution {
    /// f and g, one below the other.
    pub(super) gates: Linear,
    /// r
    pub(super) dilation: usize,
    pub(super) drop: DropoutSite,
}

impl Convolution {
    /// Every position at once: `[n, c]` to `[n, c + D]`.
    pub(super) fn forward(&self, x: &Tensor, sentences: &Segments, pass: &Pass) -> Result<Tensor> {
        let past = shift(x, sentences, self.dilation, pass)?;
        self.grow(x, &past, pass)
    }

    /// One position, the rows of which have read `length` before: `[rows, c]` to `[rows, c + D]`. What came
    /// before is in `features` `[rows, room, …]`, whose first columns are this layer's input.
    pub(super) fn step(
        &self,
        x: &Tensor,
        features: &Tensor,
        length: usize,
        pass: &Pass,
    ) -> Result<Tensor> {
        let past = match length.checked_sub(self.dilation) {
            None => x.zeros_like()?,
            Some(place) => {
                let past = features.narrow(1, place, 1)?.squeeze(1)?;
                past.narrow(1, 0, x.dim(1)?)?.contiguous()?
            }
        };
        self.grow(x, &past, pass)
    }

    fn grow(&self, x: &Tensor, past: &Tensor, pass: &Pass) -> Result<Tensor> {
        let window = beside(past, x, pass)?; // (n, 2c)
        let new = gated(&linear(&window, &[&self.gates], pass)?, pass)?; // (n, D)
        beside(x, &dropout(&new, self.drop.of(pass), pass)?, pass)
    }
}
