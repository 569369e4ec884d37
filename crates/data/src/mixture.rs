//! Several corpora as one: which pair comes when.
//!
//! Everything here is a pure function of the seed, the corpora and a place in training. Nothing is listed, so that
//! the memory does not depend on the number of pairs.

use crate::config::stage_starts;
use crate::hash::Hasher;
use crate::permutation::Permutation;
use crate::random::Draws;
use crate::{CorpusConfig, Dataset, Lengths};
use attend_batch::SourceShape;
use std::sync::Arc;

/// The streams of random numbers.
const EPOCH: u64 = 0;
const CORPUS: u64 = 1;

/// The corpora of a training, with their shares.
pub struct Mixture {
    corpora: Vec<(Arc<Dataset>, CorpusConfig)>,
    stages: Vec<Stage>,
    seed: u64,
}

/// A part of training in which the same corpora are used.
struct Stage {
    /// Its first step.
    start: u64,
    /// The corpora in use: each one's number, and how many pairs of it and of those before it are in an epoch.
    parts: Vec<(usize, u64)>,
}

/// A pair of a mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) corpus: usize,
    pub(crate) pair: usize,
}

impl Mixture {
    /// Corpora with their shares. There is at least one, and at least one at each step.
    pub fn new(corpora: Vec<(Arc<Dataset>, CorpusConfig)>, seed: u64) -> Self {
        let configs: Vec<CorpusConfig> = corpora.iter().map(|(_, config)| config.clone()).collect();
        let stages = stage_starts(&configs).into_iter();
        Self {
            stages: stages.map(|start| Stage::new(start, &corpora)).collect(),
            corpora,
            seed,
        }
    }

    /// One corpus, each pair of which is in every epoch once.
    pub fn of(dataset: Dataset, seed: u64) -> Self {
        Self::new(vec![(dataset.into(), CorpusConfig::default())], seed)
    }

    /// The corpora.
    pub fn datasets(&self) -> impl Iterator<Item = &Dataset> {
        self.corpora.iter().map(|(dataset, _)| &**dataset)
    }

    /// What the sources are. All corpora have the same.
    pub(crate) fn source(&self) -> SourceShape {
        let first = self.datasets().next();
        first.map(Dataset::source).unwrap_or_default()
    }

    /// The stage at a step, counted from 0.
    pub fn stage_at(&self, step: u64) -> u64 {
        let started = self.stages.partition_point(|stage| stage.start <= step);
        started.saturating_sub(1) as u64
    }

    /// The first step of a stage.
    pub fn stage_start(&self, stage: u64) -> u64 {
        self.stages[stage as usize].start
    }

    /// The number of stages.
    pub fn stages(&self) -> u64 {
        self.stages.len() as u64
    }

    /// How many pairs an epoch of a stage has.
    pub fn epoch_pairs(&self, stage: u64) -> u64 {
        self.stages[stage as usize].pairs()
    }

    /// The mean number of tokens of a pair in this stage, on the longer side.
    pub(crate) fn mean_length(&self, stage: u64) -> f64 {
        let stage = &self.stages[stage as usize];
        let mut before = 0;
        let (mut source, mut target) = (0.0, 0.0);
        for &(corpus, end) in &stage.parts {
            let dataset = &self.corpora[corpus].0;
            let share = (end - before) as f64 / dataset.len() as f64;
            before = end;
            source += share * dataset.tokens().source as f64;
            target += share * dataset.tokens().target as f64;
        }
        source.max(target) / stage.pairs() as f64
    }

    /// The order of an epoch.
    pub(crate) fn epoch(&self, stage: u64, epoch: u64) -> EpochOrder<'_> {
        let draws = Draws::new(self.seed, [EPOCH, stage, epoch]);
        EpochOrder {
            mixture: self,
            stage: &self.stages[stage as usize],
            epoch,
            order: Permutation::new(self.epoch_pairs(stage), draws),
        }
    }

    pub(crate) fn dataset(&self, corpus: usize) -> &Dataset {
        &self.corpora[corpus].0
    }

    pub(crate) fn lengths(&self, place: Place) -> Lengths {
        self.dataset(place.corpus).lengths(place.pair)
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The number of a pair, counting through all corpora.
    pub(crate) fn number(&self, place: Place) -> usize {
        let before = self.datasets().take(place.corpus).map(Dataset::len);
        before.sum::<usize>() + place.pair
    }

    /// The corpus of the pair with this number, and its place there.
    pub fn find(&self, mut number: usize) -> Option<(usize, usize)> {
        for (corpus, dataset) in self.datasets().enumerate() {
            if number < dataset.len() {
                return Some((corpus, number));
            }
            number -= dataset.len();
        }
        None
    }

    /// A hash of all pairs and of how they are mixed.
    pub fn fingerprint(&self) -> String {
        let mut hash = Hasher::new("mixture");
        for (dataset, config) in &self.corpora {
            hash.add(dataset.fingerprint().as_bytes());
            let CorpusConfig {
                weight,
                passes,
                from_step,
                until_step,
                ..
            } = config;
            let shares = format!("{weight:?} {passes:?} {from_step:?} {until_step:?}");
            hash.add(shares.as_bytes());
        }
        hash.finish()
    }
}

impl Stage {
    fn new(start: u64, corpora: &[(Arc<Dataset>, CorpusConfig)]) -> Self {
        let used = corpora.iter().enumerate();
        let used = used.filter(|(_, (_, config))| config.is_used_at(start));
        let used: Vec<_> = used.collect();
        let pairs: f64 = used.iter().map(|(_, (data, _))| data.len() as f64).sum();
        let weights: f64 = used
            .iter()
            .filter_map(|(_, (_, config))| config.weight)
            .sum();
        let mut end = 0;
        let parts = used.into_iter().map(|(corpus, (dataset, config))| {
            end += match config.weight {
                Some(weight) => ((pairs * weight / weights).round() as u64).max(1),
                None => dataset.len() as u64 * config.passes.unwrap_or(1),
            };
            (corpus, end)
        });
        Self {
            parts: parts.collect(),
            start,
        }
    }

    fn pairs(&self) -> u64 {
        self.parts.last().map_or(0, |(_, end)| *end)
    }
}

/// The pairs of one epoch in their order.
pub(crate) struct EpochOrder<'a> {
    mixture: &'a Mixture,
    stage: &'a Stage,
    epoch: u64,
    order: Permutation,
}

impl EpochOrder<'_> {
    /// The pair at place `i` of the epoch.
    ///
    /// A corpus is gone through again and again, each time in a new order. An epoch takes the next
    /// part of that, and mixes the parts of all corpora.
    pub(crate) fn at(&self, i: u64) -> Place {
        let drawn = self.order.at(i);
        let part = self.stage.parts.partition_point(|(_, end)| *end <= drawn);
        let (corpus, end) = self.stage.parts[part];
        let start = part
            .checked_sub(1)
            .map_or(0, |before| self.stage.parts[before].1);
        let pairs = self.mixture.dataset(corpus).len() as u64;
        let before = u128::from(self.epoch) * u128::from(end - start);
        let place = before + u128::from(drawn - start);
        let (pass, within) = (place / u128::from(pairs), place % u128::from(pairs));
        let draws = Draws::new(self.mixture.seed, [CORPUS, corpus as u64, pass as u64]);
        let pair = Permutation::new(pairs, draws).at(within as u64);
        Place {
            corpus,
            pair: pair as usize,
        }
    }
}
