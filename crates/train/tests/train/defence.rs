//! Training defends itself: against numbers that are not finite, and against too large batches.

use std::sync::atomic::{AtomicUsize, Ordering};

use attend_batch::{Packed, Source};
use attend_model::{
    AttentionMap, DecoderState, Encode, Kernels, Memory, Output, Pass, Seq2Seq, Step, Train,
    Weights,
};
use attend_ops::Linear;
use attend_train::{Ending, Run, Stop, Update, train};
use candle_core::Result;

use crate::tiny::{Tiny, values};

/// A model whose hidden states are multiplied, as by NaN, in some of its forward passes of training.
struct Poisoned {
    model: Box<dyn Seq2Seq>,
    factor: f64,
    passes: AtomicUsize,
    bad: std::ops::Range<usize>,
}

impl Encode for Poisoned {
    fn encode(&self, source: &Source, pass: &Pass) -> Result<Memory> {
        self.model.encode(source, pass)
    }
}

impl Train for Poisoned {
    fn weights(&self) -> &Weights {
        self.model.weights()
    }

    fn decode(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Output> {
        let mut output = self.model.decode(memory, target, pass)?;
        if pass.trains() {
            let number = self.passes.fetch_add(1, Ordering::Relaxed);
            if self.bad.contains(&number) {
                output.hidden = output.hidden.affine(self.factor, 0.0)?;
            }
        }
        Ok(output)
    }

    fn output(&self) -> &Linear {
        self.model.output()
    }

    fn attention(
        &self,
        source: &Source,
        target: &Packed,
        kernels: Kernels,
    ) -> Result<Vec<AttentionMap>> {
        self.model.attention(source, target, kernels)
    }
}

impl Step for Poisoned {
    fn start_token(&self) -> u32 {
        self.model.start_token()
    }

    fn start<'a>(
        &'a self,
        memory: &Memory,
        beams: usize,
        pass: &Pass,
    ) -> Result<Box<dyn DecoderState + 'a>> {
        self.model.start(memory, beams, pass)
    }
}

/// A run with NaN in some forward passes. Two make an update.
fn poisoned(tiny: &Tiny, bad: std::ops::Range<usize>, changes: &[&str]) -> Run {
    multiplied(tiny, f64::NAN, bad, changes)
}

fn multiplied(tiny: &Tiny, factor: f64, bad: std::ops::Range<usize>, changes: &[&str]) -> Run {
    multiply(tiny.start("run", changes), factor, bad)
}

pub(crate) fn multiply(mut run: Run, factor: f64, bad: std::ops::Range<usize>) -> Run {
    let model = run.model;
    let passes = AtomicUsize::new(0);
    run.model = Box::new(Poisoned {
        model,
        factor,
        passes,
        bad,
    });
    run
}

/// What the loop does, once.
pub(crate) fn one_update(run: &mut Run) -> attend_train::Result<Update> {
    let mut update = run.next_update()?;
    for micro in 0..update.batches.len() {
        let loss = run.forward(&mut update, micro)?;
        loss.backward(1.0 / update.tokens as f64, run.model.weights().params())?;
    }
    run.update(&mut update)?;
    Ok(update)
}

#[test]
fn a_gradient_that_is_not_a_number_leaves_the_parameters_untouched() {
    let tiny = Tiny::new();
    let mut run = poisoned(&tiny, 3..4, &[]); // the second batch of the second update
    one_update(&mut run).unwrap();
    let before = values(&run);
    one_update(&mut run).unwrap();
    assert!(before == values(&run), "the update was left out");
    assert_eq!((run.state.step, run.state.health.skipped), (2, 1));
    one_update(&mut run).unwrap();
    assert!(before != values(&run), "the next one is done");
    let finite = values(&run).iter().flatten().all(|value| value.is_finite());
    assert!(finite);
    assert_eq!(
        (run.state.health.skipped, run.state.health.in_a_row),
        (1, 0)
    );
}

#[test]
fn a_run_survives_nine_bad_updates_and_logs_each() {
    let tiny = Tiny::new();
    let mut run = poisoned(&tiny, 40..58, &["train.steps=40"]);
    let ending = train(&mut run, &Stop::default()).unwrap();
    assert_eq!((ending, run.state.health.skipped), (Ending::Limit, 9));
    let log = tiny.log("run");
    let skipped: Vec<u64> = log
        .iter()
        .filter(|line| line.event == "skipped")
        .map(|line| line.step)
        .collect();
    assert_eq!(skipped, (21..30).collect::<Vec<_>>());
    drop(run);
    tiny.must(&["doctor", "run"]);
    // What was skipped is part of the state that a run resumes from.
    let state: serde_json::Value =
        serde_json::from_slice(&tiny.read("run/last/trainer_state.json")).unwrap();
    assert_eq!(state["health"]["skipped"], 9);
}

#[test]
fn a_loss_that_stands_out_is_reported_with_its_pairs_and_learnt_from() {
    let tiny = Tiny::new();
    let mut run = multiplied(&tiny, 1000.0, 60..62, &["train.steps=35"]);
    train(&mut run, &Stop::default()).unwrap();
    assert_eq!(run.state.health.skipped, 0);
    let log = tiny.log("run");
    let spikes: Vec<_> = log.iter().filter(|line| line.event == "spike").collect();
    assert_eq!(spikes.len(), 1, "{spikes:?}");
    assert_eq!(spikes[0].step, 31);
    assert!(spikes[0].json.contains("\"pairs\":["), "{spikes:?}");
}

#[test]
fn ten_bad_updates_in_a_row_stop_the_run_and_say_why() {
    let tiny = Tiny::new();
    let mut run = poisoned(&tiny, 48..usize::MAX, &[]);
    let error = train(&mut run, &Stop::default()).unwrap_err();
    let text = error.to_string();
    for part in [
        "10 updates in a row were skipped, the last at step 34",
        "loss NaN, gradient norm NaN",
        "last gradient norms: ",
        "not finite",
        "pairs of the training data in this update: ",
        "last checkpoint: step 30",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(error.hint().unwrap().contains("clip_norm"));
    drop(run);
    let output = tiny.must(&["doctor", "run"]);
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        found.ends_with("`train resume` continues from step 30\n"),
        "{found}"
    );
    // With a model that is well again, the run goes on.
    tiny.must(&["resume", "run"]);
}

/// The gradient of a config's first update, over all parameters.
fn gradient(tiny: &Tiny, out: &str, changes: &[&str]) -> (usize, Vec<f32>) {
    let mut run = tiny.start(out, changes);
    let mut update = run.next_update().unwrap();
    for micro in 0..update.batches.len() {
        let loss = run.forward(&mut update, micro).unwrap();
        loss.backward(1.0 / update.tokens as f64, run.model.weights().params())
            .unwrap();
    }
    let gradients = run.model.weights().params().flat_map(|param| {
        let gradient = param.gradient().unwrap().flatten_all().unwrap();
        gradient.to_vec1::<f32>().unwrap()
    });
    (update.batches.len(), gradients.collect())
}

fn apart(a: &[f32], b: &[f32]) -> f64 {
    let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
    let differences = &mut a.iter().zip(b).map(|(a, b)| f64::from(a - b));
    norm(differences) / norm(&mut a.iter().map(|&a| f64::from(a)))
}

#[test]
fn four_batches_of_unequal_size_give_the_gradient_of_all_in_one() {
    let tiny = Tiny::with_pairs(40);
    // Batches differ in what they drop.
    let still = [
        "model.transformer.dropout=0.0",
        "model.transformer.attention_dropout=0.0",
        "model.transformer.activation_dropout=0.0",
    ];
    // An epoch in one batch, and the same epoch in four.
    let whole = ["data.batch_tokens=1000", "train.accumulate=1"];
    let (one, whole) = gradient(&tiny, "whole", &[&whole[..], &still].concat());
    let many = [
        "data.batch_tokens=60",
        "train.accumulate=100",
        "train.epochs=1",
    ];
    let (many, added) = gradient(&tiny, "added", &[&many[..], &still].concat());
    assert!(one == 1 && many >= 4, "{one} and {many} batches");
    assert!(
        apart(&whole, &added) < 1e-6,
        "{:e} apart",
        apart(&whole, &added)
    );
}

#[test]
fn a_batch_without_room_is_computed_in_parts_that_add_up_to_its_gradient() {
    let tiny = Tiny::with_pairs(2000);
    let large = [
        "data.batch_tokens=4000",
        "train.accumulate=1",
        "model.transformer.dropout=0.2",
        "model.transformer.attention_dropout=0.2",
        "model.transformer.activation_dropout=0.2",
    ];
    let (one, whole) = gradient(&tiny, "whole", &large);
    let changes = [&large[..], &["train.max_memory=132M"]].concat();
    let (parts, added) = gradient(&tiny, "parts", &changes);
    assert!(one == 1 && parts >= 2, "{one} and {parts} parts");
    assert!(
        apart(&whole, &added) < 1e-6,
        "{:e} apart",
        apart(&whole, &added)
    );
}
