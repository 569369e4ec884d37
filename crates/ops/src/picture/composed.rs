//! The layer from plain candle operations.

use candle_core::{Result, Tensor};

use super::{PictureLayer, Sizes};
use crate::norm::norm;
use crate::pass::Pass;

pub(super) fn layer(x: &Tensor, sizes: Sizes, layer: &PictureLayer, pass: &Pass) -> Result<Tensor> {
    let weight = layer.weight.value().reshape((sizes.o, 9 * sizes.i))?;
    let z = windows(x, sizes)?.matmul(&weight.t()?)?;
    let z = z.broadcast_add(layer.bias.value())?;
    max_pool(&norm(&z, &layer.norm, pass)?.relu()?, sizes)
}

/// The 3 × 3 cells around each, side by side: `[n, i]` to `[n, 9i]`.
fn windows(x: &Tensor, sizes: Sizes) -> Result<Tensor> {
    let (height, width) = (sizes.grid.height, sizes.grid.width);
    let (n, i) = x.dims2()?;
    let mut rows = Vec::with_capacity(9 * n);
    for cell in 0..n {
        let (line, column) = (cell / width % height, cell % width);
        for (down, right) in (0..9).map(|place| (place / 3, place % 3)) {
            let inside =
                (1..=height).contains(&(line + down)) && (1..=width).contains(&(column + right));
            // Row 0 is zeros.
            let row = (cell + down * width + right).wrapping_sub(width);
            rows.push(if inside { row as u32 } else { 0 });
        }
    }
    let zeros = Tensor::zeros((1, i), x.dtype(), x.device())?;
    let rows = Tensor::from_vec(rows, 9 * n, x.device())?;
    let cells = Tensor::cat(&[&zeros, x], 0)?.index_select(&rows, 0)?;
    cells.reshape((n, 9 * i))
}

/// The largest of every p × p cells; the first of those that are equal.
fn max_pool(x: &Tensor, sizes: Sizes) -> Result<Tensor> {
    let (grid, to, p) = (sizes.grid, sizes.pooled(), sizes.pool);
    if p == 1 {
        return Ok(x.clone());
    }
    let count = x.dim(0)? / grid.cells();
    let candidates = (0..p * p).map(|place| {
        let rows = (0..count * to.cells()).map(|cell| {
            let (map, cell) = (cell / to.cells(), cell % to.cells());
            let line = cell / to.width * p + place / p;
            let column = cell % to.width * p + place % p;
            (map * grid.cells() + line * grid.width + column) as u32
        });
        let rows = Tensor::from_iter(rows, x.device())?;
        x.index_select(&rows, 0)
    });
    let all = Tensor::stack(&candidates.collect::<Result<Vec<_>>>()?, 0)?; // (p², n, o)
    let highest = all.detach().argmax_keepdim(0)?;
    all.gather(&highest, 0)?.squeeze(0)
}
