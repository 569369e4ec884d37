use std::sync::Arc;

use candle_core::{Device, Tensor};

use super::int8::QuantizedRows;
use super::*;
use crate::testing::{assert_close, bits, weight};
use crate::{
    Activation, Kernels, Linear, Pass, RowDropout, Weight, linear, linear_activated, project,
};

/// Rows, outputs and inputs: less and more than a tile, a block, a pass and a task.
const SIZES: [(usize, usize, usize); 9] = [
    (1, 1, 1),
    (1, 300, 70),
    (2, 129, 520),
    (3, 33, 1030),
    (5, 128, 64),
    (13, 200, 31),
    (64, 96, 512),
    (70, 257, 100),
    (600, 40, 50),
];

/// The matrix in both kinds.
fn packed(values: &[f32], outputs: usize, inputs: usize) -> [PackedWeight; 2] {
    let tensor = Tensor::from_slice(values, (outputs, inputs), &Device::Cpu).unwrap();
    let float = PackedWeight::float(&tensor).unwrap();
    [float, PackedWeight::quantized(&tensor).unwrap()]
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

/// A layer, the same packed, and the same in 8 bits.
fn layers(o: usize, i: usize) -> [Linear; 3] {
    let (w, bias) = (weight("w", (o, i)), weight("b", o).value().detach());
    let w = values(w.value());
    let layer = |weight| Linear {
        weight,
        bias: Some(Weight::read_only("b", bias.clone())),
    };
    let tensor = Tensor::from_slice(&w, (o, i), &Device::Cpu).unwrap();
    let [float, int8] = packed(&w, o, i).map(|matrix| layer(Weight::packed("w", matrix)));
    [layer(Weight::read_only("w", tensor)), float, int8]
}

#[test]
fn packed_floats_give_the_bits_of_unpacked_ones() {
    let pass = Pass::eval(Kernels::Fused);
    for (n, o, i) in SIZES {
        let x = weight("x", (n, i)).value().detach();
        let ([plain, packed, _], [more, more_packed, _]) = (layers(o, i), layers(o + 7, i));
        let expected = linear(&x, &[&plain, &more, &plain], &pass).unwrap();
        let found = linear(&x, &[&packed, &more_packed, &packed], &pass).unwrap();
        assert!(bits(&expected) == bits(&found), "{n} {o} {i}");
        let run = |layer| linear_activated(&x, layer, Activation::Gelu, &RowDropout::NONE, &pass);
        assert!(bits(&run(&plain).unwrap()) == bits(&run(&packed).unwrap()));
        if o > 1 {
            let run = |layer| project(&x, layer, &pass).unwrap();
            assert!(bits(&run(&plain)) == bits(&run(&packed)), "{n} {o} {i}");
        }
    }
}

#[test]
fn products_in_8_bits_are_close_to_those_of_floats() {
    let pass = Pass::eval(Kernels::Fused);
    for (n, o, i) in SIZES {
        let x = weight("x", (n, i)).value().detach();
        let [plain, _, quantized] = layers(o, i);
        let run = |layer| linear(&x, &[layer], &pass).unwrap();
        let (expected, found) = (values(&run(&plain)), values(&run(&quantized)));
        let squares = |values: &[f32]| values.iter().map(|x| x * x).sum::<f32>();
        let errors: Vec<f32> = expected.iter().zip(&found).map(|(a, b)| a - b).collect();
        let error = (squares(&errors) / squares(&expected)).sqrt();
        assert!(error < 0.02, "{n} {o} {i}: {error}");
    }
}

#[test]
fn the_bits_of_a_row_do_not_depend_on_other_rows_or_on_threads() {
    let pass = Pass::eval(Kernels::Fused);
    for (o, i) in [(300, 70), (512, 1030)] {
        let [_, packed, quantized] = layers(o, i);
        let x = weight("x", (700, i)).value().detach();
        for layer in [&packed, &quantized] {
            let run = |x: &Tensor| linear(x, &[layer], &pass).unwrap();
            let all = run(&x);
            for (first, count) in [(0, 1), (1, 2), (9, 3), (600, 64), (3, 513)] {
                let some = run(&x.narrow(0, first, count).unwrap());
                assert!(bits(&some) == bits(&all.narrow(0, first, count).unwrap()));
            }
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
            let one = pool.unwrap().install(|| run(&x));
            assert!(bits(&one) == bits(&all));
        }
    }
}

#[test]
fn a_row_is_the_weights_of_one_output() {
    for (_, o, i) in SIZES {
        let w = values(weight("w", (o, i)).value());
        for (matrix, tolerance) in packed(&w, o, i).into_iter().zip([0.0, 0.5 / 127.0]) {
            let mut row = vec![f32::NAN; i];
            for (output, expected) in w.chunks(i).enumerate() {
                matrix.row(output, &mut row);
                let most = expected.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
                let (row, expected) = (&row[..], expected);
                let tensor = |x: &[f32]| Tensor::new(x, &Device::Cpu).unwrap();
                let error = 1.001 * tolerance * most;
                assert_close(&tensor(row), &tensor(expected), error);
            }
        }
    }
}

#[test]
fn every_version_of_the_8_bit_kernels_gives_the_same_bits() {
    for (n, o, i) in SIZES {
        let (x, w) = (weight("x", (n, i)), weight("w", (o, i)));
        let x = QuantizedRows::new(&values(x.value()), i);
        let (bytes, scales) = Int8Matrix::quantize(&values(w.value()), o, i);
        let mut steps: Vec<f32> = scales.iter().map(|scale| 1.0 / scale).collect();
        steps.resize(o.next_multiple_of(int8::PANEL), 0.0);
        let block = int8_kernels::Block {
            panels: &bytes,
            steps: &steps,
            outputs: o,
        };
        let versions = int8_kernels::versions();
        let results = versions.iter().map(|version| {
            let mut y = vec![f32::NAN; n * o];
            let rows = RowsMut {
                data: &mut y,
                width: o,
            };
            version(rows, &x, block);
            y
        });
        let results: Vec<Vec<f32>> = results.collect();
        assert!(
            results.iter().all(|result| *result == results[0]),
            "{n} {o} {i}"
        );
        for (row, y) in results[0].chunks(o).enumerate() {
            for (output, y) in y.iter().enumerate() {
                let depth = x.depth;
                let panel = &bytes[output / int8::PANEL * int8::PANEL * depth..];
                let at = |k: usize| panel[(k / 4 * int8::PANEL + output % int8::PANEL) * 4 + k % 4];
                let w = |k: usize| i32::from(at(k).cast_signed());
                let sum: i32 = (0..i).map(|k| i32::from(x.row(row)[k]) * w(k)).sum();
                assert_eq!(*y, sum as f32 * (x.steps[row] * steps[output]));
            }
        }
    }
}

#[test]
fn bytes_that_do_not_fit_a_matrix_are_refused() {
    let new = |bytes: usize, range, outputs: usize, inputs| {
        Int8Matrix::new(Arc::new(vec![0; bytes]), range, &vec![1.0; outputs], inputs)
    };
    assert!(new(256, 0..256, 33, 4).is_some());
    assert!(new(256, 0..128, 33, 4).is_none());
    assert!(new(200, 0..256, 33, 4).is_none());
    assert!(new(256, 0..256, 1, usize::MAX).is_none());
}
