//! One step, for decoding, and for the reference.

use attend_batch::Segments;
use candle_core::{Result, Tensor};

use super::layout::Layout;
use super::{Fusion, TapeLayer};
use crate::alignment::{AdditiveActivation, Pairs, additive_scores, mix, softmax};
use crate::linear::linear;
use crate::pass::Pass;
use crate::shared::Shared;
use crate::weight::Weight;

/// What a step reads: k rows, one token each.
pub struct TapeSoFar<'a> {
    /// Keys `[k·capacity, h]` and states `[k·capacity, 2h]` of the tokens before.
    pub keys: &'a Tensor,
    pub states: &'a Tensor,
    /// Which of their rows belong to which row.
    pub places: &'a Segments,
    /// h' of the step before, `[k, h]`; zeros at first.
    pub summary: &'a Tensor,
    /// Of the step before, `[k, h]`: its output with shallow fusion, γ' with deep fusion; zeros at first. The layer
    /// of a decoder that reads the source needs it.
    pub before: Option<&'a Tensor>,
}

/// What a decoder's step reads of the source.
pub struct SourceSoFar<'a> {
    /// Keys and values as in [`super::SourceTape`].
    pub keys: &'a Shared,
    pub values: &'a Shared,
    /// The rows of each source's sentence, and its tokens.
    pub pairs: &'a Pairs,
}

/// The outcome of a step.
pub struct TapeStep {
    /// h and c, `[k, 2h]`.
    pub state: Tensor,
    /// `[k, h]`
    pub key: Tensor,
    /// h' `[k, h]`
    pub summary: Tensor,
    /// γ' `[k, h]`
    pub read: Option<Tensor>,
    /// `[k, l]`
    pub own: Tensor,
    /// `[k, s]`
    pub source: Option<Tensor>,
}

/// One step of k rows: x `[k, X]`.
pub fn tape_step(
    x: &Tensor,
    layer: &TapeLayer,
    tape: &TapeSoFar,
    source: Option<&SourceSoFar>,
    pass: &Pass,
) -> Result<TapeStep> {
    let layout = Layout::new(layer)?;
    let h = layout.h;
    let k = x.dim(0)?;
    let part =
        |from: &Tensor, range: std::ops::Range<usize>| from.narrow(1, range.start, range.len());
    let query = (part(x, layout.query())? + linear(tape.summary, &[&layer.query], pass)?)?;
    let (own, read) = if tape.places.longest() == 0 {
        nothing(&query, layer, pass)?
    } else {
        let pairs = Pairs {
            queries: Segments::packed(vec![1; k]),
            keys: tape.places.clone(),
        };
        let keys = Shared::new(tape.keys, pass)?;
        let states = Shared::new(tape.states, pass)?;
        attend(&query, &keys, &states, &layer.vector, &pairs, pass)?
    };
    let summary = part(&read, 0..h)?.contiguous()?;
    let c_read = part(&read, h..2 * h)?;
    let mut gates = (part(x, layout.gates())? + linear(&summary, &[&layer.recurrent], pass)?)?;
    let mut added = None;
    let mut of_source = None;
    if let (Some(reader), Some(source), Some(before)) = (&layer.source, source, tape.before) {
        let mut query = linear(before, &[&reader.query], pass)?;
        if reader.fusion == Fusion::Deep {
            query = (query + part(x, layout.source_query())?)?;
        }
        let (keys, values) = (source.keys, source.values);
        let (weights, read) = attend(&query, keys, values, &reader.vector, source.pairs, pass)?;
        let output = part(&read, 0..h)?.contiguous()?;
        let gate = linear(&output, &[&reader.gate], pass)?;
        match reader.fusion {
            Fusion::Shallow => gates = (gates + gate)?,
            Fusion::Deep => {
                let reset = sigmoid(&(part(x, layout.reset())? + gate)?)?;
                added = Some((reset * part(&read, h..2 * h)?)?);
            }
        }
        of_source = Some((weights, output));
    }
    let gate = |i: usize| part(&gates, i * h..(i + 1) * h);
    let (i, f, o) = (
        sigmoid(&gate(0)?)?,
        sigmoid(&gate(1)?)?,
        sigmoid(&gate(3)?)?,
    );
    let mut c = ((f * c_read)? + (i * gate(2)?.tanh()?)?)?;
    if let Some(added) = added {
        c = (c + added)?;
    }
    let output = (o * c.tanh()?)?;
    let key = linear(&output.contiguous()?, &[&layer.key], pass)?;
    let (source, read) = of_source.unzip();
    Ok(TapeStep {
        state: Tensor::cat(&[&output, &c], 1)?,
        key,
        summary,
        read,
        own,
        source,
    })
}

/// What queries read of an empty tape: zeros, and no weights. In training they come from one state of zeros, so that
/// weights have a gradient even if every sentence has a single token.
fn nothing(query: &Tensor, layer: &TapeLayer, pass: &Pass) -> Result<(Tensor, Tensor)> {
    let (k, h) = query.dims2()?;
    let zeros = |width: usize| Tensor::zeros((k, width), query.dtype(), query.device());
    let read = if pass.trains() {
        let each = Segments::packed(vec![1; k]);
        let pairs = Pairs {
            queries: each.clone(),
            keys: each,
        };
        let keys = Shared::new(&linear(&zeros(h)?, &[&layer.key], pass)?, pass)?;
        let states = Shared::new(&zeros(2 * h)?, pass)?;
        attend(query, &keys, &states, &layer.vector, &pairs, pass)?.1
    } else {
        zeros(2 * h)?
    };
    Ok((zeros(0)?, read))
}

/// The weights of the queries, and the weighted sums of the values.
fn attend(
    query: &Tensor,
    keys: &Shared,
    values: &Shared,
    vector: &Weight,
    pairs: &Pairs,
    pass: &Pass,
) -> Result<(Tensor, Tensor)> {
    let scores = additive_scores(
        &query.contiguous()?,
        keys,
        vector,
        AdditiveActivation::Tanh,
        pairs,
        pass,
    )?;
    let counts = pairs.queries.lengths().iter().zip(pairs.keys.lengths());
    let seen = counts.flat_map(|(&queries, &keys)| std::iter::repeat_n(0..keys, queries));
    let weights = softmax(&scores, seen.collect(), pass)?;
    let sums = mix(&weights, values, pairs, pass)?;
    Ok((weights, sums))
}

fn sigmoid(x: &Tensor) -> Result<Tensor> {
    candle_nn::ops::sigmoid(&x.contiguous()?)
}
