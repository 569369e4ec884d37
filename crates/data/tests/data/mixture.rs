use crate::{encoded, numbered};
use attend_data::{Batches, CorpusConfig, Dataset, Error, Mixture, Position};
use std::collections::BTreeMap;
use std::sync::Arc;

fn weight(weight: f64) -> CorpusConfig {
    CorpusConfig {
        weight: Some(weight),
        ..Default::default()
    }
}

fn passes(passes: u64) -> CorpusConfig {
    CorpusConfig {
        passes: Some(passes),
        ..Default::default()
    }
}

fn steps(from_step: Option<u64>, until_step: Option<u64>) -> CorpusConfig {
    CorpusConfig {
        from_step,
        until_step,
        ..Default::default()
    }
}

fn mix<const N: usize>(corpora: [(usize, CorpusConfig); N], seed: u64) -> Arc<Mixture> {
    let corpora = corpora.into_iter().map(|(pairs, config)| {
        let dataset: Dataset = encoded(&numbered(pairs, 9));
        (Arc::new(dataset), config)
    });
    Arc::new(Mixture::new(corpora.collect(), seed))
}

/// The pairs of an epoch of the first stage, in the order of the batches.
fn epoch(mixture: &Arc<Mixture>, batch_tokens: usize, epoch: u64) -> Vec<usize> {
    let position = Position {
        epoch,
        ..Position::START
    };
    let mut batches = Batches::new(mixture.clone(), batch_tokens, None, position).unwrap();
    let mut pairs = Vec::new();
    while batches.position().epoch == epoch {
        pairs.extend(batches.next_batch(0).unwrap().0.pairs);
    }
    pairs
}

fn counts(pairs: &[usize]) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    pairs
        .iter()
        .for_each(|pair| *counts.entry(*pair).or_default() += 1);
    counts
}

/// How many of these pairs are of the corpus with this number.
fn share(mixture: &Mixture, pairs: &[usize], corpus: usize) -> usize {
    let of = |pair: &usize| mixture.find(*pair).unwrap().0 == corpus;
    pairs.iter().filter(|pair| of(pair)).count()
}

#[test]
fn without_weights_every_pair_is_in_an_epoch_as_often_as_the_passes_say() {
    let mixture = mix(
        [
            (100, passes(1)),
            (7, passes(5)),
            (31, CorpusConfig::default()),
        ],
        3,
    );
    assert_eq!(mixture.epoch_pairs(0), 166);
    for number in [0, 1, 17] {
        for (pair, count) in counts(&epoch(&mixture, 60, number)) {
            let expected = if mixture.find(pair).unwrap().0 == 1 {
                5
            } else {
                1
            };
            assert_eq!(count, expected, "pair {pair}");
        }
        assert_eq!(counts(&epoch(&mixture, 60, number)).len(), 138);
    }
}

#[test]
fn pairs_are_numbered_through_all_corpora() {
    let mixture = mix([(5, passes(1)), (3, passes(1))], 3);
    let found: Vec<_> = (0..9).map(|number| mixture.find(number)).collect();
    let first = (0..5).map(|pair| Some((0, pair)));
    let second = (0..3).map(|pair| Some((1, pair)));
    assert!(found.into_iter().eq(first.chain(second).chain([None])));
    let (batch, _) = Batches::new(mixture.clone(), 9999, None, Position::START)
        .unwrap()
        .next_batch(0)
        .unwrap();
    for (k, &number) in batch.pairs.iter().enumerate() {
        let (corpus, pair) = mixture.find(number).unwrap();
        let dataset = mixture.datasets().nth(corpus).unwrap();
        assert_eq!(batch.target.sentence(k), dataset.ids(pair).unwrap().1);
    }
}

#[test]
fn weights_are_the_shares_of_an_epoch_and_of_its_parts() {
    let mixture = mix([(1000, weight(3.0)), (3000, weight(1.0))], 3);
    assert_eq!(mixture.epoch_pairs(0), 4000);
    // Batches of a pool come in random order, so a part is of whole pools.
    let pairs = epoch(&mixture, 16, 2);
    assert_eq!(pairs.len(), 4000);
    assert_eq!(share(&mixture, &pairs, 0), 3000);
    for part in pairs.chunks(400) {
        let share = share(&mixture, part, 0) as f64 / part.len() as f64;
        assert!((share - 0.75).abs() < 0.08, "{share}"); // 3.7 standard deviations
    }
}

#[test]
fn a_corpus_is_gone_through_evenly_whatever_its_share() {
    // 5 pairs with nine times the weight of 995: 900 of 1000 pairs of an epoch are these.
    let mixture = mix([(995, weight(1.0)), (5, weight(9.0))], 3);
    let mut total = BTreeMap::new();
    for number in 0..21 {
        let epoch = counts(&epoch(&mixture, 200, number));
        for (pair, count) in &epoch {
            *total.entry(*pair).or_insert(0) += count;
        }
        let of_small = epoch.range(995..).map(|(_, count)| *count);
        assert!(of_small.clone().all(|count| count == 180));
        assert!(epoch.range(..995).all(|(_, count)| *count == 1));
    }
    assert_eq!(total.len(), 1000);
    let drawn: Vec<usize> = total.range(..995).map(|(_, count)| *count).collect();
    assert_eq!(drawn.iter().sum::<usize>(), 2100);
    assert!(drawn.iter().all(|count| [2, 3].contains(count)));

    let mixture = mix([(7, weight(1.0)), (13, weight(1.0))], 3); // parts that are no multiple of the pairs
    let mut total = BTreeMap::new();
    for number in 0..50 {
        for pair in epoch(&mixture, 200, number) {
            *total.entry(pair).or_insert(0) += 1;
        }
    }
    assert!(total.range(..7).all(|(_, count)| [71, 72].contains(count)));
    assert!(total.range(7..).all(|(_, count)| [38, 39].contains(count)));
}

#[test]
fn each_pass_has_a_new_order() {
    let mixture = mix([(20, weight(1.0)), (20, weight(1.0))], 3);
    // With equal lengths the order within a batch is that of the epoch.
    let order = |number| epoch(&mixture, 1, number);
    assert_ne!(order(0), order(1));
    assert_eq!(order(1), order(1));
}

#[test]
fn a_tiny_weight_still_draws_a_pair() {
    let mixture = mix(
        [(50, weight(1.0)), (50, weight(1e-6)), (50, weight(1e-300))],
        3,
    );
    let mut drawn = BTreeMap::new();
    for number in 0..50 {
        let pairs = epoch(&mixture, 60, number);
        assert_eq!(share(&mixture, &pairs, 1), 1);
        assert_eq!(share(&mixture, &pairs, 2), 1);
        for pair in pairs.into_iter().filter(|pair| *pair >= 50) {
            *drawn.entry(pair).or_insert(0) += 1;
        }
    }
    assert_eq!(drawn.len(), 100); // over the epochs, each of its pairs
}

#[test]
fn the_order_depends_on_the_seed() {
    let of = |seed| epoch(&mix([(100, weight(2.0)), (50, weight(1.0))], seed), 60, 4);
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
    assert_eq!(
        counts(&of(1)).len(),
        150 - 50 + counts(&of(1)).range(100..).count()
    );
}

#[test]
fn corpora_are_used_from_and_until_their_steps() {
    let mixture = mix(
        [
            (20, steps(None, Some(5))),
            (20, steps(Some(3), None)),
            (20, steps(Some(8), Some(11))),
        ],
        3,
    );
    assert_eq!(mixture.stages(), 5); // from 0, 3, 5, 8 and 11
    let stages: Vec<u64> = (0..13).map(|step| mixture.stage_at(step)).collect();
    assert_eq!(stages, [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4]);
    assert_eq!(mixture.stage_at(u64::MAX), 4);
    let mut batches = Batches::new(mixture.clone(), 40, None, Position::START).unwrap();
    let used: [&[usize]; 5] = [&[0], &[0, 1], &[1], &[1, 2], &[1]];
    for step in 0..40 {
        let before = batches.position();
        let stage = mixture.stage_at(step);
        let (batch, after) = batches.next_batch(step).unwrap();
        for pair in batch.pairs {
            let (corpus, _) = mixture.find(pair).unwrap();
            assert!(used[stage as usize].contains(&corpus), "step {step}");
        }
        assert_eq!(after.stage, stage);
        if before.stage != stage {
            assert!(after.epoch > before.epoch); // a stage begins with a new epoch
            assert_eq!((after.pool, after.index), (0, 1));
        }
    }
    assert!(batches.position().epoch > 6); // stage by stage, and some that were complete
}

#[test]
fn an_epoch_that_has_not_begun_is_not_ended_by_a_new_stage() {
    let mixture = mix([(5, steps(None, Some(2))), (5, steps(Some(2), None))], 3);
    let mut batches = Batches::new(mixture, 9999, None, Position::START).unwrap();
    for step in 0..5 {
        assert_eq!(batches.position().epoch, step); // one batch is an epoch
        batches.next_batch(step).unwrap();
    }
}

#[test]
fn training_goes_on_from_any_position_with_the_same_batches() {
    let stages = [
        (
            60,
            CorpusConfig {
                until_step: Some(40),
                ..weight(2.0)
            },
        ),
        (
            25,
            CorpusConfig {
                from_step: Some(17),
                ..weight(1.5)
            },
        ),
        (
            11,
            CorpusConfig {
                from_step: Some(71),
                ..weight(3.0)
            },
        ),
        (90, weight(0.7)),
    ];
    let mixture = mix(stages, 5);
    for batch_tokens in [4, 60] {
        let from = |position| Batches::new(mixture.clone(), batch_tokens, None, position).unwrap();
        let mut whole = from(Position::START);
        let mut visited = Vec::new();
        for step in 0..400 {
            let before = whole.position();
            let (batch, after) = whole.next_batch(step).unwrap();
            assert_eq!(after, whole.position());
            visited.push((before, batch, after));
        }
        let last = whole.position();
        assert_eq!(last.stage, 3);
        assert!(last.epoch > 3, "{last:?}");
        let pools = visited
            .iter()
            .map(|(before, ..)| before.pool)
            .max()
            .unwrap();
        assert_eq!(pools > 0, batch_tokens == 4);
        for (step, (before, batch, after)) in visited.iter().enumerate() {
            let mut resumed = from(*before);
            let next = resumed.next_batch(step as u64).unwrap();
            assert_eq!(next, (batch.clone(), *after), "step {step}");
            if let Some((_, batch, after)) = visited.get(step + 1) {
                let next = resumed.next_batch(step as u64 + 1).unwrap();
                assert_eq!(next, (batch.clone(), *after));
            }
        }
    }
}

#[test]
fn positions_that_do_not_exist_are_errors() {
    let mixture = mix([(100, steps(None, None)), (100, steps(Some(9), None))], 3);
    let at = |position| Batches::new(mixture.clone(), 8, None, position);
    let start = Position::START;
    let mut last = start;
    while at(Position {
        pool: last.pool + 1,
        ..start
    })
    .is_ok()
    {
        last.pool += 1;
    }
    while at(Position {
        index: last.index + 1,
        ..last
    })
    .is_ok()
    {
        last.index += 1;
    }
    assert!(last.pool > 0 && last.index > 0, "{last:?}");
    let (_, next) = at(last).unwrap().next_batch(0).unwrap();
    assert_eq!(next, start.next_epoch());
    assert!(
        at(Position {
            epoch: u64::MAX,
            stage: 1,
            ..start
        })
        .is_ok()
    );
    for position in [
        Position {
            index: 1000,
            ..start
        },
        Position {
            index: u64::MAX,
            ..start
        },
        Position {
            pool: last.pool + 1,
            ..start
        },
        Position {
            pool: u64::MAX,
            ..start
        },
        Position { stage: 2, ..start },
        Position {
            stage: u64::MAX,
            ..start
        },
    ] {
        let error = at(position).err().unwrap();
        assert!(matches!(error, Error::Position { .. }), "{error}");
        assert!(error.hint().unwrap().contains("has changed since"));
    }
}

#[test]
fn an_epoch_that_is_long_is_entered_at_its_end_without_listing_it() {
    let mixture = mix([(20_000, passes(50))], 3); // a million pairs
    assert_eq!(mixture.epoch_pairs(0), 1_000_000);
    let at = |position| Batches::new(mixture.clone(), 2048, None, position);
    let mut position = Position {
        epoch: 3,
        ..Position::START
    };
    while at(Position {
        pool: position.pool + 1,
        ..position
    })
    .is_ok()
    {
        position.pool += 1;
    }
    assert!(position.pool > 10, "{position:?}");
    let mut batches = at(position).unwrap();
    let (mut last, mut before) = (None, position);
    while batches.position().epoch == 3 {
        before = batches.position();
        last = Some(batches.next_batch(0).unwrap());
    }
    assert!(before.index > 10, "{before:?}");
    let resumed = at(before).unwrap().next_batch(0).unwrap();
    assert_eq!(Some(resumed), last);
}

#[test]
fn the_fingerprint_differs_for_another_mixture() {
    let print = |a: CorpusConfig, b: CorpusConfig| mix([(10, a), (9, b)], 3).fingerprint();
    let prints = [
        print(weight(1.0), weight(2.0)),
        print(weight(2.0), weight(1.0)),
        print(passes(1), passes(2)),
        print(steps(None, Some(3)), passes(1)),
        print(steps(Some(3), None), passes(1)),
        mix([(9, weight(2.0)), (10, weight(1.0))], 3).fingerprint(),
    ];
    for (i, one) in prints.iter().enumerate() {
        assert!(prints[..i].iter().all(|other| other != one), "{i}");
    }
    assert_eq!(print(weight(1.0), weight(2.0)), prints[0]);
}
