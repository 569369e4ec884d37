use attend_batch::Segments;
use attend_ops::{DropoutSite, Linear, Pass, RowDropout, beside, dropout, gated, linear, shift};
use candle_core::{Result, Tensor};

/// A causal convolution with kernel size 2 and dilation r (Algorithm 1):
///
/// f, g = W [x_{t-r} ; x_t] + b,  y_t = [x_t ; tanh(f) ⊙ σ(g)],
///
/// with zeros before the start of the sentence.
pub(super) struct Convolution {
    /// W and b: the rows of f, then those of g.
    pub(super) gates: Linear,
    /// r
    pub(super) dilation: usize,
    pub(super) drop: DropoutSite,
}

impl Convolution {
    /// All positions at once: `[n, c]` to `[n, c + D]`.
    pub(super) fn forward(&self, x: &Tensor, sentences: &Segments, pass: &Pass) -> Result<Tensor> {
        let past = shift(x, sentences, self.dilation, pass)?;
        let drop = self.drop.of_rows(sentences, pass);
        self.append_channels(x, &past, &drop, pass)
    }

    /// One position, `length`: `[rows, c]` to `[rows, c + D]`. Earlier positions are in `features`
    /// `[rows, capacity, …]`, whose first c channels are this layer's input.
    pub(super) fn step(
        &self,
        x: &Tensor,
        features: &Tensor,
        length: usize,
        pass: &Pass,
    ) -> Result<Tensor> {
        let past = match length.checked_sub(self.dilation) {
            None => x.zeros_like()?,
            Some(position) => {
                let past = features.narrow(1, position, 1)?.squeeze(1)?;
                past.narrow(1, 0, x.dim(1)?)?.contiguous()?
            }
        };
        self.append_channels(x, &past, &RowDropout::NONE, pass)
    }

    /// y of x_t = `x` and x_{t-r} = `past`.
    fn append_channels(
        &self,
        x: &Tensor,
        past: &Tensor,
        drop: &RowDropout,
        pass: &Pass,
    ) -> Result<Tensor> {
        let window = beside(past, x, pass)?; // (n, 2c)
        let new = gated(&linear(&window, &[&self.gates], pass)?, pass)?; // (n, D)
        beside(x, &dropout(&new, drop, pass)?, pass)
    }
}
