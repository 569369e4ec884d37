//! The layer as one operation of candle's graph.

use std::sync::Mutex;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};

use super::backward::backward;
use super::forward::{Kept, forward};
use super::{PictureLayer, Sizes};
use crate::cpu::{self, slice, view};
use crate::pass::Pass;
use crate::profile::{self, Part};
use crate::threads::stay_awake;

pub(super) struct ConvolutionOp {
    sizes: Sizes,
    layer: PictureLayer,
    trains: bool,
    /// Whether the gradient of the input is needed: that of pictures is not.
    of_input: bool,
    kept: Mutex<Option<Kept>>,
}

impl ConvolutionOp {
    pub(super) fn new(sizes: Sizes, layer: &PictureLayer, pass: &Pass, of_input: bool) -> Self {
        Self {
            sizes,
            layer: layer.clone(),
            trains: pass.trains(),
            of_input,
            kept: Mutex::new(None),
        }
    }
}

impl CustomOp1 for ConvolutionOp {
    fn name(&self) -> &'static str {
        "convolve"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let _time = profile::time(Part::Convolution);
        stay_awake();
        let x = slice(x, layout)?;
        let (grid, to) = (self.sizes.grid, self.sizes.pooled());
        let rows = x.len() / (grid.cells() * self.sizes.i) * to.cells();
        let mut y = vec![0.0; rows * self.sizes.o];
        let kept = forward(x, self.sizes, &self.layer, &mut y, self.trains)?;
        *self.kept.lock().unwrap_or_else(|e| e.into_inner()) = kept;
        Ok((CpuStorage::F32(y), (rows, self.sizes.o).into()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let _time = profile::time(Part::ConvolutionBackward);
        stay_awake();
        let kept = self.kept.lock().unwrap_or_else(|e| e.into_inner()).take();
        let Some(kept) = kept else {
            bail!("convolve: the backward pass runs once, after a forward pass in training")
        };
        let size = if self.of_input { x.elem_count() } else { 0 };
        let mut dx = vec![0.0; size];
        let (xs, dys) = (view(x)?, view(dy)?);
        backward(&xs, self.sizes, &self.layer, &kept, &dys, &mut dx)?;
        // Candle needs a gradient of everything that it recorded.
        dx.resize(x.elem_count(), 0.0);
        cpu::like(dx, x).map(Some)
    }
}
