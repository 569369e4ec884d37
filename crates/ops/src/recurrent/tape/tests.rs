use attend_batch::Segments;
use candle_core::{Device, Result, Tensor};

use super::{Fusion, SourceReader, SourceTape, TapeLayer, Tapes, tapes};
use crate::testing::{Case, assert_close, bits, weight};
use crate::{Kernels, Linear, Param, Pass, Weight};

const KINDS: [Option<Fusion>; 3] = [None, Some(Fusion::Shallow), Some(Fusion::Deep)];

fn matrix(name: &str, outputs: usize, inputs: usize) -> Linear {
    let weight = weight(name, (outputs, inputs));
    // Small enough that gates do not saturate.
    let small = (weight.value() / (inputs as f64).sqrt()).unwrap();
    weight.param().unwrap().set(&small).unwrap();
    Linear { weight, bias: None }
}

fn layer(h: usize, fusion: Option<Fusion>) -> TapeLayer {
    TapeLayer {
        recurrent: matrix("recurrent", 4 * h, h),
        query: matrix("query", h, h),
        key: matrix("key", h, h),
        vector: weight("vector", h),
        source: fusion.map(|fusion| SourceReader {
            fusion,
            query: matrix("source query", h, h),
            vector: weight("source vector", h),
            gate: match fusion {
                Fusion::Shallow => matrix("source gate", 4 * h, h),
                Fusion::Deep => matrix("source gate", h, h),
            },
        }),
    }
}

fn weights(layer: &TapeLayer) -> Vec<Weight> {
    layer.weights().into_iter().cloned().collect()
}

/// Widths of the input and of the source's values.
fn widths(h: usize, fusion: Option<Fusion>) -> (usize, usize) {
    match fusion {
        None => (5 * h, 0),
        Some(Fusion::Shallow) => (5 * h, h),
        Some(Fusion::Deep) => (7 * h, 2 * h),
    }
}

/// Runs a layer on x, and keys and values of the source if it reads one.
fn run(
    x: &[Tensor],
    layer: &TapeLayer,
    (targets, sources): &(Segments, Segments),
    pass: &Pass,
) -> Result<Tapes> {
    let source = layer.source.as_ref().map(|_| SourceTape {
        keys: x[1].clone(),
        values: x[2].clone(),
        segments: sources.clone(),
    });
    tapes(&x[0], layer, targets, source.as_ref(), pass)
}

/// States, then contexts: every output.
fn outputs(tapes: Tapes) -> Result<Tensor> {
    match tapes.context {
        None => Ok(tapes.states),
        Some(context) => Tensor::cat(&[tapes.states, context], 1),
    }
}

/// Enough sentences for several groups, of lengths 0 to 12; some sources are empty.
fn many() -> (Segments, Segments) {
    let lengths = |by: usize| (0..61).map(move |i| i * by % 13);
    (Segments::packed(lengths(7)), Segments::packed(lengths(5)))
}

#[test]
fn fused_equals_composed_without_a_source_and_with_both_fusions() {
    let several = [
        ((Segments::packed([1]), Segments::packed([1])), 1),
        ((Segments::packed([5]), Segments::packed([3])), 8),
        (
            (
                Segments::packed([0, 3, 1, 0, 8, 3]),
                Segments::packed([9, 2, 1, 0, 4, 1]),
            ),
            5,
        ),
        (many(), 17),
    ];
    for (pairs, h) in several {
        for fusion in KINDS {
            let (layer, (width, values)) = (layer(h, fusion), widths(h, fusion));
            let (n, m) = (pairs.0.rows(), pairs.1.rows());
            let mut case = Case::new(&weights(&layer)).input((n, width));
            if fusion.is_some() {
                case = case.input((m, h)).input((m, values));
            }
            case.check_once(|x, pass| outputs(run(x, &layer, &pairs, pass)?));
        }
    }
}

#[test]
fn weights_are_those_of_the_tokens_before_and_of_the_source_with_both_kernels() -> Result<()> {
    let pairs = (Segments::packed([3, 1, 5]), Segments::packed([2, 4, 1]));
    let h = 6;
    for fusion in KINDS {
        let (layer, (width, values)) = (layer(h, fusion), widths(h, fusion));
        let x = inputs(&pairs, h, width, values);
        let weights = |kernels| -> Result<_> {
            let tapes = run(&x, &layer, &pairs, &Pass::eval(kernels))?;
            Ok(tapes.weights.expect("weights in evaluation"))
        };
        let [fused, composed] = Kernels::ALL.map(weights);
        let (fused, composed) = (fused?, composed?);
        assert_close(&fused.own, &composed.own, 1e-5);
        let rows = fused.own.to_vec2::<f32>()?;
        for (row, place) in rows.iter().zip(pairs.0.positions()) {
            let (before, after) = row.split_at(place as usize);
            let sum: f32 = before.iter().sum();
            assert!((sum - if place == 0 { 0.0 } else { 1.0 }).abs() < 1e-5);
            assert!(after.iter().all(|&weight| weight == 0.0));
        }
        assert_eq!(fused.source.is_some(), fusion.is_some());
        if let (Some(fused), Some(composed)) = (&fused.source, &composed.source) {
            assert_close(fused, composed, 1e-5);
        }
    }
    Ok(())
}

fn inputs(pairs: &(Segments, Segments), h: usize, width: usize, values: usize) -> Vec<Tensor> {
    let (n, m) = (pairs.0.rows(), pairs.1.rows());
    [
        ("x", n, width),
        ("keys", m, h),
        ("values", m, values.max(1)),
    ]
    .map(|(name, rows, width)| weight(name, (rows, width)).value().detach())
    .to_vec()
}

#[test]
fn the_bits_are_the_same_on_any_number_of_threads() -> Result<()> {
    let (pairs, h) = (many(), 24);
    for fusion in KINDS {
        let of = |threads: usize| -> Result<Vec<Vec<u32>>> {
            let (layer, (width, values)) = (layer(h, fusion), widths(h, fusion));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap().install(|| {
                let x = inputs(&pairs, h, width, values);
                let pass = Pass::train(Kernels::Fused, 1, 1);
                let output = outputs(run(&x, &layer, &pairs, &pass)?)?;
                let weights = weights(&layer);
                let params: Vec<Param> =
                    weights.iter().filter_map(|w| w.param().cloned()).collect();
                crate::backward(&output.sqr()?.sum_all()?, &params)?;
                let gradients = params
                    .iter()
                    .map(|p| bits(p.gradient().expect("a gradient")));
                Ok(std::iter::once(bits(&output)).chain(gradients).collect())
            })
        };
        let one = of(1)?;
        for threads in [2, 3, 5] {
            assert!(one == of(threads)?, "{fusion:?}");
        }
    }
    Ok(())
}

#[test]
fn a_sentence_does_not_depend_on_the_rest_of_the_batch() -> Result<()> {
    let (pairs, h) = (many(), 16);
    for fusion in KINDS {
        let (layer, (width, values)) = (layer(h, fusion), widths(h, fusion));
        let x = inputs(&pairs, h, width, values);
        let pass = Pass::eval(Kernels::Fused);
        let together = run(&x, &layer, &pairs, &pass)?.states;
        for (index, (target, source)) in pairs.0.ranges().zip(pairs.1.ranges()).enumerate().skip(50)
        {
            let part = |x: &Tensor, of: &std::ops::Range<usize>| x.narrow(0, of.start, of.len());
            let own = [
                part(&x[0], &target)?,
                part(&x[1], &source)?,
                part(&x[2], &source)?,
            ];
            let alone = (
                Segments::packed([target.len()]),
                Segments::packed([source.len()]),
            );
            let alone = run(&own, &layer, &alone, &pass)?.states;
            let here = part(&together, &target)?;
            assert!(bits(&alone) == bits(&here), "sentence {index}");
        }
    }
    Ok(())
}

#[test]
fn empty_sentences_have_no_states() -> Result<()> {
    let pairs = (Segments::packed([0, 0]), Segments::packed([0, 2]));
    for kernels in Kernels::ALL {
        for fusion in KINDS {
            let (layer, (width, values)) = (layer(3, fusion), widths(3, fusion));
            let mut x = inputs(&pairs, 3, width, values);
            x[0] = Tensor::zeros((0, width), candle_core::DType::F32, &Device::Cpu)?;
            let states = run(&x, &layer, &pairs, &Pass::eval(kernels))?.states;
            assert_eq!(states.dims(), [0, 6]);
        }
    }
    Ok(())
}

#[test]
fn mismatched_shapes_are_errors() -> Result<()> {
    let pairs = (Segments::packed([3, 1]), Segments::packed([2, 4]));
    let pass = Pass::eval(Kernels::Fused);
    let deep = layer(3, Some(Fusion::Deep));
    let x = inputs(&pairs, 3, 21, 6);
    assert!(run(&x, &deep, &pairs, &pass).is_ok());
    let fewer = (pairs.0.clone(), Segments::packed([6]));
    assert!(
        run(&x, &deep, &fewer, &pass).is_err(),
        "another number of sources"
    );
    let shorter = (Segments::packed([3]), pairs.1.clone());
    assert!(run(&x, &deep, &shorter, &pass).is_err(), "other lengths");
    let shallow = layer(3, Some(Fusion::Shallow));
    assert!(run(&x, &shallow, &pairs, &pass).is_err(), "another width");
    assert!(
        tapes(&x[0], &deep, &pairs.0, None, &pass).is_err(),
        "no source"
    );
    let mut wrong = layer(3, None);
    wrong.query = matrix("query", 4, 3);
    assert!(
        tapes(&x[0], &wrong, &pairs.0, None, &pass).is_err(),
        "a wrong weight"
    );
    Ok(())
}
