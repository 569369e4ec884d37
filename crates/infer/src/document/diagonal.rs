use crate::{AlignWords, Link, Pair, Result};

use super::words::words;

/// Links words at the same relative place: a guess without a model, for models without attention.
#[derive(Clone, Copy, Debug, Default)]
pub struct Diagonal;

impl AlignWords for Diagonal {
    fn links(&self, pairs: &[Pair]) -> Result<Vec<Vec<Link>>> {
        let links = |pair: &Pair| {
            let sources = words(pair.source).len();
            let targets = words(&pair.target.text).len();
            // Every word of the longer side has one link.
            let longer = match (sources, targets) {
                (0, _) | (_, 0) => 0,
                _ => sources.max(targets),
            };
            let mut links: Vec<Link> = (0..longer)
                .map(|at| Link {
                    source: at * sources / longer,
                    target: at * targets / longer,
                })
                .collect();
            links.dedup();
            links
        };
        Ok(pairs.iter().map(links).collect())
    }
}
