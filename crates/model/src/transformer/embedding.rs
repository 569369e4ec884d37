use attend_batch::Segments;
use attend_ops::{DropoutSite, EmbeddingDropout, Pass, Weight, embed};
use candle_core::{Result, Tensor};

use super::config::TransformerConfig;
use super::position::Positions;
use crate::weights::Init;

/// The words of one side, with their positions.
pub(super) struct Embedding {
    pub(super) table: Weight,
    drop: DropoutSite,
    positions: Positions,
}

impl Embedding {
    /// `side` is `encoder` or `decoder`.
    pub(super) fn new(table: Weight, side: &str, config: &TransformerConfig, init: &Init) -> Self {
        Self {
            table,
            drop: DropoutSite::new(config.dropout, &format!("model.{side}.embed_tokens")),
            positions: Positions::new(config.d_model, init.device),
        }
    }

    /// Embeddings times √d, plus positions, then dropout (§3.4, §3.5, §5.4).
    pub(super) fn embed(&self, ids: &[u32], sentences: &Segments, pass: &Pass) -> Result<Tensor> {
        let places = self.positions.upto(sentences.longest())?;
        let dropout = self.drop.of_embeddings(sentences, pass);
        let positions = sentences.positions();
        embed(&self.table, ids, &places, &positions, &dropout, pass)
    }

    /// The same of one token for each row of a decoding step, without dropout.
    pub(super) fn embed_step(&self, ids: &[u32], positions: &[u32], pass: &Pass) -> Result<Tensor> {
        let longest = positions.iter().max().map_or(0, |&last| last as usize + 1);
        let places = self.positions.upto(longest)?;
        let none = EmbeddingDropout::NONE;
        embed(&self.table, ids, &places, positions, &none, pass)
    }
}
