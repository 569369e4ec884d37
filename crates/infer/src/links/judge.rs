use super::attention::{WordAligner, links};
use super::{Heads, Link, lexical_links};
use crate::Result;

/// How well the links of some heads agree with the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    pub heads: Heads,
    /// Of their links, how many are in the reference.
    pub precision: f64,
    /// Of the reference's links, how many are theirs.
    pub recall: f64,
    /// The harmonic mean of both.
    pub f1: f64,
}

impl Judged {
    /// The one that agrees best; of equals the first. None if there are none.
    pub fn best(judged: &[Self]) -> Option<Self> {
        let better = |best: Self, it: Self| if it.f1 > best.f1 { it } else { best };
        judged.iter().copied().reduce(better)
    }
}

/// Links that were counted.
#[derive(Clone, Copy, Default)]
struct Counts {
    own: usize,
    reference: usize,
    common: usize,
}

impl Counts {
    fn of(own: &[Link], reference: &[Link]) -> Self {
        let common = own.iter().filter(|link| reference.contains(link));
        Self {
            own: own.len(),
            reference: reference.len(),
            common: common.count(),
        }
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            own: self.own + other.own,
            reference: self.reference + other.reference,
            common: self.common + other.common,
        }
    }

    fn judged(self, heads: Heads) -> Judged {
        let share = |of: usize, common: usize| common as f64 / of.max(1) as f64;
        Judged {
            heads,
            precision: share(self.own, self.common),
            recall: share(self.reference, self.common),
            f1: share(self.own + self.reference, 2 * self.common),
        }
    }
}

impl WordAligner<'_> {
    /// How well every head, and the mean of every layer's heads, agrees with [`lexical_links`] on these texts. In
    /// the order of layers and heads, the mean of a layer after its heads.
    pub fn judge<S: AsRef<str> + Sync>(
        &self,
        source: &[S],
        target: &[S],
        diagonal: f64,
    ) -> Result<Vec<Judged>> {
        let candidates = self.candidates();
        let references = lexical_links(source, target, diagonal);
        let tokenizer = self.tokenizers().target();
        let targets = tokenizer.encode_batch(target)?;
        let pairs = self.each(source.len(), |i| {
            let (source, target) = (source[i].as_ref(), target[i].as_ref());
            let maps = self.word_maps(source, target, &targets[i], |_| true)?;
            let counts = candidates.iter().map(|heads| {
                let own = links(maps.iter().filter(|map| heads.has(map.place)));
                Counts::of(&own, &references[i])
            });
            Ok(counts.collect::<Vec<Counts>>())
        })?;
        let mut sums = vec![Counts::default(); candidates.len()];
        for counts in &pairs {
            let each = sums.iter_mut().zip(counts);
            each.for_each(|(sum, counts)| *sum = sum.plus(counts));
        }
        let judged = sums.into_iter().zip(candidates);
        Ok(judged.map(|(sum, heads)| sum.judged(heads)).collect())
    }

    fn candidates(&self) -> Vec<Heads> {
        let layers = self.places.chunk_by(|a, b| a.0 == b.0);
        let layers = layers.flat_map(|places| {
            let heads = places.iter();
            let heads = heads.map(|&(layer, head)| Heads::One { layer, head });
            // The mean of one head is that head.
            let mean = (places.len() > 1).then(|| Heads::Layer(places[0].0));
            heads.chain(mean).collect::<Vec<Heads>>()
        });
        layers.collect()
    }
}
