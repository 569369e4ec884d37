//! Convolutional layers over pictures (LeCun et al. 1989), as in the encoder of Xu et al. 2015.
//!
//! Maps are rows, one for each cell: picture after picture, line after line, `[count · height · width, channels]`.
//! i input and o output channels, p the side of a pooled square:
//!
//! y = pool(relu(LN(W * x + b))),
//!
//! where * is a convolution of size 3 × 3 with zeros around the map, LN normalises the channels of each cell
//! (Ba, Kiros and Hinton 2016), and pool takes the largest of every p × p cells.

mod backward;
mod composed;
mod forward;
mod fused;
mod pad;
#[cfg(test)]
mod tests;

use candle_core::{Result, Tensor, bail};

use crate::norm::LayerNorm;
use crate::pass::{Kernels, Pass};
use crate::weight::{Weight, recorded};
use fused::ConvolutionOp;

/// The size of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    pub height: usize,
    pub width: usize,
}

impl Grid {
    pub fn cells(self) -> usize {
        self.height * self.width
    }

    /// The grid after pooling squares with sides of `pool` cells. Cells that fill no square are dropped.
    pub fn pooled(self, pool: usize) -> Self {
        Self {
            height: self.height / pool,
            width: self.width / pool,
        }
    }
}

/// The weights of one layer.
#[derive(Clone, Debug)]
pub struct PictureLayer {
    /// W `[o, 3, 3, i]`: for each output its lines from top to bottom, cells from left to right, channels.
    pub weight: Weight,
    /// b `[o]`
    pub bias: Weight,
    pub norm: LayerNorm,
    /// p; 1 for no pooling.
    pub pool: usize,
}

/// The sizes of a layer and of the maps that it is applied to.
#[derive(Clone, Copy)]
struct Sizes {
    grid: Grid,
    /// Input channels.
    i: usize,
    /// Output channels.
    o: usize,
    pool: usize,
}

impl Sizes {
    /// The grid of the output.
    fn pooled(&self) -> Grid {
        self.grid.pooled(self.pool)
    }
}

/// One layer over a batch of maps: `[count · cells, i]` to `[count · pooled cells, o]`.
pub fn convolve(x: &Tensor, grid: Grid, layer: &PictureLayer, pass: &Pass) -> Result<Tensor> {
    let (rows, channels) = x.dims2()?;
    let (o, height, width, i) = layer.weight.value().dims4()?;
    let pool = layer.pool.max(1);
    let sizes = Sizes { grid, i, o, pool };
    if (height, width) != (3, 3) || channels != i || sizes.pooled().cells() == 0 {
        bail!(
            "a layer of {i} channels that pools {pool} by {pool} cells cannot read maps of {} by {} with {channels}",
            grid.height,
            grid.width
        );
    }
    if !rows.is_multiple_of(grid.cells()) {
        bail!("{rows} rows are no whole maps of {} cells", grid.cells());
    }
    let x = &x.contiguous()?;
    match (pass.kernels, pass.trains()) {
        (Kernels::Composed, _) => composed::layer(x, sizes, layer, pass),
        (Kernels::Fused, true) => {
            let op = ConvolutionOp::new(sizes, layer, pass, x.track_op());
            recorded(x, layer.weights())?.apply_op1(op)
        }
        (Kernels::Fused, false) => {
            x.apply_op1_no_bwd(&ConvolutionOp::new(sizes, layer, pass, false))
        }
    }
}

impl PictureLayer {
    fn weights(&self) -> [&Weight; 4] {
        [&self.weight, &self.bias, &self.norm.weight, &self.norm.bias]
    }
}
