use std::num::NonZeroUsize;

use attend_infer::Heads;

/// Whose attention links words.
#[derive(Debug, clap::Args)]
pub(super) struct HeadArgs {
    /// Link words by the attention of this decoder layer, counted from 1: the mean of its heads, or --head.
    /// By default, what `infer alignments --choose` chose for the model, else the last layer but one
    #[arg(long, value_name = "L")]
    layer: Option<NonZeroUsize>,

    /// Use only this head of the layer, counted from 1
    #[arg(long, value_name = "H", requires = "layer")]
    head: Option<NonZeroUsize>,
}

impl HeadArgs {
    /// What the options ask for.
    pub(super) fn heads(&self) -> Option<Heads> {
        let layer = self.layer?.get() - 1;
        Some(match self.head {
            Some(head) => Heads::One {
                layer,
                head: head.get() - 1,
            },
            None => Heads::Layer(layer),
        })
    }
}
