use std::sync::Arc;

use attend_model::Kernels;

use crate::{AlignWords, Engine, Heads, Hypothesis, Link, Models, Pair, Result, WordAligner};

/// Links words by a model whose engine others ask, too.
pub(super) struct SharedAligner<'a> {
    pub(super) engine: &'a Engine,
    pub(super) models: Arc<Models>,
    pub(super) heads: Option<Heads>,
    pub(super) kernels: Kernels,
}

impl AlignWords for SharedAligner<'_> {
    fn links(&self, pairs: &[Pair]) -> Result<Vec<Vec<Link>>> {
        let pairs = pairs.iter();
        let pairs = pairs.map(|pair| (pair.source.to_string(), pair.target.clone()));
        let pairs: Vec<(String, Hypothesis)> = pairs.collect();
        let (models, heads, kernels) = (self.models.clone(), self.heads, self.kernels);
        self.engine.call(move || {
            let model = &*models.ensemble.members()[0];
            let aligner = WordAligner::new(model, &models.tokenizers, heads, kernels)?;
            let pairs = pairs.iter();
            let pairs = pairs.map(|(source, target)| Pair { source, target });
            aligner.links(&pairs.collect::<Vec<_>>())
        })?
    }
}
