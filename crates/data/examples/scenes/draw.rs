//! A scene as SVG.

use std::fmt::Write;

use crate::place::{EXTENT, Rectangle};
use crate::random::Random;
use crate::scene::Scene;

/// The brightness of each channel of the background: light, but so that white is seen on it.
const BACKGROUND: (usize, usize) = (188, 30);

/// Tenths as a number of SVG.
fn decimal(tenths: i32) -> String {
    format!("{}", f64::from(tenths) / 10.0)
}

pub(crate) fn draw(scene: &Scene, places: &[Vec<Rectangle>], random: &mut Random) -> String {
    let side = decimal(EXTENT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{side}\" height=\"{side}\" viewBox=\"0 0 {side} {side}\" \
         stroke-width=\"4\" stroke-linejoin=\"round\">\n"
    );
    let (dark, span) = BACKGROUND;
    let [red, green, blue] = [0; 3].map(|_| dark + random.below(span));
    // Writing to a string does not fail.
    _ = writeln!(
        svg,
        "<rect width=\"{side}\" height=\"{side}\" fill=\"#{red:02x}{green:02x}{blue:02x}\"/>"
    );
    for (group, copies) in scene.groups.iter().zip(places) {
        let (shape, colour) = (&group.kind.shape, group.colour);
        let dark = format!("\"{}\"", colour.dark);
        let elements = shape.elements.replace("\"dark\"", &dark);
        _ = writeln!(svg, "<g fill=\"{}\" stroke={dark}>", colour.fill);
        for copy in copies {
            let scale =
                f64::from(copy.width.max(copy.height)) / 10.0 / shape.width.max(shape.height);
            let x = f64::from(copy.left) / 10.0 - shape.left * scale;
            let y = f64::from(copy.top) / 10.0 - shape.top * scale;
            _ = writeln!(
                svg,
                "<g transform=\"translate({x:.2} {y:.2}) scale({scale:.4})\">{elements}</g>"
            );
        }
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}
