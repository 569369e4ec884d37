use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Family, Query};
use resvg::usvg::{Group, Node, Options, Tree};

use crate::{Error, Result};

/// Pixels for each unit of the SVG: sharp in print and on screens of high resolution.
const SCALE: f32 = 2.0;
/// A larger picture has fewer pixels for each unit: 64 million take 256 MB.
const MOST_PIXELS: f32 = 64e6;

/// A picture in pixels.
pub struct Png {
    /// What to write to a file.
    pub bytes: Vec<u8>,
    /// How many texts are missing or not whole, since no font of this system has their characters.
    pub unreadable: usize,
}

pub(super) fn render(svg: &str) -> Result<Png> {
    let draw = |message: String| Error::Draw { message };
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    name_a_sans_serif(fonts);
    let tree = Tree::from_str(svg, &options).map_err(|error| draw(error.to_string()))?;
    let (w, h) = (tree.size().width(), tree.size().height());
    let scale = SCALE.min((MOST_PIXELS / (w * h)).sqrt());
    let (columns, rows) = ((w * scale).ceil() as u32, (h * scale).ceil() as u32);
    let pixmap = Pixmap::new(columns, rows);
    let mut pixmap = pixmap.ok_or_else(|| draw(format!("{columns} × {rows} pixels")))?;
    let transform = Transform::from_scale(scale, scale);
    resvg::render(&tree, transform, &mut pixmap.as_mut());
    let bytes = pixmap.encode_png();
    let texts = svg.matches("<text ").count();
    Ok(Png {
        bytes: bytes.map_err(|error| draw(error.to_string()))?,
        unreadable: texts - readable(tree.root()).min(texts),
    })
}

/// Where the system does not say which of its fonts `sans-serif` is, and it is not the usual one,
/// any font is better than none.
fn name_a_sans_serif(fonts: &mut Database) {
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

/// How many texts have a glyph for each of their characters.
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
