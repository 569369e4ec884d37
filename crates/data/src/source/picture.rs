//! Pictures of pixels: PNG and JPEG.

use super::Problem;
use super::file::Kind;
use attend_batch::PictureShape;
use image::imageops::{self, FilterType};
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, Rgb, RgbImage};
use std::io::Cursor;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;

/// The most pixels of a picture, and the most bytes that they take.
const MOST_PIXELS: u64 = 64 << 20;
const MOST_BYTES: u64 = 256 << 20;
/// Larger pictures are decoded one at a time, so that memory does not grow with the number of threads.
const LARGE: u64 = 4 << 20;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The picture, stretched to this shape.
pub(super) fn decode(bytes: &[u8], kind: Kind, shape: PictureShape) -> Result<Vec<u8>, Problem> {
    // A panic of a decoder is a file that cannot be read.
    let decoded = panic::catch_unwind(AssertUnwindSafe(|| decode_now(bytes, kind, shape)));
    decoded.unwrap_or_else(|_| Err(damaged(kind, "its decoder gave up")))
}

fn decode_now(bytes: &[u8], kind: Kind, shape: PictureShape) -> Result<Vec<u8>, Problem> {
    let format = match kind {
        Kind::Jpeg => ImageFormat::Jpeg,
        _ => ImageFormat::Png,
    };
    if kind == Kind::Jpeg && !jpeg_ends(bytes) {
        return Err(damaged(kind, "the end is missing"));
    }
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(2 * MOST_BYTES);
    reader.limits(limits);
    let failed = |error: image::ImageError| damaged(kind, &error.to_string());
    let mut decoder = reader.into_decoder().map_err(failed)?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 {
        return Err(Problem::new("has no pixels", "write it again"));
    }
    if pixels > MOST_PIXELS || decoder.total_bytes() > MOST_BYTES {
        let most = MOST_PIXELS >> 20;
        return Err(Problem::new(
            format!("has {width} × {height} pixels, which are too many"),
            format!(
                "make it smaller: at most {most} Mi pixels are read, and a model sees few of them"
            ),
        ));
    }
    let _alone = (pixels > LARGE).then(|| ONE_AT_A_TIME.lock());
    let orientation = decoder.orientation().map_err(failed)?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(failed)?;
    picture.apply_orientation(orientation);
    let picture = over_white(picture);
    let (width, height) = (shape.width as u32, shape.height as u32);
    let resized = imageops::resize(&picture, width, height, FilterType::Triangle);
    Ok(channels(resized, shape))
}

/// The bytes of a picture that has its size already: grey, if the shape has one channel.
pub(super) fn channels(picture: RgbImage, shape: PictureShape) -> Vec<u8> {
    match shape.channels {
        1 => DynamicImage::ImageRgb8(picture).into_luma8().into_raw(),
        _ => picture.into_raw(),
    }
}

fn over_white(picture: DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.into_rgb8();
    }
    let picture = picture.into_rgba8();
    let mut flat = RgbImage::new(picture.width(), picture.height());
    for (flat, pixel) in flat.pixels_mut().zip(picture.pixels()) {
        let [red, green, blue, alpha] = pixel.0.map(u32::from);
        let over = |value: u32| ((value * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
        *flat = Rgb([over(red), over(green), over(blue)]);
    }
    flat
}

/// Whether a JPEG has its end after the beginning of its pixels. The decoder makes do without.
fn jpeg_ends(bytes: &[u8]) -> bool {
    const SCAN: u8 = 0xda;
    const END: [u8; 2] = [0xff, 0xd9];
    let mut at = 2; // after the marker of the start
    loop {
        let Some(&[0xff, marker, high, low]) = bytes.get(at..at + 4) else {
            return true; // damaged in a way that the decoder sees
        };
        if marker == SCAN {
            return bytes[at..].windows(2).any(|pair| pair == END);
        }
        at += match marker {
            0xff => 1, // filling
            _ => 2 + usize::from(u16::from_be_bytes([high, low])),
        };
    }
}

fn damaged(kind: Kind, why: &str) -> Problem {
    let what = format!("damaged {kind}: {why}");
    Problem::new(what, "download it again, or write it again")
}
