use super::pictures::{SVG, encode, fields};
use super::*;
use image::ImageFormat;

const PICTURES: SourceShape = SourceShape::Pictures(SMALL);

/// A PNG with this size in its header, and pixels of another size.
fn png_bomb(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = encode(&fields(12, 8), ImageFormat::Png);
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let mut checksum = flate2::Crc::new();
    checksum.update(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&checksum.sum().to_be_bytes());
    bytes
}

fn jpeg_bomb(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = encode(&fields(12, 8), ImageFormat::Jpeg);
    let frame = bytes
        .windows(2)
        .position(|pair| pair == [0xff, 0xc0])
        .unwrap();
    bytes[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    bytes[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    bytes
}

#[test]
fn broken_pictures_are_named_with_what_is_wrong() {
    let files = Files::new();
    let png = encode(&fields(12, 8), ImageFormat::Png);
    let jpeg = encode(&fields(120, 80), ImageFormat::Jpeg);
    let half = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    for (name, content, want) in [
        ("half.png", half(&png), "damaged PNG"),
        ("half.jpg", half(&jpeg), "damaged JPEG: the end is missing"),
        ("head.jpg", jpeg[..20].to_vec(), "damaged JPEG"),
        ("half.svg", half(SVG.as_bytes()), "damaged SVG"),
        (
            "bomb.png",
            png_bomb(30_000, 30_000),
            "has 30000 × 30000 pixels, which are too many",
        ),
        ("none.png", png_bomb(0, 8), "damaged PNG"),
        (
            "bomb.jpg",
            jpeg_bomb(30_000, 30_000),
            "has 30000 × 30000 pixels, which are too many",
        ),
        ("empty.png", Vec::new(), "is empty"),
        ("jpeg.png", jpeg.clone(), "is JPEG, but its name says PNG"),
        (
            "svg.jpg",
            SVG.as_bytes().to_vec(),
            "is SVG, but its name says JPEG",
        ),
        (
            "a.gif",
            b"GIF89a".to_vec(),
            "is GIF, not a picture that is read",
        ),
        (
            "a.webp",
            b"RIFF\0\0\0\0WEBP".to_vec(),
            "is WebP, not a picture that is read",
        ),
        (
            "a.svgz",
            b"\x1f\x8b\x08".to_vec(),
            "is gzip, not a picture that is read",
        ),
        ("a.txt", b"a dog".to_vec(), "is of no kind that is known"),
        (
            "a.npy",
            super::features::npy("<f4", "(1, 1)", &[0; 4]),
            "is npy, not a picture",
        ),
    ] {
        let problem = problem(PICTURES, &files.write(name, content));
        assert!(problem.contains(want), "{name}: {problem}");
    }
}

#[test]
fn what_is_no_file_is_named() {
    let files = Files::new();
    std::fs::create_dir(files.path("folder.png")).unwrap();
    assert_eq!(
        problem(PICTURES, &files.path("folder.png")),
        "is a folder, not a file"
    );
    assert_eq!(
        problem(PICTURES, &files.path("nowhere.png")),
        "no such file"
    );
    let pipe = files.path("pipe.png");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if made.is_ok_and(|status| status.success()) {
        assert_eq!(
            problem(PICTURES, &pipe),
            "is a pipe or a device, not a file"
        );
    }
    let large = std::fs::File::create(files.path("large.png")).unwrap();
    large.set_len(1 << 40).unwrap();
    assert_eq!(
        problem(PICTURES, &files.path("large.png")),
        "has more than 64 MiB"
    );
    let error = error_of(PICTURES, Path::new(""));
    assert!(error.to_string().contains("there is no path"), "{error}");
}

fn svg(inner: &str) -> String {
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' xmlns:x='http://www.w3.org/1999/xlink' width='12' height='8'>{inner}</svg>"
    )
}

/// Each of `levels` groups uses the one before it twice, by an element with `by`.
fn doubling(levels: usize, by: impl Fn(usize) -> String) -> String {
    let mut inner = String::from("<defs><g id='g0'><rect width='9' height='9'/></g>");
    for level in 1..=levels {
        inner += &by(level);
    }
    inner += &format!("</defs><use href='#g{levels}'/>");
    svg(&inner)
}

#[test]
fn an_svg_that_refers_to_other_files_is_refused_with_their_names() {
    let files = Files::new();
    for (inner, want) in [
        (
            "<image href='secret.png'/>",
            "refers to another file: secret.png",
        ),
        (
            "<image x:href='/etc/passwd'/>",
            "refers to another file: /etc/passwd",
        ),
        (
            "<image href='data:image/png;base64,AAAA'/>",
            "a picture inside",
        ),
        (
            "<use href='other.svg#a'/>",
            "refers to another file: other.svg#a",
        ),
        (
            "<rect fill='url(b.svg#g)'/>",
            "refers to another file: b.svg#g",
        ),
        (
            "<rect style='fill:u&#114;l(c.svg)'/>",
            "refers to another file: c.svg",
        ),
        (
            "<style>@import 'd.css';</style>",
            "refers to another file: 'd.css'",
        ),
        (
            "<style><![CDATA[.a{fill:url(e.svg)}]]></style>",
            "refers to another file: e.svg",
        ),
    ] {
        let problem = problem(PICTURES, &files.write("a.svg", svg(inner)));
        assert!(problem.contains(want), "{inner}: {problem}");
    }
    let sheet = format!("<?xml-stylesheet href='a.css'?>{}", svg(""));
    let problem = problem(PICTURES, &files.write("a.svg", sheet));
    assert!(
        problem.contains("a style sheet in another file"),
        "{problem}"
    );
    let link = svg("<a href='https://example.org'><rect width='9' height='9'/></a>");
    read(PICTURES, &[files.write("a.svg", link)]).unwrap();
}

#[test]
fn an_svg_that_asks_for_too_much_is_refused_at_once() {
    let files = Files::new();
    let entities = "<!DOCTYPE svg [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;'>]>";
    let used = doubling(40, |n| {
        format!(
            "<g id='g{n}'><use href='#g{0}'/><use href='#g{0}'/></g>",
            n - 1
        )
    });
    let masked = doubling(40, |n| {
        let mask = format!("<rect mask='url(#g{})' width='9' height='9'/>", n - 1);
        format!("<mask id='g{n}'>{mask}{mask}</mask>")
    });
    let styled = doubling(40, |n| {
        let clip = format!("<rect class='c{}' width='9' height='9'/>", n - 1);
        format!(
            "<style>.c{n}{{clip-path:url(#g{n})}}</style><clipPath id='g{n}'>{clip}{clip}</clipPath>"
        )
    });
    for (what, content, want) in [
        (
            "nested",
            svg(&("<g>".repeat(5000) + &"</g>".repeat(5000))),
            "more than 100 levels deep",
        ),
        (
            "unclosed",
            "<svg>".repeat(200_000),
            "more than 100 levels deep",
        ),
        ("used", used, "use one another too often"),
        ("masked", masked, "use one another too often"),
        ("styled", styled, "use one another too often"),
        (
            "itself",
            svg("<g id='a'><use href='#a'/></g>"),
            "uses itself",
        ),
        (
            "entities",
            format!("{entities}{}", svg("&b;")),
            "declares entities",
        ),
        (
            "many",
            svg(&"<g/>".repeat(60_000)),
            "more than 50000 elements",
        ),
        (
            "filter",
            svg("<rect width='9' height='9' filter='blur(9px)'/>"),
            "a filter",
        ),
        (
            "css",
            svg("<rect width='9' height='9' style='filter : blur(9px)'/>"),
            "a filter",
        ),
        (
            "pattern",
            svg(
                "<pattern id='p' width='1' height='1'/><rect width='9' height='9' fill='url(#p)'/>",
            ),
            "a pattern, which is not drawn",
        ),
        (
            "dashes",
            svg("<path d='M0 0H1e6' stroke='red' stroke-dasharray='0.01'/>"),
            "too many dashes",
        ),
        (
            "size",
            "<svg xmlns='http://www.w3.org/2000/svg' width='0' height='0'/>".into(),
            "damaged SVG",
        ),
    ] {
        let problem = problem(PICTURES, &files.write("a.svg", content));
        assert!(problem.contains(want), "{what}: {problem}");
    }
}

#[test]
fn ordinary_means_of_svg_are_drawn() {
    let files = Files::new();
    let inner = "<defs><linearGradient id='g'><stop stop-color='red'/></linearGradient>\
        <clipPath id='c'><circle cx='4' cy='4' r='3'/></clipPath><symbol id='s'><rect width='9' height='9'/></symbol>\
        <mask id='m'><rect width='9' height='9' fill='white'/></mask><filter id='unused'/></defs>\
        <style>.a{fill:url(#g)}</style>\
        <g clip-path='url(#c)'><rect class='a' width='9' height='9'/></g>\
        <g mask='url(#m)' opacity='0.5'><use href='#s' x='8'/></g><text y='5'>a</text>";
    let drawn = read(PICTURES, &[files.write("a.svg", svg(inner))]).unwrap();
    let Source::Pictures(pictures) = drawn else {
        panic!("not pictures");
    };
    let (red, white) = (
        &pictures.values[3 * (12 * 4 + 4)..][..3],
        &pictures.values[3 * 11..][..3],
    );
    assert_eq!((red, white), (&[1.0, -1.0, -1.0][..], &[1.0, 1.0, 1.0][..]));
}
