//! Tensor operations of Transformers and recurrent models, with gradients.
//!
//! Every operation has two implementations. The *composed* one uses plain candle operations. It runs on
//! CUDA and Metal and is the reference implementation of the tests. The *fused* one is a CPU kernel with
//! its own backward pass. [`Pass`] selects between them, and says whether dropout is applied and whether a
//! graph is recorded.
//!
//! Batches are packed: the sentences are concatenated in `[n, d]`, and [`Segments`](attend_batch::Segments) holds where each
//! begins. Nothing is padded, except inside composed operations and in the columns of the scores and
//! weights of `alignment`.
//!
//! Operations compute with [`Weight`]s. Those that are trained are [`Param`]s: their gradients accumulate in buffers
//! that they own, and [`Loss::backward`] fills them.

mod adam;
mod alignment;
mod attention;
mod buffer;
mod consistency;
mod convolution;
mod cpu;
mod dropout;
mod embed;
mod gemm;
mod isa;
mod linear;
mod loss;
mod norm;
mod packed;
mod padding;
mod param;
mod pass;
mod picture;
pub mod profile;
pub mod random;
mod recurrent;
mod shared;
mod simd;
mod step;
mod sublayer;
#[cfg(test)]
mod testing;
mod threads;
mod weight;

pub use adam::{Adam, Moments, clip_factor, moving_average, norm_of_all};
pub use alignment::{AdditiveActivation, Pairs, Seen, additive_scores, dot_scores, mix, softmax};
pub use attention::{Mask, attention, self_attention};
pub use consistency::{Consistency, consistent_cross_entropy};
pub use convolution::{beside, gated, shift};
pub use dropout::dropout;
pub use embed::{EmbeddingDropout, embed};
pub use isa::Isa;
pub use linear::{Activation, Linear, linear, linear_activated, project};
pub use loss::{Loss, cross_entropy, logits_held};
pub use norm::{LayerNorm, add, add_norm, norm};
pub use packed::{Int8Matrix, PackedWeight, quantize_row};
pub use param::Param;
#[cfg(test)]
pub(crate) use param::backward;
pub use pass::{Cut, Kernels, Mode, Pass, Words};
pub use picture::{Grid, PictureLayer, convolve};
pub use random::{Dropout, RowDropout, Site};
pub use recurrent::{
    Cell, Direction, Fusion, SourceReader, SourceSoFar, SourceTape, TapeLayer, TapeSoFar, TapeStep,
    TapeWeights, Tapes, cell, recurrence, tape_step, tapes,
};
pub use shared::Shared;
pub use simd::log_sum_exp;
pub use step::{SourceWeights, StepCache, step};
pub use sublayer::{
    AttendedStates, Body, DropoutSite, FeedForward, MultiHead, NormPlacement, Residual, Sublayer,
    stack,
};
pub use threads::on_pool;
pub use weight::Weight;
