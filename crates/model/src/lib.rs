//! A config and parameters to a sequence-to-sequence model. No I/O, no hidden randomness.
//!
//! [`Encode`], [`Train`] and [`Step`] are what training and search know of a model; [`ModelConfig::build`] makes a
//! [`Seq2Seq`], which is all three.

mod added;
mod attention;
mod cache;
mod caption;
mod config;
mod decoding;
mod embedding;
mod footprint;
mod lstmn;
mod recurrent;
mod seq2seq;
mod snail;
mod transformer;
mod weights;

pub use added::{ADDED, Added};
pub use attend_ops::{Consistency, Cut, Kernels, Loss, Mode, Pass, Words};
pub use attention::{
    AlignKind, ContextKind, DeviationKind, ScoreActivation, ScoreKind, SharpnessKind,
};
pub use caption::{BlockConfig, Caption, CaptionConfig, PictureConfig};
pub use config::{ModelConfig, Vocabularies};
pub use embedding::Tie;
pub use footprint::{BatchSize, Footprint, SearchFootprint, TrainingFootprint};
pub use lstmn::{FusionKind, Lstmn, LstmnConfig};
pub use recurrent::{
    AttentionChoice, AttentionConfig, AttentionOrder, CellKind, ContextSteps, Recurrent,
    RecurrentConfig,
};
pub use seq2seq::{
    AttentionMap, DecoderState, Encode, KeptRows, Memory, Output, Penalty, Place, Seq2Seq, Step,
    Train,
};
pub use snail::{Snail, SnailConfig};
pub use transformer::{Activation, NormKind, Scores, Transformer, TransformerConfig, sinusoids};
pub use weights::{LoadError, Loaded, Packing, Weights};
