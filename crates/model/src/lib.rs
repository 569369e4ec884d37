//! A config and parameters to a sequence-to-sequence model. No I/O, no hidden randomness.
//!
//! [`Seq2Seq`] is the seam that training and search stand on; [`ModelConfig::build`] makes one.

mod attention;
mod config;
mod embedding;
mod packed;
mod params;
mod recurrent;
mod seq2seq;
mod snail;
mod transformer;

pub use attend_ops::{
    Loss, Mode, Param, Pass, Path, Segments, log_sum_exp, on_pool, start_threads,
};
pub use attention::{AlignKind, ContextKind, ScoreKind};
pub use config::{Activations, ConfigError, ModelConfig, Vocabularies};
pub use embedding::Tie;
pub use packed::Packed;
pub use params::{LoadError, Params};
pub use recurrent::{
    AttentionChoice, AttentionConfig, CellKind, Order, Recurrent, RecurrentConfig,
};
pub use seq2seq::{AttentionMap, Memory, Output, Place, Seq2Seq, State};
pub use snail::{Snail, SnailConfig};
pub use transformer::{Activation, Norm, Scores, Transformer, TransformerConfig};
