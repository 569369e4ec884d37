use attend_batch::Segments;
use candle_core::{Result, Tensor};

use super::{Cell, Direction, recurrence};
use crate::testing::{Case, assert_close, weight};
use crate::{Kernels, Linear, Param, Pass, Weight};

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

fn layer(cell: Cell, h: usize, bias: bool) -> Linear {
    let gate = cell.gates() * h;
    let matrix = weight("recurrent.weight", (gate, h));
    // Small enough that gates do not saturate.
    let small = (matrix.value() / (h as f64).sqrt()).unwrap();
    matrix.param().unwrap().set(&small).unwrap();
    Linear {
        weight: matrix,
        bias: bias.then(|| weight("recurrent.bias", gate)),
    }
}

fn weights(layer: &Linear) -> Vec<Weight> {
    let weight = [layer.weight.clone()];
    weight.into_iter().chain(layer.bias.clone()).collect()
}

fn params(layer: &Linear) -> Vec<Param> {
    let weights = weights(layer).into_iter();
    weights
        .filter_map(|weight| weight.param().cloned())
        .collect()
}

/// Enough sentences for several groups, of lengths 0 to 12.
fn many() -> Segments {
    Segments::packed((0..61).map(|i| i * 7 % 13))
}

#[test]
fn fused_equals_composed_in_both_directions_with_and_without_start_and_bias() {
    let several = [
        (Segments::packed([1]), 1),
        (Segments::packed([5]), 8),
        (Segments::packed([0, 3, 1, 0, 8, 3, 0]), 5),
        (many(), 17),
        // Wider than one pass of a product.
        (Segments::packed([2, 0, 1]), 520),
    ];
    for (sentences, h) in several {
        let (n, b) = (sentences.rows(), sentences.count());
        for cell in Cell::ALL {
            for (direction, bias) in DIRECTIONS.into_iter().zip([true, false]) {
                let layer = layer(cell, h, bias);
                let case = Case::new(&weights(&layer)).input((n, cell.gates() * h));
                case.check_once(|x, pass| {
                    recurrence(cell, &x[0], &layer, None, &sentences, direction, pass)
                });
            }
            for (direction, bias) in DIRECTIONS.into_iter().zip([false, true]) {
                let layer = layer(cell, h, bias);
                let case = Case::new(&weights(&layer)).input((n, cell.gates() * h));
                case.input((b, cell.state_width(h))).check_once(|x, pass| {
                    let start = Some(&x[1]);
                    recurrence(cell, &x[0], &layer, start, &sentences, direction, pass)
                });
            }
        }
    }
}

/// States, and the gradients of x, start, weight and bias, all as bits.
fn bits(cell: Cell, h: usize, direction: Direction, threads: usize) -> Result<Vec<Vec<u32>>> {
    let (sentences, layer) = (many(), layer(cell, h, true));
    let x = weight("x", (sentences.rows(), cell.gates() * h));
    let start = weight("start", (sentences.count(), cell.state_width(h)));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.unwrap().install(|| {
        let pass = Pass::train(Kernels::Fused, 1, 1);
        let begin = Some(start.value());
        let states = recurrence(cell, x.value(), &layer, begin, &sentences, direction, &pass)?;
        let inputs = [&x, &start].map(|weight| weight.param().unwrap().clone());
        let all = [params(&layer), inputs.to_vec()].concat();
        crate::backward(&states.sqr()?.sum_all()?, &all)?;
        let mut tensors = vec![states];
        tensors.extend(
            all.iter()
                .map(|p| p.gradient().expect("a gradient").clone()),
        );
        let bits = |t: &Tensor| {
            let values = t.flatten_all()?.to_vec1::<f32>()?;
            Ok(values.into_iter().map(f32::to_bits).collect())
        };
        tensors.iter().map(bits).collect()
    })
}

#[test]
fn the_bits_are_the_same_on_any_number_of_threads() -> Result<()> {
    for cell in Cell::ALL {
        for direction in DIRECTIONS {
            let one = bits(cell, 40, direction, 1)?;
            for threads in [2, 3, 5] {
                assert!(one == bits(cell, 40, direction, threads)?, "{cell:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_sentence_does_not_depend_on_the_rest_of_the_batch() -> Result<()> {
    let (sentences, h) = (many(), 24);
    for cell in Cell::ALL {
        let (layer, gate) = (layer(cell, h, true), cell.gates() * h);
        let x = weight("x", (sentences.rows(), gate)).value().detach();
        let start = weight("start", (sentences.count(), cell.state_width(h)));
        let start = start.value().detach();
        let pass = Pass::eval(Kernels::Fused);
        for direction in DIRECTIONS {
            let run = |x: &Tensor, start: &Tensor, sentences: &Segments| {
                recurrence(cell, x, &layer, Some(start), sentences, direction, &pass)
            };
            let together = run(&x, &start, &sentences)?;
            for (index, rows) in sentences.ranges().enumerate() {
                let (first, length) = (rows.start, rows.len());
                let own = x.narrow(0, first, length)?;
                let alone = Segments::packed([length]);
                let alone = run(&own, &start.narrow(0, index, 1)?, &alone)?;
                assert_close(&alone, &together.narrow(0, first, length)?, 0.0);
            }
        }
    }
    Ok(())
}

#[test]
fn evaluation_gives_the_same_numbers_and_no_graph() -> Result<()> {
    let sentences = Segments::packed([3, 0, 4]);
    for cell in Cell::ALL {
        let (layer, x) = (layer(cell, 6, true), weight("x", (7, cell.gates() * 6)));
        let start = weight("start", (3, cell.state_width(6)));
        for start in [None, Some(start.value())] {
            let run = |pass: &Pass| {
                let forward = Direction::Forward;
                recurrence(cell, x.value(), &layer, start, &sentences, forward, pass)
            };
            let trained = run(&Pass::train(Kernels::Fused, 1, 1))?;
            let tested = run(&Pass::eval(Kernels::Fused))?;
            assert_close(&trained, &tested, 0.0);
            assert!(trained.track_op() && !tested.track_op());
        }
    }
    Ok(())
}

#[test]
fn weights_get_a_gradient_if_the_input_is_constant() -> Result<()> {
    let layer = layer(Cell::Gru, 3, true);
    let x = weight("x", (4, 9)).value().detach();
    let (sentences, pass) = (Segments::packed([4]), Pass::train(Kernels::Fused, 0, 0));
    let forward = Direction::Forward;
    let states = recurrence(Cell::Gru, &x, &layer, None, &sentences, forward, &pass)?;
    crate::backward(&states.sum_all()?, [])?;
    assert!(params(&layer).iter().all(|p| p.gradient().is_some()));
    Ok(())
}

#[test]
fn empty_sentences_have_no_states() -> Result<()> {
    let sentences = Segments::packed([0, 0]);
    let x = Tensor::zeros((0, 12), candle_core::DType::F32, &candle_core::Device::Cpu)?;
    for kernels in Kernels::ALL {
        for cell in Cell::ALL {
            let layer = layer(cell, 12 / cell.gates(), true);
            let (forward, pass) = (Direction::Forward, Pass::eval(kernels));
            let states = recurrence(cell, &x, &layer, None, &sentences, forward, &pass)?;
            assert_eq!(states.dims(), [0, cell.state_width(12 / cell.gates())]);
        }
    }
    Ok(())
}

#[test]
fn mismatched_shapes_are_errors() -> Result<()> {
    let (layer, pass) = (layer(Cell::Lstm, 3, true), Pass::eval(Kernels::Fused));
    let (x, start) = (weight("x", (4, 12)), weight("start", (2, 6)));
    let run = |cell, start: Option<&Tensor>, lengths: &[usize]| {
        let sentences = Segments::packed(lengths.iter().copied());
        let forward = Direction::Forward;
        recurrence(cell, x.value(), &layer, start, &sentences, forward, &pass)
    };
    assert!(run(Cell::Lstm, Some(start.value()), &[3, 1]).is_ok());
    assert!(run(Cell::Lstm, Some(start.value()), &[2, 1, 1]).is_err());
    assert!(run(Cell::Lstm, None, &[3]).is_err());
    assert!(run(Cell::Gru, None, &[3, 1]).is_err());
    Ok(())
}
