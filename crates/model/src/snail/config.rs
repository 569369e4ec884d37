use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Tie;

/// `[model.snail]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SnailConfig {
    /// Number of blocks in the encoder, and in the decoder. A block is convolutions, then attention.
    #[schemars(range(min = 1, max = 1_000))]
    pub blocks: usize,
    /// Width of the embeddings, of the encoder's output and of the decoder's output.
    #[schemars(range(min = 1, max = 100_000))]
    pub d_model: usize,
    /// Number of channels that each convolution adds.
    #[schemars(range(min = 1, max = 100_000))]
    pub filters: usize,
    /// Number of tokens that the convolutions of a block cover. There are ⌈log₂ span⌉ convolutions, and each
    /// reaches back twice as far as the one before. At least 2: without convolutions, the model would not know
    /// the order of the words.
    #[schemars(range(min = 2, max = 100_000))]
    pub span: usize,
    /// Width of the queries and keys.
    #[schemars(range(min = 1, max = 100_000))]
    pub d_key: usize,
    /// Width of the values, which is the number of channels that each attention adds.
    #[schemars(range(min = 1, max = 100_000))]
    pub d_value: usize,
    /// Dropout on the embeddings, on the added channels, and on the states that predict tokens.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub dropout: f32,
    /// Which embedding and output matrices are shared.
    pub tie: Tie,
}

impl Default for SnailConfig {
    fn default() -> Self {
        Self {
            blocks: 2,
            d_model: 256,
            filters: 128,
            span: 32,
            d_key: 128,
            d_value: 128,
            dropout: 0.1,
            tie: Tie::Decoder,
        }
    }
}

impl SnailConfig {
    /// How far back each convolution of a block reaches: 1, 2, 4, … 2^⌈log₂ span⌉ / 2.
    pub(super) fn dilations(&self) -> impl Iterator<Item = usize> + use<> {
        let layers = self.span.next_power_of_two().ilog2();
        (0..layers).map(|layer| 1 << layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dilations_double_until_they_cover_the_span() {
        let dilations = |span| {
            let config = SnailConfig {
                span,
                ..SnailConfig::default()
            };
            config.dilations().collect::<Vec<_>>()
        };
        assert!(dilations(1).is_empty());
        assert_eq!(dilations(2), [1]);
        assert_eq!(dilations(3), [1, 2]);
        assert_eq!(dilations(32), [1, 2, 4, 8, 16]);
        assert_eq!(dilations(33), [1, 2, 4, 8, 16, 32]);
    }
}
