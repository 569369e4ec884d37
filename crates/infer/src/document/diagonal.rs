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
            // The word of a side that the middle of the longer side's word is in.
            let word = |at: usize, words: usize| (2 * at + 1) * words / (2 * longer);
            let link = |at| Link {
                source: word(at, sources),
                target: word(at, targets),
            };
            (0..longer).map(link).collect()
        };
        Ok(pairs.iter().map(links).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hypothesis;

    #[test]
    fn every_word_of_the_longer_side_has_one_link() {
        let links = |source: &str, target: &str| {
            let target = &Hypothesis {
                text: target.into(),
                tokens: Vec::new(),
                score: 0.0,
            };
            let links = Diagonal
                .links(&[Pair { source, target }])
                .unwrap()
                .remove(0);
            let links = links.iter().map(|link| (link.source, link.target));
            links.collect::<Vec<_>>()
        };
        assert_eq!(links("a b", "c d"), [(0, 0), (1, 1)]);
        assert_eq!(links("a b c", "d"), [(0, 0), (1, 0), (2, 0)]);
        assert_eq!(links("a", "d e"), [(0, 0), (0, 1)]);
        assert_eq!(links("a b c d", "e f g"), [(0, 0), (1, 1), (2, 1), (3, 2)]);
        assert!(links("", "d").is_empty() && links("a", " ").is_empty());
    }
}
