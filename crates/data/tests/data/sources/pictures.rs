use super::*;
use image::{ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use std::io::Cursor;

/// Two fields of colour, the second from column 6 on.
pub(crate) const SVG: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='12' height='8'>\
    <rect width='6' height='8' fill='#ff0000'/><rect x='6' width='6' height='8' fill='#0000ff'/></svg>";

pub(crate) fn fields(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, _| match x < width / 2 {
        true => Rgb([255, 0, 0]),
        false => Rgb([0, 0, 255]),
    })
}

pub(crate) fn encode(picture: &RgbImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn values(paths: &[PathBuf], shape: PictureShape) -> Vec<f32> {
    let Source::Pictures(pictures) = read(SourceShape::Pictures(shape), paths).unwrap() else {
        panic!("not pictures");
    };
    assert_eq!(pictures.shape, shape);
    assert_eq!(pictures.segments.lengths(), vec![1; paths.len()]);
    pictures.values
}

fn difference(a: &[f32], b: &[f32]) -> f32 {
    let pairs = a.iter().zip(b);
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn the_same_picture_in_every_format_gives_the_same_values() {
    let files = Files::new();
    let png = files.write("a.png", encode(&fields(12, 8), ImageFormat::Png));
    let svg = files.write("a.svg", SVG);
    let jpeg = files.write("a.jpeg", encode(&fields(12, 8), ImageFormat::Jpeg));
    let unnamed = files.write("a", encode(&fields(12, 8), ImageFormat::Png));
    let exact = values(std::slice::from_ref(&png), SMALL);
    for y in 0..8 {
        for x in 0..12 {
            let pixel = &exact[3 * (12 * y + x)..][..3];
            let want = if x < 6 {
                [1.0, -1.0, -1.0]
            } else {
                [-1.0, -1.0, 1.0]
            };
            assert_eq!(pixel, want, "{x}, {y}");
        }
    }
    assert_eq!(values(&[svg], SMALL), exact);
    assert_eq!(values(&[unnamed], SMALL), exact);
    assert!(difference(&values(&[jpeg], SMALL), &exact) < 1.0);
}

#[test]
fn a_picture_is_stretched_to_the_size_of_the_model_without_aliasing() {
    let files = Files::new();
    let large = files.write("large.png", encode(&fields(120, 40), ImageFormat::Png));
    let exact = files.write("exact.png", encode(&fields(12, 8), ImageFormat::Png));
    let (large, exact) = (values(&[large], SMALL), values(&[exact], SMALL));
    let middle = |i: &usize| !(4..=7).contains(&(i / 3 % 12));
    for i in (0..exact.len()).filter(middle) {
        assert!(
            (large[i] - exact[i]).abs() < 0.02,
            "value {i}: {}",
            large[i]
        );
    }
    // Stripes that are finer than the pixels of the model become their mean.
    let stripes = RgbImage::from_fn(480, 320, |x, _| Rgb([255 * (x % 2) as u8; 3]));
    let stripes = values(
        &[files.write("s.png", encode(&stripes, ImageFormat::Png))],
        SMALL,
    );
    assert!(
        stripes.iter().all(|value| value.abs() < 0.02),
        "{stripes:?}"
    );
}

#[test]
fn what_is_transparent_becomes_white_and_grey_has_one_channel() {
    let files = Files::new();
    let clear = RgbaImage::from_pixel(12, 8, Rgba([0, 0, 0, 0]));
    let mut bytes = Cursor::new(Vec::new());
    clear.write_to(&mut bytes, ImageFormat::Png).unwrap();
    let clear = files.write("clear.png", bytes.into_inner());
    let nothing = files.write(
        "nothing.svg",
        "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
    );
    assert!(
        values(&[clear, nothing], SMALL)
            .iter()
            .all(|&value| value == 1.0)
    );
    let grey = PictureShape {
        channels: 1,
        ..SMALL
    };
    let green = RgbImage::from_pixel(12, 8, Rgb([0, 255, 0]));
    let green = files.write("green.png", encode(&green, ImageFormat::Png));
    let values = values(&[green], grey);
    assert_eq!(values.len(), 96);
    assert!(
        values.iter().all(|value| (0.3..0.6).contains(value)),
        "{values:?}"
    );
}

#[test]
fn an_svg_of_any_size_is_drawn_at_the_size_of_the_model() {
    let files = Files::new();
    let small = files.write("a.svg", SVG);
    let huge = SVG.replace(
        "width='12' height='8'",
        "width='30000' height='30000' viewBox='0 0 12 8' preserveAspectRatio='none'",
    );
    let huge = files.write("b.svg", huge);
    let (small, huge) = (values(&[small], SMALL), values(&[huge], SMALL));
    assert!(difference(&small, &huge) < 0.02);
}

#[test]
fn order_and_bits_do_not_depend_on_the_number_of_threads() {
    let files = Files::new();
    let paths: Vec<PathBuf> = (0..40)
        .map(|i| {
            let picture = RgbImage::from_fn(17 + i, 23, |x, y| {
                Rgb([(x * i) as u8, (y * 9) as u8, i as u8])
            });
            files.write(&format!("{i}.png"), encode(&picture, ImageFormat::Png))
        })
        .collect();
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(|| values(&paths, SMALL))
    };
    let one = on(1);
    assert_eq!(one, on(4));
    assert_eq!(
        &one[SMALL.values() * 7..][..SMALL.values()],
        values(&paths[7..8], SMALL)
    );
}

#[test]
fn text_in_place_of_pictures_is_refused() {
    let error = read(SourceShape::Text, &[]).unwrap_err();
    assert!(error.to_string().contains("is text"), "{error}");
}
