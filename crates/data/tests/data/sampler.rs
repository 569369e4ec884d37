use crate::corpus;
use attend_data::{
    BatchSampler, Batches, Dataset, Epoch, Error, Keep, Lengths, Position, TokenizerConfig,
    Tokenizers,
};
use std::sync::Arc;

const BUDGET: usize = 60;

fn dataset() -> Dataset {
    let corpus = corpus();
    let tokenizers = Tokenizers::train(&TokenizerConfig::default(), &corpus, &()).unwrap();
    Dataset::encode(&corpus, &tokenizers, Keep::ToTrain { max_length: 256 }, &())
        .unwrap()
        .0
}

fn lists(epoch: &Epoch) -> Vec<Vec<usize>> {
    epoch.iter().map(<[usize]>::to_vec).collect()
}

#[test]
fn every_pair_is_in_exactly_one_batch_of_an_epoch() {
    let dataset = dataset();
    for budget in [1, 20, BUDGET, 1000, usize::MAX] {
        for epoch in 0..4 {
            let mut pairs = lists(&BatchSampler::new(&dataset, budget, 9).epoch(epoch)).concat();
            pairs.sort_unstable();
            assert!(pairs.into_iter().eq(0..dataset.len()), "budget {budget}");
        }
    }
}

#[test]
fn only_a_batch_of_one_pair_exceeds_the_budget() {
    let dataset = dataset();
    for budget in [1, 15, BUDGET, 200] {
        let sampler = BatchSampler::new(&dataset, budget, 9);
        for batch in sampler.epoch(0).iter() {
            let tokens = |side: fn(Lengths) -> usize| {
                batch
                    .iter()
                    .map(|&i| side(dataset.lengths(i)))
                    .sum::<usize>()
            };
            let most = tokens(|l| l.source).max(tokens(|l| l.target));
            assert!(most <= budget || batch.len() == 1, "{most} > {budget}");
        }
    }
}

#[test]
fn the_order_depends_on_the_seed_and_the_epoch_only() {
    let dataset = dataset();
    let epoch = |seed, epoch| lists(&BatchSampler::new(&dataset, BUDGET, seed).epoch(epoch));
    assert_eq!(epoch(1, 5), epoch(1, 5));
    assert_eq!(
        epoch(1, 5),
        lists(&BatchSampler::new(&self::dataset(), BUDGET, 1).epoch(5))
    );
    assert_ne!(epoch(1, 5), epoch(1, 6));
    assert_ne!(epoch(1, 5), epoch(2, 5));
    assert_ne!(epoch(1, 0), epoch(0, 1));
}

#[test]
fn batches_hold_different_pairs_in_different_epochs() {
    let dataset = dataset();
    let members = |epoch| {
        let mut batches = lists(&BatchSampler::new(&dataset, BUDGET, 1).epoch(epoch));
        batches.iter_mut().for_each(|batch| batch.sort_unstable());
        batches.sort_unstable();
        batches
    };
    assert_ne!(members(0), members(1));
}

#[test]
fn batches_hold_pairs_of_similar_lengths() {
    let dataset = dataset();
    let padded = |batches: Vec<Vec<usize>>| -> usize {
        let longest = |b: &Vec<usize>| b.iter().map(|&i| dataset.lengths(i).target).max().unwrap();
        batches.iter().map(|b| b.len() * longest(b)).sum()
    };
    let tokens: usize = (0..dataset.len()).map(|i| dataset.lengths(i).target).sum();
    let sorted = padded(lists(&BatchSampler::new(&dataset, BUDGET, 1).epoch(0)));
    assert!(sorted < tokens * 5 / 4, "{sorted} padded, {tokens} without");
}

/// Checkpoints depend on it that the batches are the same on every machine and in every version.
/// The values come from a second implementation, in Python.
#[test]
fn the_order_is_the_same_in_every_version() {
    let corpus = attend_data::Corpus::new(vec!["a".into(); 8], vec!["b".into(); 8]).unwrap();
    let config = TokenizerConfig {
        kind: attend_data::TokenizerKind::Word,
        ..Default::default()
    };
    let tokenizers = Tokenizers::train(&config, &corpus, &()).unwrap();
    let (dataset, _) =
        Dataset::encode(&corpus, &tokenizers, Keep::ToTrain { max_length: 9 }, &()).unwrap();
    let epoch = lists(&BatchSampler::new(&dataset, 6, 42).epoch(7));
    assert_eq!(epoch, GOLDEN.map(<[usize]>::to_vec));
    assert_eq!(dataset.fingerprint(), FINGERPRINT);
}
const GOLDEN: [&[usize]; 3] = [&[6, 5, 7], &[0, 4], &[1, 3, 2]];
const FINGERPRINT: u64 = 0xea77_3c70_4c86_fcfa;

#[test]
fn validation_goes_from_short_to_long_without_randomness() {
    let dataset = dataset();
    let lengths: Vec<Lengths> = (0..dataset.len()).map(|i| dataset.lengths(i)).collect();
    let epoch = Epoch::by_length(&lengths, BUDGET);
    let pairs = lists(&epoch).concat();
    assert!(pairs.is_sorted_by_key(|&i| (lengths[i].target, lengths[i].source, i)));
    assert_eq!(pairs.len(), dataset.len());
    assert_eq!(epoch, Epoch::by_length(&lengths, BUDGET));
    assert!(Epoch::by_length(&[], BUDGET).is_empty());
}

#[test]
fn starting_at_a_position_equals_iterating_to_it() {
    let dataset = Arc::new(dataset());
    let from = |position| Batches::new(dataset.clone(), BUDGET, 3, position).unwrap();
    let mut whole = from(Position::START);
    let mut visited = Vec::new();
    while whole.position().epoch < 3 {
        let before = whole.position();
        let (batch, after) = whole.next_batch();
        assert_eq!(after, whole.position());
        visited.push((before, batch, after));
    }
    assert!(visited.len() > 10);
    for (before, batch, after) in &visited {
        assert_eq!(from(*before).next_batch(), (batch.clone(), *after));
    }
    for pair in visited.windows(2) {
        assert_eq!(pair[0].2, pair[1].0);
    }
}

#[test]
fn a_position_can_be_saved_and_read() {
    let position = Position {
        epoch: 3,
        index: 14,
    };
    let json = serde_json::to_string(&position).unwrap();
    assert_eq!(json, r#"{"epoch":3,"index":14}"#);
    assert_eq!(serde_json::from_str::<Position>(&json).unwrap(), position);
}

#[test]
fn a_position_beyond_the_end_of_its_epoch_is_refused() {
    let position = Position {
        epoch: 0,
        index: 1000,
    };
    let error = Batches::new(Arc::new(dataset()), BUDGET, 3, position).unwrap_err();
    assert!(matches!(error, Error::Position { .. }));
    let message = error.to_string();
    assert!(message.starts_with("cannot continue at batch 1000 of epoch 0: the epoch has "));
    assert!(error.hint().unwrap().contains("has changed since"));
}
