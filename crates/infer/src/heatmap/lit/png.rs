//! The same as pixels. The renderer of SVG is built without decoders of pictures, so these are drawn here.

use resvg::tiny_skia::{FilterQuality, IntSize, Pixmap, PixmapPaint, Transform};

use super::image::Shade;
use super::{Layout, LitPicture, svg};
use crate::heatmap::png::{Png, canvas};
use crate::{Error, Result};

pub(super) fn render(picture: &LitPicture) -> Result<Png> {
    let layout = Layout::of(picture);
    let mut canvas = canvas(&svg::write(picture, &layout, None))?;
    let pixels = opaque(picture)?;
    for (block, at) in picture.blocks.iter().zip(&layout.blocks) {
        let words = std::iter::once(None).chain(block.words.iter().map(Some));
        for (word, &place) in words.zip(&at.panels) {
            let mut draw = |image: &Pixmap| {
                let (w, h) = (image.width() as f32, image.height() as f32);
                let scale = canvas.scale;
                let transform = Transform::from_translate(place.0, place.1)
                    .pre_scale(layout.panel.0 / w, layout.panel.1 / h)
                    .post_scale(scale, scale);
                let paint = PixmapPaint {
                    quality: FilterQuality::Bilinear,
                    ..PixmapPaint::default()
                };
                let pixmap = &mut canvas.pixmap;
                pixmap.draw_pixmap(0, 0, image.as_ref(), &paint, transform, None);
            };
            draw(&pixels);
            if let Some(word) = word {
                let shade = Shade::of(&word.weights, picture.regions, picture.pixels.size());
                let black = shade.opacity.iter().flat_map(|&opacity| [0, 0, 0, opacity]);
                draw(&pixmap(shade.size, black.collect())?);
            }
        }
    }
    canvas.finish()
}

fn opaque(picture: &LitPicture) -> Result<Pixmap> {
    let rgb = picture.pixels.rgb().chunks_exact(3);
    let rgba = rgb.flat_map(|rgb| [rgb[0], rgb[1], rgb[2], 255]);
    pixmap(picture.pixels.size(), rgba.collect())
}

fn pixmap((width, height): (usize, usize), rgba: Vec<u8>) -> Result<Pixmap> {
    let size = IntSize::from_wh(width as u32, height as u32);
    let pixmap = size.and_then(|size| Pixmap::from_vec(rgba, size));
    pixmap.ok_or_else(|| Error::Draw {
        message: format!("invalid size of {width} × {height} pixels"),
    })
}
