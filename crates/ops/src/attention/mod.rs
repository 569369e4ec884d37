//! Multi-head scaled dot-product attention over packed sentences (Vaswani et al. 2017, §3.2).
//!
//! Per sentence and head:  out = dropout(softmax(q kᵀ / √w)) v,  with heads of width w = d / heads.
//! Queries are `[n, d]`. Keys and values are side by side in `[m, 2d]`, or all three in `[n, 3d]`. A query
//! attends only to the keys of its own sentence; a query whose sentence has no keys gets zeros.
//!
//! # How the fused version divides the work
//!
//! Example: causal self-attention of 2 sentences of 3 and 5 tokens, with d = 4 and 2 heads of width w = 2.
//! The packed batch is `[8, 3d]`. A head is a block of w columns; nothing is copied to separate it.
//!
//! ```text
//!                     q             k             v
//!                 h0    h1      h0    h1      h0    h1
//!        row 0  [ . . | . .  |  . . | . .  |  . . | . . ]  \
//!        row 1  [ . . | . .  |  . . | . .  |  . . | . . ]   > sentence 0: t = s = 3
//!        row 2  [ . . | . .  |  . . | . .  |  . . | . . ]  /
//!        row 3  [ . . | . .  |  . . | . .  |  . . | . . ]  \
//!          :                      :                         > sentence 1: t = s = 5
//!        row 7  [ . . | . .  |  . . | . .  |  . . | . . ]  /
//! ```
//!
//! 1. *Sentences and heads.* A task is a sentence, which goes through its heads one after the other. If
//!    there are fewer sentences than 4 per thread, as here, each of the 4 pairs of sentence and head is a
//!    task. It writes to a buffer of its own, `[t, w]` in the forward pass, which is then copied to the
//!    columns of the head.
//! 2. *Blocks of queries.* The queries of a head are cut into blocks of at most 2^17 / s rows, and of at
//!    most 64 rows under a causal mask. A block computes the scores against the keys that its last query
//!    sees. Both sentences here are a single block. A causal sentence of 130 tokens has three:
//!
//!    ```text
//!                    keys   0 ............. 63  64 ........... 127  128 129
//!        queries   0..64   [ seen = 64        ]
//!        queries  64..128  [ seen = 128                           ]
//!        queries 128..130  [ seen = 130                                    ]
//!    ```
//!
//! 3. *Rows of scores.* A block holds all its scores at once: `[rows, seen]`, each row extended to whole
//!    tiles of a matrix product (a multiple of 32 columns with AVX-512, else of 16), so that no loop over
//!    it has a remainder. Keys are not tiled beyond that. x is a score, - is masked, and the rest is unused:
//!
//!    ```text
//!        sentence 0, each head           sentence 1, each head
//!                 k0 k1 k2 |                      k0 k1 k2 k3 k4 |
//!           q0  [  x  -  - | unused ]       q0  [  x  -  -  -  - | unused ]
//!           q1  [  x  x  - | unused ]       q1  [  x  x  -  -  - | unused ]
//!           q2  [  x  x  x | unused ]       q2  [  x  x  x  -  - | unused ]
//!                                           q3  [  x  x  x  x  - | unused ]
//!                                           q4  [  x  x  x  x  x | unused ]
//!    ```
//!
//!    The products compute the masked scores too; the softmax replaces them by zeros.
//!
//! *Kept for the backward pass:* two numbers per query and head, the highest score and 1 / Σ exp. That is
//! 2 · 3 pairs for sentence 0 and 2 · 5 for sentence 1, in the order `[heads, queries]` per sentence. Scores
//! and weights are not kept.
//!
//! *Recomputed by the backward pass,* for the same blocks: the scores q kᵀ, the weights (from the scores and
//! the two numbers) and the dropout masks. The gradient of the weights after dropout is dy vᵀ. With a, the
//! weights after dropout, and g, the gradient of the scores, a block computes dv = aᵀ dy, dk = gᵀ q and
//! dq = g k. If a head has several blocks, dk and dv are cleared first, and each block adds to the rows of
//! the keys that it sees. A single block overwrites them.

mod composed;
pub(crate) mod fused;
mod gradients;
mod sentence;
mod softmax;

pub(crate) use sentence::Inputs;
pub(crate) use softmax::Softmax;

use attend_batch::Segments;
use candle_core::{Result, Tensor, bail};

use crate::pass::{Kernels, Pass};
use crate::random::Dropout;

/// The keys of its own sentence that a query attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// All keys.
    Full,
    /// The key at its own position and those before it, as in decoders.
    Causal,
}

impl Mask {
    /// How many of `keys` keys the query in row `row` sees.
    fn visible(self, row: usize, keys: usize) -> usize {
        match self {
            Mask::Full => keys,
            Mask::Causal => keys.min(row + 1),
        }
    }
}

/// The sizes and options of one attention.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) heads: usize,
    pub(crate) d: usize,
    pub(crate) queries: Segments,
    pub(crate) keys: Segments,
    pub(crate) mask: Mask,
    pub(crate) dropout: Dropout,
}

impl Plan {
    fn head_width(&self) -> usize {
        self.d / self.heads
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_width() as f32).sqrt()
    }

    /// The dropout of the weights `[queries, keys]` of one sentence and head.
    fn dropout(&self, sentence: usize, head: usize) -> Dropout {
        if self.dropout.is_none() {
            Dropout::NONE
        } else {
            let place = self.queries.place(sentence);
            self.dropout.part((place * self.heads + head) as u64)
        }
    }

    pub(crate) fn check(&self, query_rows: usize, key_rows: usize) -> Result<()> {
        if self.heads == 0 || !self.d.is_multiple_of(self.heads) {
            bail!(
                "a width of {} is not divisible by {} heads",
                self.d,
                self.heads
            );
        }
        if self.queries.count() != self.keys.count()
            || self.queries.rows() != query_rows
            || self.keys.rows() != key_rows
        {
            bail!("attention of {query_rows} to {key_rows} rows does not match its sentences");
        }
        Ok(())
    }
}

/// Attention of every sentence to itself: qkv `[n, 3d]` to `[n, d]`.
pub fn self_attention(
    qkv: &Tensor,
    sentences: &Segments,
    heads: usize,
    mask: Mask,
    dropout: Dropout,
    pass: &Pass,
) -> Result<Tensor> {
    let (n, width) = qkv.dims2()?;
    let plan = Plan {
        heads,
        d: width / 3,
        queries: sentences.clone(),
        keys: sentences.clone(),
        mask,
        dropout,
    };
    plan.check(n, n)?;
    match pass.kernels {
        Kernels::Composed => {
            let q = qkv.narrow(1, 0, plan.d)?;
            composed::attention(&q, &qkv.narrow(1, plan.d, 2 * plan.d)?, &plan)
        }
        Kernels::Fused => fused::self_attention(qkv, plan, pass),
    }
}

/// Attention of each sentence's queries `[n, d]` to its keys and values `[m, 2d]`.
pub fn attention(
    q: &Tensor,
    queries: &Segments,
    kv: &Tensor,
    keys: &Segments,
    heads: usize,
    dropout: Dropout,
    pass: &Pass,
) -> Result<Tensor> {
    let (n, d) = q.dims2()?;
    let plan = Plan {
        heads,
        d,
        queries: queries.clone(),
        keys: keys.clone(),
        mask: Mask::Full,
        dropout,
    };
    plan.check(n, kv.dim(0)?)?;
    match pass.kernels {
        Kernels::Composed => composed::attention(q, kv, &plan),
        Kernels::Fused => fused::attention(q, kv, plan, pass),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Site;
    use crate::testing::{Case, assert_close, weight};

    const LENGTHS: [&[usize]; 5] = [&[1], &[3, 1, 8, 2], &[70, 5], &[1, 513], &MANY];

    /// Enough sentences that tasks are sentences, not heads.
    const MANY: [usize; 70] = {
        let mut lengths = [2; 70];
        (lengths[0], lengths[5]) = (70, 1);
        lengths
    };

    #[test]
    fn fused_self_attention_equals_composed() {
        for lengths in LENGTHS {
            let sentences = Segments::packed(lengths.iter().copied());
            for (heads, d) in [(1, 3), (4, 24), (2, 16)] {
                for (mask, rate) in [(Mask::Full, 0.0), (Mask::Causal, 0.0), (Mask::Causal, 0.3)] {
                    let case = Case::new(&[]).input((sentences.rows(), 3 * d));
                    case.check(|x, pass| {
                        let dropout = pass.dropout(rate, Site::named("test"));
                        self_attention(&x[0], &sentences, heads, mask, dropout, pass)
                    });
                }
            }
        }
    }

    #[test]
    fn fused_cross_attention_equals_composed_with_empty_sentences() {
        let queries = Segments::packed([4, 1, 0, 7, 2]);
        let keys = Segments::packed([2, 9, 3, 0, 1]);
        for (heads, d) in [(1, 5), (3, 24)] {
            for rate in [0.0, 0.3] {
                let case = Case::new(&[])
                    .input((queries.rows(), d))
                    .input((keys.rows(), 2 * d));
                case.check(|x, pass| {
                    let dropout = pass.dropout(rate, Site::named("test"));
                    attention(&x[0], &queries, &x[1], &keys, heads, dropout, pass)
                });
            }
        }
    }

    #[test]
    fn a_query_attends_neither_to_other_sentences_nor_to_masked_keys() -> Result<()> {
        let sentences = Segments::packed([3, 4]);
        let clean = weight("qkv", (7, 12)).value().detach();
        for kernels in Kernels::ALL {
            let pass = Pass::eval(kernels);
            let run =
                |qkv: &Tensor, mask| self_attention(qkv, &sentences, 2, mask, Dropout::NONE, &pass);
            // Other values in the last row of the second sentence.
            let noise = weight("noise", (1, 12)).value().detach();
            let dirty = Tensor::cat(&[&clean.narrow(0, 0, 6)?, &noise], 0)?;
            let (a, b) = (run(&clean, Mask::Full)?, run(&dirty, Mask::Full)?);
            assert_eq!(
                a.narrow(0, 0, 3)?.to_vec2::<f32>()?,
                b.narrow(0, 0, 3)?.to_vec2::<f32>()?
            );
            let (a, b) = (run(&clean, Mask::Causal)?, run(&dirty, Mask::Causal)?);
            assert_close(&a.narrow(0, 0, 6)?, &b.narrow(0, 0, 6)?, 0.0);
        }
        Ok(())
    }

    #[test]
    fn keys_with_spare_capacity_give_the_same_output_as_packed_keys() -> Result<()> {
        let (q, kv) = (weight("q", (6, 8)), weight("kv", (12, 16)));
        let (q, kv) = (q.value().detach(), kv.value().detach());
        let (queries, packed) = (Segments::packed([2, 2, 2]), Segments::packed([3, 3, 3]));
        let rooms = Segments::with_capacity(3, 4, 3);
        let rows = Tensor::new(&[0u32, 1, 2, 4, 5, 6, 8, 9, 10], q.device())?;
        let squeezed = kv.index_select(&rows, 0)?;
        for kernels in Kernels::ALL {
            let pass = Pass::eval(kernels);
            let run = |kv: &Tensor, keys: &Segments| {
                attention(&q, &queries, kv, keys, 2, Dropout::NONE, &pass)
            };
            assert_close(&run(&kv, &rooms)?, &run(&squeezed, &packed)?, 0.0);
        }
        Ok(())
    }
}
