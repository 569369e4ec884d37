//! Pictures of shapes: SVG, drawn at the size that a model reads.

mod markup;
mod style;
mod work;

use super::Problem;
use super::picture::channels;
use attend_batch::PictureShape;
use image::RgbImage;
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{ImageHrefResolver, Options, Tree};
use std::thread;

/// The most bytes of a document.
const MOST_BYTES: usize = 4 << 20;
/// The stack of the thread that draws. The library calls itself for each level of nesting, which
/// [`markup::check`] limits.
const STACK: usize = 32 << 20;

/// The picture, stretched to this shape, on white. Text is not drawn: which fonts there are depends on the system.
pub(super) fn decode(bytes: &[u8], shape: PictureShape) -> Result<Vec<u8>, Problem> {
    if bytes.len() > MOST_BYTES {
        let what = format!("has more than {} MiB of SVG", MOST_BYTES >> 20);
        return Err(Problem::new(what, "simplify it, or convert it to PNG"));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Problem::new("is SVG that is not valid UTF-8", "convert it to UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    markup::check(text)?;
    thread::scope(|scope| {
        let draw = thread::Builder::new().stack_size(STACK);
        let drawn = draw.spawn_scoped(scope, || draw_now(text, shape));
        let drawn = drawn.map_err(|error| {
            Problem::new(
                format!("there is no thread to draw it: {error}"),
                "try again",
            )
        })?;
        // A panic of the library is a file that cannot be drawn.
        let gave_up = |_| {
            Err(Problem::new(
                "is SVG that cannot be drawn",
                "convert it to PNG",
            ))
        };
        drawn.join().unwrap_or_else(gave_up)
    })
}

fn draw_now(text: &str, shape: PictureShape) -> Result<Vec<u8>, Problem> {
    let options = Options {
        image_href_resolver: ImageHrefResolver {
            resolve_data: Box::new(|_, _, _| None),
            resolve_string: Box::new(|_, _| None),
        },
        ..Options::default()
    };
    let tree = Tree::from_str(text, &options).map_err(|error| {
        let what = format!("damaged SVG: {error}");
        Problem::new(what, "write it again, or convert it to PNG")
    })?;
    work::check(tree.root(), shape)?;
    let (width, height) = (shape.width as u32, shape.height as u32);
    let pixmap = Pixmap::new(width, height);
    let mut pixmap = pixmap
        .ok_or_else(|| Problem::new("has no pixels at the model's size", "make pictures larger"))?;
    pixmap.fill(Color::WHITE);
    let size = tree.size();
    let (x, y) = (width as f32 / size.width(), height as f32 / size.height());
    resvg::render(&tree, Transform::from_scale(x, y), &mut pixmap.as_mut());
    // On white, every pixel is opaque.
    let pixels = pixmap.data().chunks_exact(4).flat_map(|pixel| &pixel[..3]);
    let picture = RgbImage::from_raw(width, height, pixels.copied().collect());
    Ok(channels(picture.unwrap_or_default(), shape))
}
