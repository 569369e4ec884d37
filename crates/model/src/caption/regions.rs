use attend_batch::{Segments, Source, SourceShape};
use attend_ops::{DropoutSite, Grid, LayerNorm, Linear, Pass, dropout, linear, norm};
use candle_core::{Device, Result, Tensor, bail};

use super::blocks::Blocks;
use super::config::CaptionConfig;
use super::places::Places;
use crate::weights::Init;

/// What divides a source into the annotation vectors that are attended to (Xu et al. 2015, §3.1.1): the regions of
/// a picture, or the rows of features, each mapped to the decoder's width.
pub(super) struct Regions {
    shape: SourceShape,
    /// How many regions a picture has.
    count: usize,
    blocks: Option<Blocks>,
    projection: Linear,
    norm: LayerNorm,
    places: Option<Places>,
    drop: DropoutSite,
    device: Device,
}

impl Regions {
    pub(super) fn new(config: &CaptionConfig, init: &mut Init) -> Result<Self> {
        let (shape, d) = (config.source(), config.width());
        let map = config.regions();
        let blocks = match shape {
            SourceShape::Pictures(shape) => {
                let (height, width) = (shape.height, shape.width);
                let grid = Grid { height, width };
                Some(Blocks::new(config, grid, shape.channels, init)?)
            }
            _ => None,
        };
        let inputs = match (&blocks, shape) {
            (Some(blocks), _) => blocks.width,
            (None, SourceShape::Features { width }) => width,
            _ => bail!("a captioning model reads pictures or features"),
        };
        let places = match map {
            _ if !config.positions => None,
            Some(map) => Some(Places::of_map(map, d, init.device)?),
            None => Some(Places::of_rows(d, init.device)),
        };
        Ok(Self {
            shape,
            count: map.map_or(0, Grid::cells),
            blocks,
            projection: init.linear("model.encoder.projection", inputs, d)?,
            norm: init.norm("model.encoder.projection_norm", d)?,
            places,
            drop: DropoutSite::new(config.dropout, "model.encoder.projection"),
            device: init.device.clone(),
        })
    }

    /// The regions of every picture, or rows of every sequence, `[n, d]`, and where each begins.
    pub(super) fn forward(&self, source: &Source, pass: &Pass) -> Result<(Tensor, Segments)> {
        if source.shape() != self.shape {
            bail!(
                "this model reads {}, not {}",
                named(self.shape),
                named(source.shape())
            );
        }
        let (x, segments) = match (source, &self.blocks) {
            (Source::Pictures(pictures), Some(blocks)) => {
                let count = pictures.segments.count();
                let channels = pictures.shape.channels;
                let rows = pictures.values.len() / channels;
                let pixels = Tensor::from_slice(&pictures.values, (rows, channels), &self.device)?;
                let regions = std::iter::repeat_n(self.count, count);
                let segments = pictures.segments.with_lengths(regions);
                (blocks.forward(pixels, pass)?, segments)
            }
            (Source::Features(features), None) => {
                let segments = features.segments.clone();
                if segments.lengths().contains(&0) {
                    bail!("a source without rows of features cannot be encoded");
                }
                let shape = (segments.rows(), features.width);
                let rows = Tensor::from_slice(&features.values, shape, &self.device)?;
                (rows, segments)
            }
            _ => bail!("this model does not read {}", named(source.shape())),
        };
        let mut x = norm(&linear(&x, &[&self.projection], pass)?, &self.norm, pass)?;
        if let Some(places) = &self.places {
            x = places.add(&x, &segments)?;
        }
        let drop = self.drop.of_rows(&segments, pass);
        Ok((dropout(&x, &drop, pass)?, segments))
    }
}

fn named(shape: SourceShape) -> String {
    match shape {
        SourceShape::Text => "token ids".into(),
        SourceShape::Pictures(shape) => {
            let (height, width) = (shape.height, shape.width);
            let kind = if shape.channels == 1 { "grey " } else { "" };
            format!("{kind}pictures of {height} by {width} pixels")
        }
        SourceShape::Features { width } => format!("rows of {width} features"),
    }
}
