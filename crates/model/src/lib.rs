//! A config and parameters to a sequence-to-sequence model. No I/O, no hidden randomness.
//!
//! [`Seq2Seq`] is the seam that training and search stand on; [`ModelConfig::build`] makes one.

mod config;
mod packed;
mod params;
mod seq2seq;
mod transformer;

pub use attend_ops::{
    Loss, Mode, Param, Pass, Path, Segments, log_sum_exp, on_pool, start_threads,
};
pub use config::{Activations, ConfigError, ModelConfig, Vocabularies};
pub use packed::Packed;
pub use params::{LoadError, Params};
pub use seq2seq::{Memory, Seq2Seq, State};
pub use transformer::{Activation, Norm, Tie, Transformer, TransformerConfig};
