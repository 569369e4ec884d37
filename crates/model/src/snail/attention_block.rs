use attend_ops::{DropoutSite, Linear, Pass, beside, dropout, linear};
use candle_core::{Result, Tensor};

use crate::attention::{Attended, Attention, KeysValues, Scope};

/// An attention whose context is appended to its input (Algorithm 3):
///
/// y = [x ; softmax(q kᵀ / √d_key) v].
pub(super) struct AttentionBlock {
    pub(super) query: Linear,
    /// Without a bias, which would add the same number to all scores of a query and not change its weights.
    pub(super) key: Linear,
    pub(super) value: Linear,
    pub(super) attention: Attention,
    pub(super) drop: DropoutSite,
}

impl AttentionBlock {
    /// The keys `[m, d_key]` and values `[m, d_value]` of the states to attend to.
    pub(super) fn keys_values(&self, states: &Tensor, pass: &Pass) -> Result<[Tensor; 2]> {
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
        let over = KeysValues::new(keys, values, pass)?;
        let Attended {
            context, weights, ..
        } = self.attention.attend(&query, &over, scope, pass)?;
        let drop = scope.dropout(self.drop.of(pass));
        let context = dropout(&context, &drop, pass)?;
        Ok((beside(x, &context, pass)?, weights))
    }
}
