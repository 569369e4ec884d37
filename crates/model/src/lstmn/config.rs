use attend_config::ConfigError;
use attend_ops::Fusion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Tie;

/// `[model.lstmn]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LstmnConfig {
    /// Number of encoder layers.
    #[schemars(range(min = 1, max = 100_000))]
    pub encoder_layers: usize,
    /// Number of decoder layers. The lowest one reads the source.
    #[schemars(range(min = 1, max = 100_000))]
    pub decoder_layers: usize,
    /// Width of the embeddings.
    #[schemars(range(min = 1, max = 100_000))]
    pub d_embed: usize,
    /// Width of the states, and of the hidden layers of the scores.
    #[schemars(range(min = 1, max = 100_000))]
    pub d_hidden: usize,
    /// How the decoder uses what it reads from the source.
    pub fusion: FusionKind,
    /// Dropout on the embeddings, between layers, and on the states that predict tokens.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub dropout: f32,
    /// Which embedding and output matrices are shared. Sharing needs d_embed = d_hidden.
    pub tie: Tie,
}

/// How the decoder uses what it reads from the source (Cheng et al. 2016, §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FusionKind {
    /// It is an input of the step, as in Bahdanau et al. 2015.
    Shallow,
    /// A gate adds the encoder's memory to the decoder's memory.
    Deep,
}

impl FusionKind {
    pub const ALL: [FusionKind; 2] = [FusionKind::Shallow, FusionKind::Deep];
}

impl From<FusionKind> for Fusion {
    fn from(kind: FusionKind) -> Self {
        match kind {
            FusionKind::Shallow => Fusion::Shallow,
            FusionKind::Deep => Fusion::Deep,
        }
    }
}

impl Default for LstmnConfig {
    fn default() -> Self {
        Self {
            encoder_layers: 1,
            decoder_layers: 1,
            d_embed: 512,
            d_hidden: 512,
            fusion: FusionKind::Deep,
            dropout: 0.2,
            tie: Tie::Decoder,
        }
    }
}

impl LstmnConfig {
    /// Checks the values that depend on each other.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.tie != Tie::None && self.d_embed != self.d_hidden {
            let (e, h) = (self.d_embed, self.d_hidden);
            return Err(ConfigError::new(
                "model.lstmn.tie",
                format!("needs d_embed = d_hidden, but they are {e} and {h}"),
                "make the two equal, or set tie = \"none\"",
            ));
        }
        Ok(())
    }
}
