//! What drawing takes that the markup does not tell: layers within layers, and dashes.

use super::super::Problem;
use attend_batch::PictureShape;
use resvg::tiny_skia::{PathSegment, Point};
use resvg::usvg::{Group, Node, Path};

/// A layer has at most 25 times the pixels of the picture.
const LAYER: usize = 25 * 4;
/// The most bytes of layers that are held at once.
const MOST_LAYERS: usize = 512 << 20;
/// The most dashes of all lines.
const MOST_DASHES: f32 = 100_000.0;

/// An error if drawing takes too much time or memory.
pub(super) fn check(root: &Group, shape: PictureShape) -> Result<(), Problem> {
    let mut work = Work::default();
    work.add(root, 0);
    let layer = LAYER * shape.height * shape.width;
    if work.layers.saturating_mul(layer) > MOST_LAYERS {
        let what = "is SVG with too many transparent groups inside one another";
        return Err(Problem::new(what, "simplify it, or convert it to PNG"));
    }
    if work.dashes.is_nan() || work.dashes > MOST_DASHES {
        let what = "is SVG whose lines have too many dashes";
        return Err(Problem::new(what, "simplify it, or convert it to PNG"));
    }
    Ok(())
}

#[derive(Default)]
struct Work {
    /// The most layers inside one another.
    layers: usize,
    dashes: f32,
}

impl Work {
    fn add(&mut self, group: &Group, layers: usize) {
        let layers = layers + 3 * usize::from(group.should_isolate()); // with those of a clip and of a mask
        self.layers = self.layers.max(layers);
        for node in group.children() {
            match node {
                Node::Group(group) => self.add(group, layers),
                Node::Path(path) => self.dashes += dashes(path),
                Node::Image(_) | Node::Text(_) => {}
            }
        }
        let mut clip = group.clip_path();
        while let Some(path) = clip {
            self.add(path.root(), layers);
            clip = path.clip_path();
        }
        let mut mask = group.mask();
        while let Some(inner) = mask {
            self.add(inner.root(), layers);
            mask = inner.mask();
        }
    }
}

/// About how many dashes a line has.
fn dashes(path: &Path) -> f32 {
    let Some(dashes) = path.stroke().and_then(|stroke| stroke.dasharray()) else {
        return 0.0;
    };
    let all: f32 = dashes.iter().sum();
    length(path) / all * dashes.len() as f32
}

/// The length of a line, or more.
fn length(path: &Path) -> f32 {
    let (mut start, mut at, mut sum) = (Point::zero(), Point::zero(), 0.0);
    let mut go = |at: &mut Point, to: Point| {
        sum += at.distance(to);
        *at = to;
    };
    for segment in path.data().segments() {
        match segment {
            PathSegment::MoveTo(to) => (start, at) = (to, to),
            PathSegment::LineTo(to) => go(&mut at, to),
            PathSegment::QuadTo(a, to) => [a, to].into_iter().for_each(|to| go(&mut at, to)),
            PathSegment::CubicTo(a, b, to) => {
                [a, b, to].into_iter().for_each(|to| go(&mut at, to));
            }
            PathSegment::Close => go(&mut at, start),
        }
    }
    sum
}
