use attend_ops::{Activation, Dropout, Linear, Pass, beside, linear_activated};
use candle_core::{Result, Tensor};

use super::attention_config::{AttentionConfig, Order};
use crate::attention::{Align, Attention, Context, Score};
use crate::params::Init;

/// The attention, and how the decoder uses it.
pub(crate) struct Looking {
    pub(super) order: Order,
    /// Whether what a step makes of its context is fed into the next.
    pub(super) feeds: bool,
    pub(crate) attention: Attention,
    combine: Linear,
}

impl Looking {
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
            score: Score::new(config.score(), &score, h, config.positions(), init)?,
            align: Align::new(config.align, &align, h, config.window(), init)?,
            context: Context::new(config.context, &context, config.hard(), init)?,
            gate: match config.gate {
                true => Some(init.linear(&format!("{name}.gate"), h, 1)?),
                false => None,
            },
        };
        let combine = "model.decoder.combine";
        Ok(Self {
            order: config.order,
            feeds: config.feeds(),
            attention,
            combine: match config.order {
                Order::Bahdanau => init.linear(combine, 2 * h + e, h)?,
                Order::Luong => init.matrix(combine, 2 * h, h)?,
            },
        })
    }

    /// Whether the attention of a step goes into a step.
    pub(super) fn is_fed(&self) -> bool {
        self.order == Order::Bahdanau || self.feeds
    }

    /// tanh(W [parts])
    pub(super) fn combine(&self, parts: &[&Tensor], pass: &Pass) -> Result<Tensor> {
        let (first, rest) = (parts[0].clone(), &parts[1..]);
        let all = rest
            .iter()
            .try_fold(first, |all, part| beside(&all, part, pass))?;
        linear_activated(&all, &self.combine, Activation::Tanh, Dropout::NONE, pass)
    }
}
