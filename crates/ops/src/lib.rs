//! Tensor operations of Transformers and recurrent models, with gradients.
//!
//! Every operation exists twice. The *composed* version is written out of plain candle ops; it
//! runs on CUDA and Metal and is the oracle of the tests. The *fused* version is a CPU kernel with
//! its own backward. [`Pass`] says which of the two an operation takes, whether it draws dropout
//! and whether it records a graph.
//!
//! Batches are packed: sentences laid end to end in `[n, d]`, with [`Segments`] saying where each
//! begins. Nothing is padded, except inside composed operations, and the columns of scores and weights in
//! `alignment`.
//!
//! Gradients of parameters accumulate in buffers that the [`Param`]s own; [`Loss::backward`] fills them.

mod adam;
mod alignment;
mod allocator;
mod attention;
mod buffer;
mod convolution;
mod cpu;
mod dropout;
mod embed;
mod gemm;
mod linear;
mod loss;
mod norm;
mod padding;
mod param;
mod pass;
pub mod profile;
pub mod random;
mod recurrent;
mod segments;
mod shared;
mod simd;
mod sublayer;
#[cfg(test)]
mod testing;
mod threads;

pub use adam::{Adam, clip_factor, moving_average, norm_of_all};
pub use alignment::{Pairs, Seen, additive_scores, dot_scores, mix, softmax};
pub use allocator::give_back_memory;
pub use attention::{Mask, attention, self_attention};
pub use convolution::{beside, gated, shift};
pub use dropout::dropout;
pub use embed::embed;
pub use linear::{Activation, Linear, linear, linear_activated, project};
pub use loss::{Loss, cross_entropy, logits_held};
pub use norm::{Norm, add, add_norm, norm};
pub use param::Param;
#[cfg(test)]
pub(crate) use param::backward;
pub use pass::{Mode, Pass, Path};
pub use random::{Dropout, Site};
pub use recurrent::{Cell, Direction, cell, recurrence};
pub use segments::Segments;
pub use shared::Shared;
pub use simd::log_sum_exp;
pub use sublayer::{
    Body, DropoutSite, FeedForward, MultiHead, Order, Residual, Source, Sublayer, stack,
};
pub use threads::{on_pool, start_threads};
