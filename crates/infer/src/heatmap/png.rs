use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Family, Query};
use resvg::usvg::{Group, Node, Options, Tree};

use crate::{Error, Result};

/// Pixels for each SVG unit: sharp in print and on high-resolution screens.
const SCALE: f32 = 2.0;
/// The maximum number of pixels, which take 256 MB. A larger picture is scaled down.
const MOST_PIXELS: f32 = 64e6;

/// A picture rendered as PNG.
pub struct Png {
    /// The contents of the file.
    pub bytes: Vec<u8>,
    /// The number of texts that are missing or incomplete because no font on this system has all of
    /// their characters.
    pub unreadable: usize,
}

/// A rendered document that can be drawn on.
pub(super) struct Canvas {
    pub(super) pixmap: Pixmap,
    /// Pixels for each SVG unit.
    pub(super) scale: f32,
    unreadable: usize,
}

impl Canvas {
    pub(super) fn finish(self) -> Result<Png> {
        let bytes = self.pixmap.encode_png();
        Ok(Png {
            bytes: bytes.map_err(|error| draw(error.to_string()))?,
            unreadable: self.unreadable,
        })
    }
}

fn draw(message: String) -> Error {
    Error::Draw { message }
}

/// Renders an SVG document with the fonts of this system, two pixels for each SVG unit. A very large picture has fewer.
pub fn render(svg: &str) -> Result<Png> {
    canvas(svg)?.finish()
}

pub(super) fn canvas(svg: &str) -> Result<Canvas> {
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    set_default_sans_serif(fonts);
    let tree = Tree::from_str(svg, &options).map_err(|error| draw(error.to_string()))?;
    let (w, h) = (tree.size().width(), tree.size().height());
    let scale = SCALE.min((MOST_PIXELS / (w * h)).sqrt());
    let (columns, rows) = ((w * scale).ceil() as u32, (h * scale).ceil() as u32);
    let pixmap = Pixmap::new(columns, rows);
    let mut pixmap =
        pixmap.ok_or_else(|| draw(format!("invalid size of {columns} × {rows} pixels")))?;
    let transform = Transform::from_scale(scale, scale);
    resvg::render(&tree, transform, &mut pixmap.as_mut());
    let texts = svg.matches("<text ").count();
    Ok(Canvas {
        pixmap,
        scale,
        unreadable: texts - readable(tree.root()).min(texts),
    })
}

/// Uses the first font as `sans-serif` if the system does not define that family and does not have
/// fontdb's default for it.
fn set_default_sans_serif(fonts: &mut Database) {
    let query = Query {
        families: &[Family::SansSerif],
        ..Query::default()
    };
    if fonts.query(&query).is_some() {
        return;
    }
    let first = fonts.faces().find_map(|face| face.families.first());
    if let Some((name, _)) = first.cloned() {
        fonts.set_sans_serif_family(name);
    }
}

/// The number of texts that have a glyph for each of their characters.
fn readable(group: &Group) -> usize {
    let whole = |node: &Node| match node {
        Node::Group(group) => readable(group),
        Node::Text(text) => {
            let spans = text.layouted().iter();
            let mut glyphs = spans.flat_map(|span| &span.positioned_glyphs).peekable();
            let any = glyphs.peek().is_some();
            usize::from(any && glyphs.all(|glyph| glyph.id.0 != 0))
        }
        _ => 0,
    };
    group.children().iter().map(whole).sum()
}
