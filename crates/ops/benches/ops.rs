//! Every operation of a training step, forward and backward, fused and composed, at the sizes of the
//! base model: `cargo bench -p attend-ops`. An argument selects the benchmarks whose
//! names contain it.

use std::hint::black_box;

use attend_batch::Segments;
use attend_ops::random::{self, Key};
use attend_ops::{
    Activation, Adam, AttendedStates, Body, Cell, Direction, DropoutSite, FeedForward, Kernels,
    LayerNorm, Linear, Mask, Moments, MultiHead, NormPlacement, Param, Pass, Residual, Shared,
    Site, Sublayer, Weight, add_norm, attention, cell, clip_factor, cross_entropy, embed, linear,
    linear_activated, norm_of_all, on_pool, recurrence, self_attention, stack,
};
use candle_core::{Device, Result, Shape, Tensor, Var};
use criterion::{Criterion, criterion_group, criterion_main};

const SENTENCES: usize = 20;
const LENGTH: usize = 25;
const TOKENS: usize = SENTENCES * LENGTH;
const D: usize = 512;
const D_FF: usize = 2048;
const HEADS: usize = 8;
const WORDS: usize = 8001;

fn tensor(name: &str, shape: impl Into<Shape>) -> Tensor {
    let key = Key::new(1, 0, Site::named(name));
    random::tensor(shape, &Device::Cpu, |i| 0.05 * key.normal(i)).unwrap()
}

fn weight(name: &str, shape: impl Into<Shape>) -> Weight {
    Param::new(name, &tensor(name, shape)).unwrap().into()
}

fn layer(name: &str, o: usize, i: usize) -> Linear {
    Linear {
        weight: weight(&format!("{name}.weight"), (o, i)),
        bias: Some(weight(&format!("{name}.bias"), o)),
    }
}

fn norm() -> LayerNorm {
    LayerNorm {
        weight: weight("norm.weight", D),
        bias: weight("norm.bias", D),
    }
}

/// Times an operation forward and backward with both kernels, as a training step runs it.
fn both_ways(c: &mut Criterion, name: &str, op: impl Fn(&Pass) -> Result<Tensor> + Sync) {
    let mut group = c.benchmark_group(name);
    group.sample_size(10);
    for (kernels, draw) in [(Kernels::Fused, 1), (Kernels::Composed, 2)] {
        let pass = Pass::train(kernels, 1, draw);
        let run = || on_pool(|| op(&pass)?.sum_all()?.backward());
        group.bench_function(format!("{kernels:?}"), |b| {
            b.iter(|| black_box(run().unwrap()))
        });
    }
}

fn input(name: &str, shape: impl Into<Shape>) -> Tensor {
    let var = Var::from_tensor(&tensor(name, shape)).unwrap();
    var.as_tensor().clone()
}

fn layers(c: &mut Criterion) {
    let x = input("x", (TOKENS, D));
    let (a, b) = (layer("a", D_FF, D), layer("b", D, D));
    let drop = DropoutSite::new(0.1, "drop");
    let sentences = Segments::packed([LENGTH; SENTENCES]);
    both_ways(c, "linear", |pass| linear(&x, &[&b, &b, &b], pass));
    for activation in [Activation::Relu, Activation::Gelu, Activation::Swish] {
        both_ways(c, &format!("linear-{activation:?}"), |pass| {
            linear_activated(&x, &a, activation, &drop.of_rows(&sentences, pass), pass)
        });
    }
    let (z, norm) = (input("z", (TOKENS, D)), norm());
    both_ways(c, "add-norm", |pass| {
        add_norm(&x, &z, &drop.of_rows(&sentences, pass), &norm, pass)
    });
}

fn attentions(c: &mut Criterion) {
    let drop = DropoutSite::new(0.1, "drop");
    let (q, kv) = (input("q", (TOKENS, D)), input("kv", (TOKENS, 2 * D)));
    let qkv = input("qkv", (TOKENS, 3 * D));
    let short = Segments::packed([LENGTH; SENTENCES]);
    let long = Segments::packed([TOKENS]);
    both_ways(c, "attention", |pass| {
        attention(&q, &short, &kv, &short, HEADS, drop.of(pass), pass)
    });
    for (name, sentences) in [("short", &short), ("long", &long)] {
        both_ways(c, &format!("self-attention-{name}"), |pass| {
            self_attention(&qkv, sentences, HEADS, Mask::Causal, drop.of(pass), pass)
        });
    }
}

/// A layer of a recurrent encoder, and steps of a decoder, at realistic sizes.
fn recurrences(c: &mut Criterion) {
    const H: usize = 256;
    let sentences = Segments::packed((0..60).map(|i| 1 + i * 7 % 23));
    let n = sentences.rows();
    for kind in [Cell::Lstm, Cell::Gru] {
        let gates = kind.gates() * H;
        let (x, u) = (input("x", (n, gates)), layer("u", gates, H));
        let name = format!("recurrence-{kind:?}").to_lowercase();
        both_ways(c, &name, |pass| {
            recurrence(kind, &x, &u, None, &sentences, Direction::Forward, pass)
        });
        let state = input("state", (60, kind.state_width(H)));
        let u = input("u", (60, gates));
        let name = format!("cell-{kind:?}").to_lowercase();
        both_ways(c, &name, |pass| {
            let (shared, mut state) = (Shared::new(&x, pass)?, state.clone());
            for step in 0..10 {
                state = cell(kind, &shared, 60 * step..60 * (step + 1), &u, &state, pass)?;
            }
            Ok(state)
        });
    }
}

fn sublayers(c: &mut Criterion) {
    let drop = DropoutSite::new(0.1, "drop");
    let heads = |name: &str| MultiHead {
        query: layer(&format!("{name}.q"), D, D),
        key: layer(&format!("{name}.k"), D, D),
        value: layer(&format!("{name}.v"), D, D),
        out: layer(&format!("{name}.out"), D, D),
        heads: HEADS,
        drop,
    };
    let network = FeedForward {
        inner: layer("inner", D_FF, D),
        outer: layer("outer", D, D_FF),
        activation: Activation::Relu,
        drop,
    };
    let bodies = [
        Body::Itself(heads("itself"), Mask::Causal),
        Body::Memory(heads("memory")),
        Body::FeedForward(network),
    ];
    let sublayers = bodies.map(|body| Sublayer {
        residual: Residual {
            norm: norm(),
            placement: NormPlacement::Post,
            drop,
        },
        body,
    });
    let (x, states) = (input("x", (TOKENS, D)), input("memory", (TOKENS, D)));
    let segments = Segments::packed([LENGTH; SENTENCES]);
    let memory = AttendedStates {
        states: &states,
        segments: &segments,
    };
    both_ways(c, "decoder-layer", |pass| {
        stack(&x, &segments, Some(memory), &sublayers, pass)
    });
}

fn ends(c: &mut Criterion) {
    let table = weight("table", (WORDS, D));
    let ids: Vec<u32> = (0..TOKENS as u32)
        .map(|i| i * 37 % (WORDS as u32 - 1))
        .collect();
    let sentences = Segments::packed([LENGTH; SENTENCES]);
    let positions = sentences.positions();
    let places = tensor("places", (LENGTH, D));
    let drop = DropoutSite::new(0.1, "drop");
    both_ways(c, "embed", |pass| {
        embed(
            &table,
            &ids,
            &places,
            &positions,
            &drop.of_embeddings(&sentences, pass),
            pass,
        )
    });
    let hidden = input("hidden", (TOKENS, D));
    let output = Linear {
        weight: table.clone(),
        bias: None,
    };
    let mut group = c.benchmark_group("cross-entropy");
    group.sample_size(10);
    for kernels in Kernels::ALL {
        let pass = Pass::train(kernels, 1, 1);
        let run = || {
            on_pool(|| {
                cross_entropy(&hidden, &output, &ids, 0.1, &pass)?.backward(1.0, table.param())
            })
        };
        group.bench_function(format!("{kernels:?}"), |b| b.iter(|| run().unwrap()));
    }
}

fn optimizer(c: &mut Criterion) {
    let p = weight("p", (D_FF, D));
    let gradient = tensor("gradient", (D_FF, D));
    let moments = Moments::zeros(D_FF * D, gradient.device()).unwrap();
    let mut group = c.benchmark_group("clip-adam");
    group.sample_size(10);
    for kernels in Kernels::ALL {
        let step = || -> Result<()> {
            let norm = norm_of_all([&gradient], kernels)?;
            let adam = Adam {
                learning_rate: 1e-9,
                beta1: 0.9,
                beta2: 0.98,
                epsilon: 1e-9,
                weight_decay: 0.0,
                step: 10,
                clip: clip_factor(norm, Some(1.0)),
            };
            let param = p.param().expect("trainable");
            adam.update(param, &gradient, 0..D_FF * D, &moments, kernels)
        };
        group.bench_function(format!("{kernels:?}"), |b| {
            b.iter(|| on_pool(step).unwrap())
        });
    }
}

fn start(_: &mut Criterion) {}

criterion_group!(
    all,
    start,
    layers,
    attentions,
    recurrences,
    sublayers,
    ends,
    optimizer
);
criterion_main!(all);
