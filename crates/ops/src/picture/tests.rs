use candle_core::{Device, Result, Tensor};

use super::*;
use crate::testing::{Case, bits, weight};
use crate::{Kernels, Param};

/// Weights of a scale that keeps values near one.
fn layer(i: usize, o: usize, pool: usize) -> PictureLayer {
    let small = |name: &str, shape: &[usize], scale: f64, shift: f64| {
        let value = weight(name, shape).value().affine(scale, shift).unwrap();
        Weight::from(Param::new(name, &value.detach()).unwrap())
    };
    PictureLayer {
        weight: small("weight", &[o, 3, 3, i], 0.3, 0.0),
        bias: small("bias", &[o], 0.3, 0.0),
        norm: LayerNorm {
            weight: small("norm.weight", &[o], 0.2, 1.0),
            bias: small("norm.bias", &[o], 0.3, 0.0),
        },
        pool,
    }
}

fn weights(layer: &PictureLayer) -> Vec<Weight> {
    layer.weights().map(Weight::clone).to_vec()
}

#[test]
fn fused_equals_composed_for_odd_sizes_of_maps_channels_and_pools() {
    for (count, height, width, i, o, pool) in [
        (1, 1, 1, 1, 2, 1),
        (2, 1, 7, 3, 5, 1),
        (3, 5, 3, 2, 33, 1),
        (1, 6, 6, 3, 16, 2),
        (2, 7, 5, 4, 3, 2),
        (5, 9, 11, 7, 40, 3),
        (2, 2, 70, 1, 9, 2),
    ] {
        let layer = layer(i, o, pool);
        let grid = Grid { height, width };
        let case = Case::new(&weights(&layer)).input((count * grid.cells(), i));
        case.check_once(|x, pass| convolve(&x[0], grid, &layer, pass));
    }
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() -> Result<()> {
    let layer = layer(3, 10, 2);
    let (grid, params) = (
        Grid {
            height: 8,
            width: 6,
        },
        weights(&layer),
    );
    let x = weight("x", (37 * grid.cells(), 3)).value().detach();
    let run = || -> Result<Vec<Vec<u32>>> {
        let pass = Pass::train(Kernels::Fused, 0, 0);
        let y = convolve(&x, grid, &layer, &pass)?;
        let params = params.iter().map(|weight| weight.param().unwrap());
        params.clone().for_each(Param::clear);
        crate::backward(&y.sqr()?.sum_all()?, params.clone())?;
        let gradients = params.map(|param| bits(param.gradient().expect("a gradient")));
        Ok(std::iter::once(bits(&y)).chain(gradients).collect())
    };
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(run)
    };
    let one = with(1)?;
    for threads in [2, 3, 7] {
        assert!(with(threads)? == one, "{threads} threads");
    }
    Ok(())
}

/// A layer that only convolves one map of one channel: two outputs, w and 0, whose norm is 1 and -1 if w is positive.
#[test]
fn cells_outside_of_the_map_are_zero() -> Result<()> {
    let mut kernel = vec![0.0f32; 18];
    kernel[..9].fill(1.0);
    let fixed = |values: Vec<f32>, shape: &[usize]| {
        let value = Tensor::from_vec(values, shape, &Device::Cpu)?;
        Result::Ok(Weight::read_only("fixed", value))
    };
    let layer = PictureLayer {
        weight: fixed(kernel, &[2, 3, 3, 1])?,
        // Cells with the sum 4 are the corners; sums above 5 are elsewhere.
        bias: fixed(vec![-5.0, 0.0], &[2])?,
        norm: LayerNorm {
            weight: fixed(vec![1.0; 2], &[2])?,
            bias: fixed(vec![0.0; 2], &[2])?,
        },
        pool: 1,
    };
    let grid = Grid {
        height: 3,
        width: 4,
    };
    let x = Tensor::ones((12, 1), candle_core::DType::F32, &Device::Cpu)?;
    for kernels in Kernels::ALL {
        let y = convolve(&x, grid, &layer, &Pass::eval(kernels))?;
        let first: Vec<f32> = y.narrow(1, 0, 1)?.flatten_all()?.to_vec1()?;
        let corners: Vec<bool> = first.iter().map(|&y| y < 0.5).collect();
        let expected = [0, 3, 8, 11];
        assert!((0..12).all(|cell| corners[cell] == expected.contains(&cell)));
    }
    Ok(())
}

#[test]
fn a_map_that_pooling_would_empty_and_other_wrong_shapes_are_errors() {
    let pass = Pass::eval(Kernels::Fused);
    let grid = |height, width| Grid { height, width };
    let x = weight("x", (12, 3)).value().detach();
    assert!(convolve(&x, grid(3, 4), &layer(3, 2, 3), &pass).is_ok());
    assert!(convolve(&x, grid(3, 4), &layer(3, 2, 4), &pass).is_err());
    assert!(convolve(&x, grid(3, 4), &layer(2, 2, 1), &pass).is_err());
    assert!(convolve(&x, grid(5, 1), &layer(3, 2, 1), &pass).is_err());
}

#[test]
fn gradients_equal_finite_differences() -> Result<()> {
    let layer = layer(2, 6, 2);
    let grid = Grid {
        height: 5,
        width: 4,
    };
    let x = weight("x", (2 * grid.cells(), 2)).value().detach();
    let loss = |backward: bool| -> Result<f64> {
        let y = convolve(&x, grid, &layer, &Pass::train(Kernels::Fused, 0, 0))?;
        let factors = weight("factors", y.shape()).value().detach();
        let all = (y * factors)?;
        if backward {
            let weights = weights(&layer);
            let params = weights.iter().filter_map(Weight::param);
            crate::backward(&all.sum_all()?, params)?;
        }
        let values: Vec<f32> = all.flatten_all()?.to_vec1()?;
        Ok(values.into_iter().map(f64::from).sum())
    };
    loss(true)?;
    for weight in weights(&layer) {
        let param = weight.param().unwrap();
        let gradient: Vec<f32> = param.gradient().unwrap().flatten_all()?.to_vec1()?;
        let value = param.value().copy()?;
        let flat: Vec<f32> = value.flatten_all()?.to_vec1()?;
        let at = |index: usize, step: f32| -> Result<f64> {
            let mut moved = flat.clone();
            moved[index] += step;
            param.set(&Tensor::from_vec(moved, value.shape(), value.device())?)?;
            loss(false)
        };
        for index in (0..flat.len()).step_by(flat.len().div_ceil(7)) {
            let slope = (at(index, 1e-3)? - at(index, -1e-3)?) / 2e-3;
            let error = (slope - f64::from(gradient[index])).abs();
            assert!(
                error < 1e-2,
                "{param:?}[{index}]: {} and {slope}",
                gradient[index]
            );
        }
        param.set(&value)?;
    }
    Ok(())
}
