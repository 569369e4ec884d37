//! Several ranks, each a thread of this process, train what one trains.

use std::sync::Arc;

use attend_comm::{Comm, Threads};
use attend_model::Kernels;
use attend_train::{Config, ResumeOptions, Run, Start, Stop, train};

use crate::defence::{multiply, one_update};
use crate::history::{reads_pictures, small, systems};
use crate::pictures::captions;
use crate::tiny::{Tiny, compute_with};

/// Runs the same on every rank.
fn on_ranks<T: Send>(ranks: usize, run: impl Fn(Arc<dyn Comm>) -> T + Sync) -> Vec<T> {
    let run = &run;
    std::thread::scope(|scope| {
        let start = |comm| scope.spawn(move || run(Arc::new(comm)));
        let ranks: Vec<_> = Threads::of(ranks).into_iter().map(start).collect();
        let join = |rank: std::thread::ScopedJoinHandle<T>| rank.join().unwrap();
        ranks.into_iter().map(join).collect()
    })
}

fn norm<'a>(values: impl Iterator<Item = &'a f32>) -> f64 {
    values.map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}

fn difference(a: &[Vec<f32>], b: &[Vec<f32>]) -> f64 {
    let both = a.iter().flatten().zip(b.iter().flatten());
    norm(both.map(|(a, b)| a - b).collect::<Vec<_>>().iter())
}

/// The gradient of the first update, summed over ranks.
fn gradient(tiny: &Tiny, ranks: usize) -> Vec<f32> {
    let out = format!("gradient-{ranks}");
    let gradients = on_ranks(ranks, |comm| {
        let mut run = tiny.start_with(&out, &[], compute_with(comm.clone()));
        let mut update = run.next_update().unwrap();
        for micro in 0..update.batches.len() {
            let loss = run.forward(&mut update, micro).unwrap();
            let share = 1.0 / update.tokens as f64;
            loss.backward(share, run.model.weights().params()).unwrap();
        }
        let mut all = Vec::new();
        for param in run.model.weights().params() {
            let mut gradient = vec![0.0; param.value().elem_count()];
            param.read_gradient(0, &mut gradient).unwrap();
            comm.sum(&mut gradient).unwrap();
            all.extend(gradient);
        }
        all
    });
    gradients.into_iter().next().unwrap()
}

#[test]
fn the_gradient_of_the_first_update_is_that_of_one_rank_with_dropout() {
    let tiny = Tiny::new();
    let alone = gradient(&tiny, 1);
    for ranks in 2..=4 {
        let shared = gradient(&tiny, ranks);
        let apart = shared.iter().zip(&alone).map(|(a, b)| a - b);
        let apart = norm(apart.collect::<Vec<_>>().iter()) / norm(alone.iter());
        assert!(apart < 1e-5, "{ranks} ranks: {apart:e}");
    }
}

/// The parameters, except for key biases: their gradient is zero but for rounding errors, of which Adam makes
/// updates as large as any.
fn values(run: &Run) -> Vec<Vec<f32>> {
    let params = run.model.weights().params();
    let params = params.filter(|param| !param.name().ends_with("k_proj.bias"));
    let values = params.map(|param| param.value().flatten_all()?.to_vec1());
    values.collect::<candle_core::Result<_>>().unwrap()
}

/// The parameters before and after a training of 100 steps, of the first rank. All have the same.
fn trained(tiny: &Tiny, ranks: usize, out: &str) -> [Vec<Vec<f32>>; 2] {
    let changes = ["train.steps=100", "train.samples=0"];
    let all = on_ranks(ranks, |comm| {
        let mut run = tiny.start_with(out, &changes, compute_with(comm));
        let before = values(&run);
        train(&mut run, &Stop::default()).unwrap();
        [before, values(&run)]
    });
    assert!(all.iter().all(|one| *one == all[0]), "{ranks} ranks differ");
    all.into_iter().next().unwrap()
}

#[test]
fn a_hundred_updates_follow_one_rank_and_have_the_same_bits_again() {
    let tiny = Tiny::new();
    let [start, alone] = trained(&tiny, 1, "alone");
    for ranks in [2, 3] {
        let (first, second) = (format!("{ranks}-a"), format!("{ranks}-b"));
        let [_, together] = trained(&tiny, ranks, &first);
        let apart = difference(&together, &alone) / difference(&alone, &start);
        assert!(apart < 1e-4, "{ranks} ranks: {apart:e}");
        trained(&tiny, ranks, &second);
        assert!(
            tiny.outcome(&first) == tiny.outcome(&second),
            "{ranks} ranks"
        );
        let log = |run: &str| {
            tiny.log(run)
                .into_iter()
                .map(|line| line.json)
                .collect::<Vec<_>>()
        };
        assert_eq!(log(&first), log(&second), "one rank writes the log");
    }
}

#[test]
fn a_run_resumes_on_any_number_of_ranks_and_sees_each_pair_once_an_epoch() {
    let tiny = Tiny::with_pairs(200);
    let mut seen = Vec::new();
    let mut epochs = 0;
    for (turn, ranks) in [4, 2, 3, 1, 2].into_iter().enumerate() {
        let all = on_ranks(ranks, |comm| {
            let compute = compute_with(comm);
            let mut run = match turn {
                0 => tiny.start_with("run", &["train.accumulate=1"], compute),
                _ => Run::resume(&tiny.path("run"), &ResumeOptions::default(), compute).unwrap(),
            };
            let mut pairs = Vec::new();
            let last = if turn == 4 {
                u64::MAX
            } else {
                run.state.step + 3
            };
            while run.state.step < last && run.state.position.epoch == 0 {
                let update = one_update(&mut run).unwrap();
                let batches = update.batches.iter();
                pairs.extend(batches.flat_map(|micro| micro.batch.pairs.clone()));
            }
            run.save().unwrap();
            (pairs, run.state.position.epoch)
        });
        for (pairs, epoch) in all {
            seen.extend(pairs);
            epochs = epoch;
        }
    }
    assert_eq!(epochs, 1);
    seen.sort();
    let first_epoch: Vec<usize> = (0..200).collect();
    assert_eq!(seen, first_epoch);
}

#[test]
fn a_gradient_that_is_not_a_number_on_one_rank_is_skipped_by_all() {
    let tiny = Tiny::new();
    on_ranks(3, |comm| {
        let rank = comm.rank();
        let run = tiny.start_with("run", &[], compute_with(comm));
        let mut run = match rank {
            1 => multiply(run, f64::NAN, 0..1),
            _ => run,
        };
        let before = values(&run);
        one_update(&mut run).unwrap();
        assert!(
            before == values(&run),
            "rank {rank} has changed its parameters"
        );
        assert_eq!(run.state.health.skipped, 1);
        one_update(&mut run).unwrap();
        assert!(before != values(&run), "the next one is done");
    });
}

#[test]
fn a_batch_of_one_sentence_trains_on_four_ranks() {
    let tiny = Tiny::new();
    let changes = ["data.batch_tokens=1", "train.accumulate=1", "train.steps=5"];
    let all = on_ranks(4, |comm| {
        let mut run = tiny.start_with("run", &changes, compute_with(comm));
        train(&mut run, &Stop::default()).unwrap();
        values(&run)
    });
    assert!(all.iter().all(|one| *one == all[0]));
}

/// What two ranks train is what one trains. Both have the same start.
fn check_two(name: &str, start: impl Fn(&str, Arc<dyn Comm>) -> Run + Sync) {
    let train = |ranks: usize| {
        let all = on_ranks(ranks, |comm| {
            let mut run = start(&format!("{name}-{ranks}"), comm);
            let before = values(&run);
            train(&mut run, &Stop::default()).unwrap();
            [before, values(&run)]
        });
        assert!(all.iter().all(|one| *one == all[0]), "{name}: ranks differ");
        all.into_iter().next().unwrap()
    };
    let ([start, alone], [_, together]) = (train(1), train(2));
    let apart = difference(&together, &alone) / difference(&alone, &start);
    assert!(apart < 1e-3, "{name}: {apart:e}");
}

#[test]
fn every_system_trains_on_two_ranks_what_it_trains_on_one() {
    let (text, pictures) = (Tiny::new(), captions());
    for (name, path) in systems() {
        let config = std::fs::read_to_string(&path).unwrap();
        let mut changes: Vec<String> = small(&config).into_iter().map(String::from).collect();
        let (tiny, sets) = if reads_pictures(&config) {
            let sets = [
                ("train.path", "train.tsv"),
                ("valid.path", "valid.tsv"),
                ("test.path", "valid.tsv"),
            ];
            (&pictures, sets)
        } else {
            (
                &text,
                [("train", "train"), ("valid", "valid"), ("test", "test")],
            )
        };
        changes.extend(sets.map(|(key, file)| format!("data.{key}={}", tiny.path(file).display())));
        check_two(&name, |out, comm| {
            let out = format!("out={}", tiny.path(out).display());
            let config = Config::read(&path, &[&changes[..], &[out]].concat()).unwrap();
            Run::start(config, Start::New, compute_with(comm)).unwrap()
        });
    }
}

#[test]
fn parts_of_batches_frozen_weights_and_regularizers_are_the_same_on_two_ranks() {
    let tiny = Tiny::with_pairs(400);
    let large = ["data.batch_tokens=2000", "train.steps=8"];
    for (name, change) in [
        ("parts", "train.max_memory=131M"),
        ("frozen", "train.freeze=[\"encoder.*\", \"*.fc1.*\"]"),
        ("composed", "train.clip_norm=0.1"),
        ("words", "train.word_dropout=0.2"),
        ("layers", "model.transformer.layer_dropout=0.4"),
        (
            "simcut",
            "train.consistency={ kind = \"simcut\", weight = 3 }",
        ),
    ] {
        let changes = [&large[..], &[change]].concat();
        check_two(name, |out, comm| {
            let mut compute = compute_with(comm);
            if name == "composed" {
                compute.kernels = Kernels::Composed;
            }
            tiny.start_with(out, &changes, compute)
        });
    }
}
