use attend_batch::Segments;
use attend_ops::{
    Activation, Cell, Linear, Pairs, Pass, RowDropout, Shared, linear_activated, mix,
};
use candle_core::{Result, Tensor};

use super::config::RecurrentConfig;
use crate::weights::Init;

/// The states that a decoder starts from if no recurrent encoder has any: of each layer tanh(W ā + b), where ā is
/// the mean of the annotation vectors (Xu et al. 2015, §3.1.2). For an LSTM, that is its output and its cell.
pub(crate) struct Start {
    /// One for each layer of the decoder.
    layers: Vec<Linear>,
}

impl Start {
    pub(crate) fn new(config: &RecurrentConfig, init: &mut Init) -> Result<Self> {
        let h = config.d_hidden;
        let states = Cell::from(config.cell).state_width(h);
        let layer = |n| init.linear(&format!("model.decoder.start.{n}"), h, states);
        let layers = (0..config.decoder_layers).map(layer);
        Ok(Self {
            layers: layers.collect::<Result<_>>()?,
        })
    }

    /// Of annotation vectors `[n, h]`, the state of each layer, `[b, S]`.
    pub(crate) fn states(
        &self,
        vectors: &Tensor,
        segments: &Segments,
        pass: &Pass,
    ) -> Result<Vec<Tensor>> {
        let mean = mean(vectors, segments, pass)?;
        let none = &RowDropout::NONE;
        let state = |layer| linear_activated(&mean, layer, Activation::Tanh, none, pass);
        self.layers.iter().map(state).collect()
    }
}

/// The mean of the rows of each sequence, `[b, h]`.
fn mean(x: &Tensor, segments: &Segments, pass: &Pass) -> Result<Tensor> {
    let (count, longest) = (segments.count(), segments.longest());
    let mut weights = vec![0f32; count * longest];
    let rows = weights.chunks_exact_mut(longest.max(1));
    for (row, &length) in rows.zip(segments.lengths()) {
        row[..length].fill(1.0 / length as f32);
    }
    let weights = Tensor::from_vec(weights, (count, longest), x.device())?;
    let pairs = Pairs {
        queries: segments.with_lengths(std::iter::repeat_n(1, count)),
        keys: segments.clone(),
    };
    mix(&weights, &Shared::new(x, pass)?, &pairs, pass)
}
