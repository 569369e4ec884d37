use attend_ops::{Grid, Pass, PictureLayer, convolve};
use candle_core::{Result, Tensor};

use super::config::CaptionConfig;
use crate::weights::Init;

/// The convolutional layers that divide a picture into regions.
pub(super) struct Blocks {
    /// Each with the map that it reads.
    layers: Vec<(Grid, PictureLayer)>,
    /// Channels of the last map.
    pub(super) width: usize,
}

impl Blocks {
    /// For maps of this size with so many channels.
    pub(super) fn new(
        config: &CaptionConfig,
        mut grid: Grid,
        channels: usize,
        init: &mut Init,
    ) -> Result<Self> {
        let mut width = channels;
        let mut layers = Vec::new();
        for (number, block) in config.blocks.iter().enumerate() {
            for n in 0..block.convolutions {
                let name = format!("model.encoder.blocks.{number}");
                let pool = if n + 1 == block.convolutions {
                    block.pool
                } else {
                    1
                };
                let (weight, bias) =
                    init.convolution(&format!("{name}.convolutions.{n}"), width, block.width)?;
                let layer = PictureLayer {
                    weight,
                    bias,
                    norm: init.norm(&format!("{name}.norms.{n}"), block.width)?,
                    pool,
                };
                layers.push((grid, layer));
                (grid, width) = (grid.pooled(pool), block.width);
            }
        }
        Ok(Self { layers, width })
    }

    /// Pixels `[count · height · width, channels]` to regions `[count · L, width]`.
    pub(super) fn forward(&self, pixels: Tensor, pass: &Pass) -> Result<Tensor> {
        let mut layers = self.layers.iter();
        layers.try_fold(pixels, |x, (grid, layer)| convolve(&x, *grid, layer, pass))
    }
}
