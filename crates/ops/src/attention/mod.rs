//! Multi-head scaled dot-product attention over packed sentences (Vaswani et al. 2017, §3.2).
//!
//! Per sentence and head:  out = dropout(softmax(q kᵀ / √w)) v,  with heads of width w = d / heads.
//! Queries `[n, d]`; keys and values side by side `[m, 2d]`, or all three `[n, 3d]`. A query sees the
//! keys of its own sentence and no others; one whose sentence has no keys gets zeros.

mod composed;
pub(crate) mod fused;
mod gradients;
mod sentence;
mod softmax;

pub(crate) use sentence::Inputs;
pub(crate) use softmax::Softmax;

use candle_core::{Result, Tensor, bail};

use crate::pass::{Pass, Path};
use crate::random::Dropout;
use crate::segments::Segments;

/// What a query may see of its own sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// All of it.
    Full,
    /// Itself and what comes before: decoders.
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

/// The shape of one attention.
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
            self.dropout.part((sentence * self.heads + head) as u64)
        }
    }

    pub(crate) fn check(&self, query_rows: usize, key_rows: usize) -> Result<()> {
        if self.heads == 0 || !self.d.is_multiple_of(self.heads) {
            bail!("{} heads do not divide a width of {}", self.heads, self.d);
        }
        if self.queries.count() != self.keys.count()
            || self.queries.rows() != query_rows
            || self.keys.rows() != key_rows
        {
            bail!("attention from {query_rows} to {key_rows} rows does not fit its sentences");
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
    match pass.path {
        Path::Composed => {
            let q = qkv.narrow(1, 0, plan.d)?;
            composed::attention(&q, &qkv.narrow(1, plan.d, 2 * plan.d)?, &plan)
        }
        Path::Fused => fused::self_attention(qkv, plan, pass),
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
    match pass.path {
        Path::Composed => composed::attention(q, kv, &plan),
        Path::Fused => fused::attention(q, kv, plan, pass),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Site;
    use crate::testing::{Case, assert_close, param};

    const LENGTHS: [&[usize]; 5] = [&[1], &[3, 1, 8, 2], &[70, 5], &[1, 513], &MANY];

    /// So many that threads share sentences, and not heads.
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
    fn fused_cross_attention_equals_composed_even_where_a_sentence_is_empty() {
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
    fn a_query_sees_neither_other_sentences_nor_what_the_causal_mask_hides() -> Result<()> {
        let sentences = Segments::packed([3, 4]);
        let clean = param("qkv", (7, 12)).value().detach();
        for path in Path::ALL {
            let pass = Pass::eval(path);
            let run =
                |qkv: &Tensor, mask| self_attention(qkv, &sentences, 2, mask, Dropout::NONE, &pass);
            // Other values in the last row of the second sentence.
            let noise = param("noise", (1, 12)).value().detach();
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
    fn keys_in_rooms_give_what_packed_keys_give() -> Result<()> {
        let (q, kv) = (param("q", (6, 8)), param("kv", (12, 16)));
        let (q, kv) = (q.value().detach(), kv.value().detach());
        let (queries, packed) = (Segments::packed([2, 2, 2]), Segments::packed([3, 3, 3]));
        let rooms = Segments::in_rooms(3, 4, 3);
        let rows = Tensor::new(&[0u32, 1, 2, 4, 5, 6, 8, 9, 10], q.device())?;
        let squeezed = kv.index_select(&rows, 0)?;
        for path in Path::ALL {
            let pass = Pass::eval(path);
            let run = |kv: &Tensor, keys: &Segments| {
                attention(&q, &queries, kv, keys, 2, Dropout::NONE, &pass)
            };
            assert_close(&run(&kv, &rooms)?, &run(&squeezed, &packed)?, 0.0);
        }
        Ok(())
    }
}
