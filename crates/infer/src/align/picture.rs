//! Attention to the regions of a picture, on the picture.

use std::path::Path;

use attend_batch::{PictureShape, Source, SourceShape};
use attend_data::SourceReader;
use attend_model::{AttentionMap, Place};

use super::{Aligner, Alignment, weights};
use crate::heatmap::{LitPicture, Pixels};
use crate::{Error, Result};

/// Pixels of the longer side of a picture that is drawn.
const DRAWN_PIXELS: usize = 320;

impl Aligner<'_> {
    /// A picture as the model sees it, stretched to the shape of its pictures, but with more pixels. An error if it
    /// does not read pictures.
    pub fn pixels(&self, path: &Path) -> Result<Pixels> {
        let SourceShape::Pictures(shape) = self.model.source() else {
            return Err(Error::Usage {
                message: format!("the model reads {}, not pictures", self.model.source()),
                hint: "draw a heatmap".into(),
            });
        };
        let longer = shape.height.max(shape.width).max(1);
        let side = |side: usize| (side * DRAWN_PIXELS / longer).max(1);
        let shape = PictureShape {
            height: side(shape.height),
            width: side(shape.width),
            channels: 3,
        };
        let reader = SourceReader::new(SourceShape::Pictures(shape), 1);
        let Source::Pictures(pictures) = reader.read(&[path])? else {
            return Err(Error::Draw {
                message: format!("{} is not a picture", path.display()),
            });
        };
        let bytes = pictures.values.iter().map(|value| (value + 1.0) * 127.5);
        let rgb = bytes.map(|byte| byte.round().clamp(0.0, 255.0) as u8);
        Ok(Pixels::new(shape.width, shape.height, rgb.collect()))
    }
}

impl Alignment {
    /// Draws maps of the cross-attention on the picture that is the source: for each of them, or with `mean` for all
    /// of them, the picture for each token of the caption but `</s>`. An error if the source is no picture.
    pub fn draw_on(
        &self,
        pixels: Pixels,
        maps: &[&AttentionMap],
        mean: bool,
    ) -> Result<LitPicture> {
        let Some(regions) = self.regions else {
            return Err(Error::Usage {
                message: format!("{}: the source is not a picture", self.source.text),
                hint: "draw a heatmap".into(),
            });
        };
        let words = &self.target.pieces;
        let words = &words[..words.len().saturating_sub(1)];
        let lit = LitPicture::new(pixels, regions).described(self.description(Place::Cross));
        if mean {
            return Ok(lit.with("mean", words, self.mean(maps)?));
        }
        maps.iter().try_fold(lit, |lit, map| {
            let title = format!("layer {}, head {}", map.layer + 1, map.head + 1);
            Ok(lit.with(title, words, weights(map)?))
        })
    }
}
