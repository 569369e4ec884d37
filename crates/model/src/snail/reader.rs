use attend_ops::{DropoutSite, Linear, Pass, beside, dropout, linear};
use candle_core::{Result, Tensor};

use crate::attention::{Attended, Attention, Read, Scope};

/// An attention that adds what it read (Algorithm 3):
///
/// y = [x ; softmax(q kᵀ / √d_key) v].
pub(super) struct Reader {
    pub(super) query: Linear,
    /// Without a bias, which would move all scores of a query alike.
    pub(super) key: Linear,
    pub(super) value: Linear,
    pub(super) attention: Attention,
    pub(super) drop: DropoutSite,
}

impl Reader {
    /// Keys `[m, d_key]` and values `[m, d_value]` of what is read.
    pub(super) fn read(&self, states: &Tensor, pass: &Pass) -> Result<[Tensor; 2]> {
        let both = linear(states, &[&self.key, &self.value], pass)?;
        let keys = self.key.weight.value().dim(0)?;
        let part = |first, width| both.narrow(1, first, width)?.contiguous();
        Ok([part(0, keys)?, part(keys, both.dim(1)? - keys)?])
    }

    /// `[n, c]` to `[n, c + d_value]`, and the weights `[n, s]`.
    pub(super) fn forward(
        &self,
        x: &Tensor,
        [keys, values]: [&Tensor; 2],
        scope: &Scope,
        pass: &Pass,
    ) -> Result<(Tensor, Tensor)> {
        let query = linear(x, &[&self.query], pass)?;
        let read = Read::new(keys, values, pass)?;
        let Attended {
            context, weights, ..
        } = self.attention.attend(&query, &read, scope, pass)?;
        let context = dropout(&context, self.drop.of(pass), pass)?;
        Ok((beside(x, &context, pass)?, weights))
    }
}
