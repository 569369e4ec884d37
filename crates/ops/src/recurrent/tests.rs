use candle_core::{Result, Tensor};

use super::{Cell, Direction, recurrence};
use crate::testing::{Case, assert_close, param};
use crate::{Linear, Param, Pass, Path, Segments};

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

fn layer(cell: Cell, h: usize, bias: bool) -> Linear {
    let gate = cell.gates() * h;
    let weight = param("recurrent.weight", (gate, h));
    // Of a size that does not let gates saturate.
    let small = (weight.value() / (h as f64).sqrt()).unwrap();
    weight.set(&small).unwrap();
    let bias = bias.then(|| param("recurrent.bias", gate));
    Linear { weight, bias }
}

fn params(layer: &Linear) -> Vec<Param> {
    let weight = [layer.weight.clone()];
    weight.into_iter().chain(layer.bias.clone()).collect()
}

/// Enough sentences for several groups, of lengths 0 to 12.
fn many() -> Segments {
    Segments::packed((0..61).map(|i| i * 7 % 13))
}

#[test]
fn fused_equals_composed_both_ways_with_and_without_start_and_bias() {
    let several = [
        (Segments::packed([1]), 1),
        (Segments::packed([5]), 8),
        (Segments::packed([0, 3, 1, 0, 8, 3, 0]), 5),
        (many(), 17),
        // More than one pass of a product takes.
        (Segments::packed([2, 0, 1]), 520),
    ];
    for (sentences, h) in several {
        let (n, b) = (sentences.rows(), sentences.count());
        for cell in Cell::ALL {
            for (direction, bias) in DIRECTIONS.into_iter().zip([true, false]) {
                let layer = layer(cell, h, bias);
                let case = Case::new(&params(&layer)).input((n, cell.gates() * h));
                case.check_once(|x, pass| {
                    recurrence(cell, &x[0], &layer, None, &sentences, direction, pass)
                });
            }
            for (direction, bias) in DIRECTIONS.into_iter().zip([false, true]) {
                let layer = layer(cell, h, bias);
                let case = Case::new(&params(&layer)).input((n, cell.gates() * h));
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
    let x = param("x", (sentences.rows(), cell.gates() * h));
    let start = param("start", (sentences.count(), cell.state_width(h)));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.unwrap().install(|| {
        let pass = Pass::train(Path::Fused, 1, 1);
        let begin = Some(start.value());
        let states = recurrence(cell, x.value(), &layer, begin, &sentences, direction, &pass)?;
        let all = [params(&layer), vec![x.clone(), start.clone()]].concat();
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
fn a_sentence_does_not_depend_on_its_mates() -> Result<()> {
    let (sentences, h) = (many(), 24);
    for cell in Cell::ALL {
        let (layer, gate) = (layer(cell, h, true), cell.gates() * h);
        let x = param("x", (sentences.rows(), gate)).value().detach();
        let start = param("start", (sentences.count(), cell.state_width(h)));
        let start = start.value().detach();
        let pass = Pass::eval(Path::Fused);
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
        let (layer, x) = (layer(cell, 6, true), param("x", (7, cell.gates() * 6)));
        let start = param("start", (3, cell.state_width(6)));
        for start in [None, Some(start.value())] {
            let run = |pass: &Pass| {
                let forward = Direction::Forward;
                recurrence(cell, x.value(), &layer, start, &sentences, forward, pass)
            };
            let trained = run(&Pass::train(Path::Fused, 1, 1))?;
            let tested = run(&Pass::eval(Path::Fused))?;
            assert_close(&trained, &tested, 0.0);
            assert!(trained.track_op() && !tested.track_op());
        }
    }
    Ok(())
}

#[test]
fn weights_get_their_gradient_even_when_the_input_is_a_constant() -> Result<()> {
    let layer = layer(Cell::Gru, 3, true);
    let x = param("x", (4, 9)).value().detach();
    let (sentences, pass) = (Segments::packed([4]), Pass::train(Path::Fused, 0, 0));
    let forward = Direction::Forward;
    let states = recurrence(Cell::Gru, &x, &layer, None, &sentences, forward, &pass)?;
    crate::backward(&states.sum_all()?, [])?;
    assert!(params(&layer).iter().all(|p| p.gradient().is_some()));
    Ok(())
}

#[test]
fn sentences_without_any_token_have_no_states() -> Result<()> {
    let sentences = Segments::packed([0, 0]);
    let x = Tensor::zeros((0, 12), candle_core::DType::F32, &candle_core::Device::Cpu)?;
    for path in Path::ALL {
        for cell in Cell::ALL {
            let layer = layer(cell, 12 / cell.gates(), true);
            let (forward, pass) = (Direction::Forward, Pass::eval(path));
            let states = recurrence(cell, &x, &layer, None, &sentences, forward, &pass)?;
            assert_eq!(states.dims(), [0, cell.state_width(12 / cell.gates())]);
        }
    }
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused() -> Result<()> {
    let (layer, pass) = (layer(Cell::Lstm, 3, true), Pass::eval(Path::Fused));
    let (x, start) = (param("x", (4, 12)), param("start", (2, 6)));
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
