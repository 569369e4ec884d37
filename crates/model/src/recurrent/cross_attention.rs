use attend_ops::{Activation, Linear, Pass, RowDropout, beside, linear_activated};
use candle_core::{Result, Tensor};

use super::attention_config::{AttentionConfig, AttentionOrder};
use crate::attention::{Align, Attention, Context, Score};
use crate::weights::Init;

/// The decoder's attention to the source, and how its context is combined with the decoder's state.
pub(crate) struct CrossAttention {
    pub(super) order: AttentionOrder,
    /// Whether the combined state of a step is an input of the next step (Luong's input feeding).
    pub(super) feeds: bool,
    pub(crate) attention: Attention,
    /// W in [`CrossAttention::combine`].
    combine: Linear,
}

impl CrossAttention {
    pub(super) fn new(
        config: &AttentionConfig,
        e: usize,
        h: usize,
        init: &mut Init,
    ) -> Result<Self> {
        let name = "model.decoder.attention";
        let score = format!("{name}.score");
        let align = format!("{name}.align");
        let context = format!("{name}.context");
        let attention = Attention {
            score: Score::new(config.score(), &score, h, config.score_options(), init)?,
            align: Align::new(
                config.align,
                &align,
                h,
                config.window(),
                config.deviation(),
                init,
            )?,
            context: Context::new(config.context, &context, config.hard(), init)?,
            gate: if config.gate {
                Some(init.linear(&format!("{name}.gate"), h, 1)?)
            } else {
                None
            },
        };
        let combine = "model.decoder.combine";
        Ok(Self {
            order: config.order,
            feeds: config.feeds(),
            attention,
            combine: match config.order {
                AttentionOrder::Bahdanau => init.linear(combine, 2 * h + e, h)?,
                AttentionOrder::Luong => init.matrix(combine, 2 * h, h)?,
            },
        })
    }

    /// Whether recurrent steps have an attention's output as an input: in Bahdanau's order the context of the
    /// same step, with Luong's input feeding the combined state of the previous step.
    pub(super) fn is_fed(&self) -> bool {
        self.order == AttentionOrder::Bahdanau || self.feeds
    }

    /// tanh(W [parts]), where the parts are concatenated. In Bahdanau's order W has a bias.
    pub(super) fn combine(&self, parts: &[&Tensor], pass: &Pass) -> Result<Tensor> {
        combined(parts, &self.combine, pass)
    }
}

/// tanh(W [parts]), where the parts are concatenated.
pub(super) fn combined(parts: &[&Tensor], matrix: &Linear, pass: &Pass) -> Result<Tensor> {
    let (first, rest) = (parts[0].clone(), &parts[1..]);
    let all = rest
        .iter()
        .try_fold(first, |all, part| beside(&all, part, pass))?;
    linear_activated(&all, matrix, Activation::Tanh, &RowDropout::NONE, pass)
}
