use attend_batch::Segments;
use candle_core::{Result, Tensor};

use super::*;
use crate::testing::{assert_close, bits, weight};
use crate::{
    Activation, AttendedStates, DropoutSite, Kernels, LayerNorm, Mask, Pass, Residual, stack,
};

const D: usize = 24;

fn layer(name: &str, o: usize, i: usize) -> Linear {
    Linear {
        weight: weight(&format!("{name}.weight"), (o, i)),
        bias: Some(weight(&format!("{name}.bias"), o)),
    }
}

fn heads(name: &str) -> MultiHead {
    let part = |part: &str| layer(&format!("{name}.{part}"), D, D);
    MultiHead {
        query: part("q"),
        key: part("k"),
        value: part("v"),
        out: part("out"),
        heads: 3,
        drop: DropoutSite::new(0.0, name),
    }
}

/// Two decoder layers.
fn decoder(placement: NormPlacement) -> Vec<Sublayer> {
    let layers = (0..2).flat_map(|n| {
        let name = |part: &str| format!("{n}.{part}");
        let network = FeedForward {
            inner: layer(&name("inner"), 40, D),
            outer: layer(&name("outer"), D, 40),
            activation: Activation::Relu,
            drop: DropoutSite::new(0.0, "drop"),
        };
        [
            Body::Itself(heads(&name("self")), Mask::Causal),
            Body::Memory(heads(&name("memory"))),
            Body::FeedForward(network),
        ]
    });
    let around = |(i, body): (usize, Body)| Sublayer {
        residual: Residual {
            norm: LayerNorm {
                weight: weight(&format!("{i}.norm.weight"), D),
                bias: weight(&format!("{i}.norm.bias"), D),
            },
            placement,
            drop: DropoutSite::new(0.0, "residual"),
        },
        body,
    };
    layers.enumerate().map(around).collect()
}

fn tensor(name: &str, rows: usize) -> Tensor {
    weight(name, (rows, D)).value().detach()
}

#[test]
fn steps_equal_the_whole_stack() -> Result<()> {
    let lengths = [5, 1, 3];
    let sources = Segments::packed([4, 2, 7]);
    let (x, memory) = (tensor("x", 9), tensor("memory", 13));
    for placement in [NormPlacement::Post, NormPlacement::Pre] {
        let layers = decoder(placement);
        let states = AttendedStates {
            states: &memory,
            segments: &sources,
        };
        let targets = Segments::packed(lengths);
        let pass = Pass::eval(Kernels::Fused);
        let whole = stack(&x, &targets, Some(states), &layers, &pass)?;

        let mut cache = StepCache::new(D, &layers);
        cache.add(&memory, &sources, 1, &layers)?;
        let mut alive = vec![0, 1, 2];
        for position in 0..5 {
            let rows = alive.iter().map(|&s: &usize| {
                let start = targets.range(s).start;
                x.narrow(0, start + position, 1)
            });
            let rows = Tensor::cat(&rows.collect::<Result<Vec<_>>>()?, 0)?;
            let y = step(&rows, &layers, &mut cache, None)?;
            for (row, &s) in alive.iter().enumerate() {
                let expected = whole.narrow(0, targets.range(s).start + position, 1)?;
                assert_close(&y.narrow(0, row, 1)?, &expected, 1e-5);
            }
            let kept: Vec<usize> = (0..alive.len())
                .filter(|&row| lengths[alive[row]] > position + 1)
                .collect();
            cache.select(kept.iter().map(|row| (*row, std::slice::from_ref(row))));
            alive = kept.iter().map(|&row| alive[row]).collect();
        }
    }
    Ok(())
}

/// A sentence that is copied, joined by others, and left alone: the bits of its steps are the same.
#[test]
fn a_row_has_the_same_bits_whatever_comes_and_goes_beside_it() -> Result<()> {
    let layers = decoder(NormPlacement::Pre);
    let (x, memory) = (tensor("x", 12), tensor("memory", 13));
    let alone = Segments::packed([13]);
    let mut cache = StepCache::new(D, &layers);
    cache.add(&memory, &alone, 1, &layers)?;
    let mut expected = Vec::new();
    for position in 0..12 {
        let y = step(&x.narrow(0, position, 1)?, &layers, &mut cache, None)?;
        expected.push(bits(&y));
    }

    let mut cache = StepCache::new(D, &layers);
    cache.add(&memory, &alone, 1, &layers)?;
    for (position, expected) in expected.iter().enumerate() {
        let noise = tensor(&format!("noise {position}"), cache.rows());
        let row = x.narrow(0, position, 1)?;
        let (first, rows) = (position % 3, cache.rows());
        let input = match rows {
            1 => row,
            _ => Tensor::cat(&[&row, &noise.narrow(0, 1, rows - 1)?], 0)?,
        };
        let y = step(&input, &layers, &mut cache, None)?;
        assert!(bits(&y.narrow(0, 0, 1)?) == *expected, "{position}");
        match first {
            0 => cache.add(&tensor("others", 9), &Segments::packed([5, 4]), 2, &layers)?,
            1 => cache.select([(0, &[0, 0][..]), (1, &[2, 1]), (2, &[3])]),
            _ => cache.select([(0, &[0][..])]),
        }
    }
    assert_eq!(cache.lengths(), [12]);
    Ok(())
}

#[test]
fn weights_of_the_source_sum_to_one_over_its_tokens() -> Result<()> {
    let layers = decoder(NormPlacement::Post);
    let mut cache = StepCache::new(D, &layers);
    cache.add(&tensor("memory", 9), &Segments::packed([7, 2]), 2, &layers)?;
    let mut weights = Vec::new();
    step(&tensor("x", 4), &layers, &mut cache, Some(&mut weights))?;
    assert_eq!(weights.len(), 2);
    for SourceWeights {
        values,
        heads,
        keys,
    } in weights
    {
        assert_eq!((heads, keys), (3, 7));
        for (row, weights) in values.chunks_exact(7).enumerate() {
            assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            if row % 4 >= 2 {
                assert_eq!(weights[2..], [0.0; 5]);
            }
        }
    }
    Ok(())
}

#[test]
fn slots_of_sentences_that_are_done_are_used_again() -> Result<()> {
    let layers = decoder(NormPlacement::Post);
    let mut cache = StepCache::new(D, &layers);
    for _ in 0..20 {
        cache.add(&tensor("memory", 9), &Segments::packed([7, 2]), 3, &layers)?;
        for position in 0..4 {
            step(&tensor("x", cache.rows()), &layers, &mut cache, None)?;
            if position == 1 {
                cache.select([(1, &[3, 4][..])]);
            }
        }
        cache.select([]);
    }
    assert_eq!(cache.rows(), 0);
    assert!(
        cache.slot_count() <= 3 * 2 + 3 * 2 + 2 * 2,
        "{}",
        cache.slot_count()
    );
    Ok(())
}
