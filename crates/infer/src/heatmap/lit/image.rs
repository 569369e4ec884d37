//! The pixels of a picture, and the shade over them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// How dark a region is that has no attention, from 0 to 1.
const DARKEST: f32 = 0.82;
/// Pixels of the longer side of a shade. It is smooth, so few are enough.
const SHADE: usize = 64;
/// The standard deviation of the light of a region, in widths of a region.
const SPREAD: f32 = 0.5;

/// A picture in red, green and blue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    width: usize,
    height: usize,
    /// `[height, width, 3]`
    rgb: Vec<u8>,
}

impl Pixels {
    /// # Panics
    /// If there are not three bytes for each pixel, or no pixels.
    pub fn new(width: usize, height: usize, rgb: Vec<u8>) -> Self {
        assert!(width * height > 0, "a picture has pixels");
        assert_eq!(rgb.len(), width * height * 3, "bytes of the pixels");
        Self { width, height, rgb }
    }

    /// Width and height.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    #[cfg(feature = "png")]
    pub(super) fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    pub(super) fn to_uri(&self) -> String {
        uri((self.width, self.height), png::ColorType::Rgb, &self.rgb)
    }
}

/// What darkens a picture where there is little attention: black with this opacity.
pub(super) struct Shade {
    pub(super) size: (usize, usize),
    /// `[height, width]`
    pub(super) opacity: Vec<u8>,
}

impl Shade {
    /// For a picture of this size whose regions have these weights. The region with the most has no shade.
    pub(super) fn of(weights: &[f32], regions: (usize, usize), size: (usize, usize)) -> Self {
        let (rows, columns) = regions;
        let longer = size.0.max(size.1).max(1);
        let (w, h) = (
            (SHADE * size.0).div_ceil(longer).max(1),
            (SHADE * size.1).div_ceil(longer).max(1),
        );
        let (across, down) = (spread(w, columns), spread(h, rows));
        let light = |x: usize, y: usize| -> f32 {
            let row = |i: usize| -> f32 {
                let weights = weights[i * columns..][..columns].iter();
                weights.zip(&across[x]).map(|(w, share)| w * share).sum()
            };
            (0..rows).map(|i| down[y][i] * row(i)).sum()
        };
        let lights = (0..h).flat_map(|y| (0..w).map(move |x| (x, y)));
        let lights: Vec<f32> = lights.map(|(x, y)| light(x, y)).collect();
        let most = lights.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        let opacity = lights.iter().map(|light| {
            let lit = (light / most).clamp(0.0, 1.0);
            (DARKEST * (1.0 - lit) * 255.0).round() as u8
        });
        Self {
            size: (w, h),
            opacity: opacity.collect(),
        }
    }

    pub(super) fn to_uri(&self) -> String {
        let black = self.opacity.iter().flat_map(|&opacity| [0, opacity]);
        let bytes: Vec<u8> = black.collect();
        uri(self.size, png::ColorType::GrayscaleAlpha, &bytes)
    }
}

/// For each pixel, the share of each region along one side: a Gaussian around the region's middle. Shares sum to 1, so
/// that equal weights give equal light.
fn spread(pixels: usize, regions: usize) -> Vec<Vec<f32>> {
    let shares = |pixel: usize| {
        let at = (pixel as f32 + 0.5) / pixels as f32 * regions as f32;
        let near = (0..regions).map(|i| {
            let distance = (at - (i as f32 + 0.5)) / SPREAD;
            (-0.5 * distance * distance).exp()
        });
        let near: Vec<f32> = near.collect();
        let sum: f32 = near.iter().sum();
        near.into_iter().map(|share| share / sum).collect()
    };
    (0..pixels).map(shares).collect()
}

/// A PNG file as a URI.
fn uri(size: (usize, usize), color: png::ColorType, bytes: &[u8]) -> String {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, size.0 as u32, size.1 as u32);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(bytes)?;
        writer.finish()
    });
    // To memory, of as many bytes as the size says.
    written.expect("a picture in memory can be written");
    format!("data:image/png;base64,{}", STANDARD.encode(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(shade: &Shade, x: usize, y: usize) -> u8 {
        shade.opacity[y * shade.size.0 + x]
    }

    #[test]
    fn the_region_with_the_most_attention_is_lit_and_far_ones_are_dark() {
        let mut weights = vec![0.0; 12];
        weights[5] = 1.0; // row 1, column 1 of 3 rows and 4 columns
        let shade = Shade::of(&weights, (3, 4), (200, 150));
        assert_eq!(shade.size, (64, 48));
        assert!(at(&shade, 24, 24) < 10, "{}", at(&shade, 24, 24));
        let dark = (DARKEST * 255.0) as u8;
        for (x, y) in [(63, 0), (63, 47), (62, 24)] {
            assert!(at(&shade, x, y) >= dark - 1, "{}", at(&shade, x, y));
        }
    }

    #[test]
    fn equal_weights_leave_the_whole_picture_lit() {
        let shade = Shade::of(&[0.25; 4], (2, 2), (10, 10));
        assert!(
            shade.opacity.iter().all(|&it| it <= 1),
            "{:?}",
            shade.opacity
        );
    }

    #[test]
    fn no_attention_at_all_is_dark_and_not_an_error() {
        let shade = Shade::of(&[0.0; 4], (2, 2), (10, 1));
        assert!(shade.opacity.iter().all(|&it| it > 200));
    }
}
