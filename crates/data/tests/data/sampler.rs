use crate::{cleaner, corpus, encoded, numbered};
use attend_data::{
    Batch, Batches, Corpus, CorpusConfig, Dataset, Epoch, Lengths, Mixture, Position,
    TokenizerConfig, Tokenizers,
};
use std::sync::Arc;

const BUDGET: usize = 60;

fn dataset() -> Dataset {
    let corpus = corpus();
    let tokenizers = Tokenizers::train(&TokenizerConfig::default(), &corpus, &()).unwrap();
    Dataset::encode(&corpus, &tokenizers, &cleaner(256)).unwrap()
}

fn mixture(seed: u64) -> Arc<Mixture> {
    Arc::new(Mixture::of(dataset(), seed))
}

/// The batches of an epoch, and the pool of each.
fn epoch(mixture: &Arc<Mixture>, batch_tokens: usize, epoch: u64) -> Vec<(Batch, u64)> {
    let position = Position {
        epoch,
        ..Position::START
    };
    let mut batches = Batches::new(mixture.clone(), batch_tokens, None, position).unwrap();
    let mut all = Vec::new();
    while batches.position().epoch == epoch {
        let pool = batches.position().pool;
        all.push((batches.next_batch(0).unwrap().0, pool));
    }
    assert_eq!(batches.count(0, epoch), all.len() as u64);
    all
}

fn lists(mixture: &Arc<Mixture>, batch_tokens: usize, number: u64) -> Vec<Vec<usize>> {
    let epoch = epoch(mixture, batch_tokens, number);
    epoch.into_iter().map(|(batch, _)| batch.pairs).collect()
}

fn only(mixture: &Mixture) -> &Dataset {
    mixture.datasets().next().unwrap()
}

/// The larger side of a batch, in tokens.
fn size(dataset: &Dataset, pairs: &[usize]) -> usize {
    let tokens = |side: fn(Lengths) -> usize| -> usize {
        pairs.iter().map(|&i| side(dataset.lengths(i))).sum()
    };
    tokens(|l| l.source).max(tokens(|l| l.target))
}

#[test]
fn every_pair_is_in_exactly_one_batch_of_an_epoch() {
    let large = Arc::new(Mixture::of(encoded(&numbered(1537, 9)), 9));
    for (mixture, pairs) in [(mixture(9), 40), (large, 1537)] {
        for budget in [1, 2, 7, 20, BUDGET, 1000, usize::MAX] {
            for epoch in [0, 1, 2, u64::MAX - 1] {
                let mut found = lists(&mixture, budget, epoch).concat();
                found.sort_unstable();
                assert!(found.into_iter().eq(0..pairs), "budget {budget}");
            }
        }
    }
}

#[test]
fn only_a_batch_of_one_pair_exceeds_the_budget() {
    let large = Arc::new(Mixture::of(encoded(&numbered(1537, 30)), 9));
    for mixture in [mixture(9), large] {
        for budget in [1, 15, BUDGET, 200] {
            for pairs in lists(&mixture, budget, 0) {
                let most = size(only(&mixture), &pairs);
                assert!(most <= budget || pairs.len() == 1, "{most} > {budget}");
            }
        }
    }
}

#[test]
fn batches_hold_the_ids_of_their_pairs() {
    let mixture = mixture(9);
    for (batch, _) in epoch(&mixture, BUDGET, 1) {
        let whole = only(&mixture).batch(&batch.pairs).unwrap();
        assert_eq!(batch, whole);
    }
}

#[test]
fn the_order_depends_on_the_seed_and_the_epoch_only() {
    let epoch = |seed, epoch| lists(&mixture(seed), BUDGET, epoch);
    assert_eq!(epoch(1, 5), epoch(1, 5));
    assert_ne!(epoch(1, 5), epoch(1, 6));
    assert_ne!(epoch(1, 5), epoch(2, 5));
    assert_ne!(epoch(1, 0), epoch(0, 1));
}

#[test]
fn batches_hold_different_pairs_in_different_epochs() {
    let mixture = mixture(1);
    let members = |epoch| {
        let mut batches = lists(&mixture, BUDGET, epoch);
        batches.iter_mut().for_each(|batch| batch.sort_unstable());
        batches.sort_unstable();
        batches
    };
    assert_ne!(members(0), members(1));
}

#[test]
fn batches_of_a_pool_hold_pairs_of_similar_lengths() {
    let large = Arc::new(Mixture::of(encoded(&numbered(20_000, 40)), 1));
    for (mixture, budget) in [(mixture(1), BUDGET), (large, 1000)] {
        let dataset = only(&mixture);
        let batches = epoch(&mixture, budget, 0);
        let target = |i: &usize| dataset.lengths(*i).target;
        let longest = |batch: &Batch| batch.pairs.iter().map(target).max().unwrap();
        let padded = |(batch, _): &(Batch, u64)| batch.pairs.len() * longest(batch);
        let padded: usize = batches.iter().map(padded).sum();
        let tokens = dataset.tokens().target;
        assert!(padded < tokens * 5 / 4, "{padded} padded, {tokens} without");
        let mut pools: Vec<u64> = batches.iter().map(|(_, pool)| *pool).collect();
        assert!(pools.is_sorted());
        pools.dedup();
        for pool in pools {
            // No two batches of a pool overlap in their lengths.
            let of_pool = batches.iter().filter(|(_, p)| *p == pool);
            let lengths = |batch: &Batch| {
                let mut lengths: Vec<_> = batch.pairs.iter().map(|&i| dataset.lengths(i)).collect();
                lengths.sort_unstable();
                lengths
            };
            let mut ranges: Vec<_> = of_pool.map(|(batch, _)| lengths(batch)).collect();
            ranges.sort_unstable();
            assert!(ranges.concat().is_sorted());
        }
    }
}

#[test]
fn batches_of_an_epoch_are_about_equally_large() {
    let mixture = Arc::new(Mixture::of(encoded(&numbered(20_000, 40)), 1));
    for budget in [800, 2000, 4096, 30_000, 300_000] {
        for number in [0, 1] {
            let batches = lists(&mixture, budget, number);
            let sizes: Vec<usize> = batches.iter().map(|b| size(only(&mixture), b)).collect();
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(
                batches.len() > 1 && 3 * least >= 2 * most,
                "{budget}: {least} and {most}"
            );
            assert!(2 * most > budget, "{most} of {budget}");
        }
    }
}

#[test]
fn the_length_of_an_epoch_is_known_about_exactly() {
    let mixture = Arc::new(Mixture::of(encoded(&numbered(5000, 20)), 1));
    for budget in [40, 300, 1_000_000] {
        let batches = Batches::new(mixture.clone(), budget, None, Position::START).unwrap();
        let (about, exact) = (batches.epoch_len() as f64, batches.count(0, 0) as f64);
        assert!((about / exact - 1.0).abs() < 0.1, "{about} and {exact}");
    }
}

/// Checkpoints depend on it that the batches are the same on every machine and in every version.
/// The values come from a second implementation, in Python.
#[test]
fn the_order_is_the_same_in_every_version() {
    let repeated = |word: &str, times: &dyn Fn(usize) -> usize, pairs: usize| -> Vec<String> {
        let line = |i| vec![word; 1 + times(i)].join(" ");
        (0..pairs).map(line).collect()
    };
    let side = |pairs| {
        let source = repeated("a", &|i| i * 7 % 5, pairs);
        let target = repeated("b", &|i| i * 3 % 4, pairs);
        Corpus::new(source, target).unwrap()
    };
    let dataset = |pairs, weight| {
        let config = CorpusConfig {
            weight: Some(weight),
            ..Default::default()
        };
        (Arc::new(encoded(&side(pairs))), config)
    };
    let mixture = Mixture::new(vec![dataset(300, 1.0), dataset(40, 2.0)], 42);
    assert_eq!(only(&mixture).fingerprint(), FINGERPRINT);
    let epoch = lists(&Arc::new(mixture), 14, 7);
    assert_eq!(epoch.len(), 134);
    assert_eq!(epoch[..4], FIRST.map(<[usize]>::to_vec));
    assert_eq!(epoch[epoch.len() - 4..], LAST.map(<[usize]>::to_vec));
}
const FIRST: [&[usize]; 4] = [&[93, 321], &[321, 321], &[96, 236, 336], &[107, 307]];
const LAST: [&[usize]; 4] = [&[329, 149], &[312, 312], &[317, 317], &[199, 319]];
const FINGERPRINT: &str = "e1793036a62f3b2cfc01aa2ce1aefdc3e3635f102f5006f2e3fd034e9bc88bc2";

#[test]
fn validation_goes_from_short_to_long_without_randomness() {
    let dataset = dataset();
    let lengths: Vec<Lengths> = (0..dataset.len()).map(|i| dataset.lengths(i)).collect();
    let epoch = Epoch::by_length(&lengths, BUDGET);
    let pairs = epoch.iter().collect::<Vec<_>>().concat();
    assert!(pairs.is_sorted_by_key(|&i| (lengths[i].target, lengths[i].source, i)));
    assert_eq!(pairs.len(), dataset.len());
    assert_eq!(epoch, Epoch::by_length(&lengths, BUDGET));
    assert!(Epoch::by_length(&[], BUDGET).is_empty());
}

#[test]
fn a_position_can_be_saved_and_read() {
    let position = Position {
        epoch: 3,
        index: 14,
        pool: 2,
        stage: 1,
    };
    let json = serde_json::to_string(&position).unwrap();
    assert_eq!(json, r#"{"epoch":3,"index":14,"pool":2,"stage":1}"#);
    assert_eq!(serde_json::from_str::<Position>(&json).unwrap(), position);
    let old: Position = serde_json::from_str(r#"{"epoch":3,"index":14}"#).unwrap();
    assert_eq!((old.pool, old.stage), (0, 0));
}

#[test]
fn a_position_beyond_the_end_of_its_epoch_is_refused() {
    let position = Position {
        index: 1000,
        ..Position::START
    };
    let error = Batches::new(mixture(3), BUDGET, None, position)
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "cannot continue at batch 1000 of pool 0 of epoch 0 in stage 0: there is no such batch"
    );
    assert!(error.hint().unwrap().contains("has changed since"));
}

#[test]
fn batches_of_a_very_long_epoch_are_counted_in_parts() {
    let corpus = CorpusConfig {
        passes: Some(1_000_000),
        ..Default::default()
    };
    let data = Arc::new(encoded(&numbered(500, 20)));
    let batches = |corpus| {
        let mixture = Arc::new(Mixture::new(vec![(data.clone(), corpus)], 1));
        Batches::new(mixture, 300, None, Position::START).unwrap()
    };
    let short = batches(CorpusConfig::default()).count(0, 0) as f64;
    let long = batches(corpus).count(0, 0) as f64;
    assert!((long / short / 1e6 - 1.0).abs() < 0.1, "{long} and {short}");
}
