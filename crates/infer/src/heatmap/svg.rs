use std::fmt::{self, Write};

use super::label::{Label, clean, escape};
use super::layout::{GAP, LEGEND_FONT, LEGEND_WIDTH, Layout};
use super::{Axes, Panel, Picture, colour};

/// The fonts of pictures. For each character, the first font that has it is used.
pub const FONTS: &str = "'Noto Sans', 'DejaVu Sans', 'Helvetica Neue', Arial, 'Noto Sans Hebrew', \
                     'Noto Sans Arabic', 'Noto Sans CJK SC', 'Noto Sans CJK JP', sans-serif";
const INK: &str = "#222";
const FAINT: &str = "#555";
/// Lines between cells.
const LINES: &str = "#e3e3e8";
/// The frame around the cells.
const FRAME: &str = "#888";
/// Gradient stops of the colour scale. Renderers interpolate between stops in sRGB, in which the
/// colours are not evenly spaced.
const STOPS: usize = 10;
/// The right-to-left mark, an invisible character. Between two of them, punctuation at the ends of a
/// word is also drawn from right to left by renderers that do not support `unicode-bidi`.
const RLM: char = '\u{200f}';

/// `id` names the colour scale.
pub(super) fn write(picture: &Picture, layout: &Layout, id: &str) -> String {
    let mut svg = Svg(String::new());
    svg.head(picture, layout);
    for (row, panels) in picture.panels.iter().enumerate() {
        svg.row_labels(&picture.axes, layout, row);
        for (column, panel) in panels.iter().enumerate() {
            if row == 0 {
                svg.column_labels(&picture.axes, layout, column);
            }
            let position = layout.panel_at(row, column);
            let tooltips = picture.is_single().then_some(&picture.axes);
            svg.panel(panel, tooltips, layout, position);
        }
    }
    svg.legend(layout, &escape(id));
    svg.line(format_args!("</svg>"));
    svg.0
}

/// The document written so far.
struct Svg(String);

impl Svg {
    fn line(&mut self, line: fmt::Arguments) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
    }

    fn head(&mut self, picture: &Picture, layout: &Layout) {
        let (w, h) = layout.size;
        let description = escape(&clean(&picture.description));
        let name = if description.is_empty() {
            "Attention weights"
        } else {
            &description
        };
        self.line(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" role=\"img\" aria-label=\"{name}\" font-family=\"{FONTS}\" \
             fill=\"{INK}\">"
        ));
        self.line(format_args!("<desc>{name}</desc>"));
        let background = "width=\"100%\" height=\"100%\" fill=\"#fff\"";
        self.line(format_args!("<rect {background}/>"));
    }

    /// Labels to the left of a row of panels.
    fn row_labels(&mut self, axes: &Axes, layout: &Layout, row: usize) {
        let (x, y) = layout.panel_at(row, 0);
        let font = layout.font;
        self.line(format_args!(
            "<g class=\"rows\" font-size=\"{font}\" text-anchor=\"end\">"
        ));
        for (i, label) in axes.rows.iter().enumerate() {
            // A baseline a third of the font size below the centre of the cell centres the text.
            let y = y + (i as f32 + 0.5) * layout.cell + 0.35 * font;
            let attributes = format!("x=\"{}\" y=\"{}\"", tenths(x - GAP), tenths(y));
            self.text(label, &attributes);
        }
        self.line(format_args!("</g>"));
    }

    /// Labels above a panel of the first row.
    fn column_labels(&mut self, axes: &Axes, layout: &Layout, column: usize) {
        let (x, y) = layout.panel_at(0, column);
        let font = layout.font;
        // A slanted label appears to belong to the cell below its lower left corner, so it is
        // shifted less.
        let (angle, shift) = if layout.slanted {
            (-45, 0.2 * font)
        } else {
            (-90, 0.35 * font)
        };
        self.line(format_args!("<g class=\"columns\" font-size=\"{font}\">"));
        for (i, label) in axes.columns.iter().enumerate() {
            let x = tenths(x + (i as f32 + 0.5) * layout.cell + shift);
            let y = tenths(y - GAP);
            let attributes = format!("transform=\"translate({x} {y}) rotate({angle})\"");
            self.text(label, &attributes);
        }
        self.line(format_args!("</g>"));
    }

    fn text(&mut self, label: &Label, attributes: &str) {
        let text = escape(label.text());
        match label.rtl {
            // Not `direction`, which in some renderers also reverses `text-anchor`.
            true => self.line(format_args!(
                "<text {attributes} unicode-bidi=\"plaintext\">{RLM}{text}{RLM}</text>"
            )),
            false => self.line(format_args!("<text {attributes}>{text}</text>")),
        }
    }

    /// Cells, lines and title. `tooltips` has the labels for the cells' tooltips, if they have any.
    fn panel(&mut self, panel: &Panel, tooltips: Option<&Axes>, layout: &Layout, at: (f32, f32)) {
        let (cell, (w, h)) = (layout.cell, layout.panel);
        let (x, y) = at;
        self.line(format_args!(
            "<g class=\"map\" transform=\"translate({x} {y})\">"
        ));
        self.line(format_args!(
            "<g class=\"cells\" shape-rendering=\"crispEdges\">"
        ));
        for (i, row) in panel.weights.iter().enumerate() {
            for (j, &weight) in row.iter().enumerate() {
                let (x, y) = (j as f32 * cell, i as f32 * cell);
                let fill = colour::of(weight);
                let rect = format!(
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{cell}\" height=\"{cell}\" fill=\"{fill}\""
                );
                match tooltips {
                    Some(axes) => {
                        let (query, key) = (isolated(&axes.rows[i]), isolated(&axes.columns[j]));
                        let title = escape(&format!("{query} ← {key}: {weight:.2}"));
                        self.line(format_args!("{rect}><title>{title}</title></rect>"));
                    }
                    None => self.line(format_args!("{rect}/>")),
                }
            }
        }
        self.line(format_args!("</g>"));
        let (rows, columns) = (
            panel.weights.len(),
            panel.weights.first().map_or(0, Vec::len),
        );
        let across = (1..rows).map(|i| format!("M0 {}H{w}", i as f32 * cell));
        let down = (1..columns).map(|j| format!("M{} 0V{h}", j as f32 * cell));
        let lines: String = across.chain(down).collect();
        self.line(format_args!(
            "<path d=\"{lines}\" stroke=\"{LINES}\" stroke-width=\"0.5\" fill=\"none\" \
             pointer-events=\"none\"/>"
        ));
        self.line(format_args!(
            "<rect width=\"{w}\" height=\"{h}\" fill=\"none\" stroke=\"{FRAME}\" \
             stroke-width=\"1\" pointer-events=\"none\"/>"
        ));
        let font = layout.title_font;
        let (x, y) = (tenths(w / 2.0), tenths(h + 1.5 * font));
        let title = escape(&clean(&panel.title));
        self.line(format_args!(
            "<text class=\"title\" x=\"{x}\" y=\"{y}\" font-size=\"{font}\" \
             text-anchor=\"middle\" fill=\"{FAINT}\">{title}</text>"
        ));
        self.line(format_args!("</g>"));
    }

    /// The colour scale.
    fn legend(&mut self, layout: &Layout, id: &str) {
        let (x, y, h) = layout.legend;
        self.line(format_args!(
            "<linearGradient id=\"{id}\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">"
        ));
        for stop in 0..=STOPS {
            let weight = stop as f32 / STOPS as f32;
            let fill = colour::of(weight);
            self.line(format_args!(
                "<stop offset=\"{weight}\" stop-color=\"{fill}\"/>"
            ));
        }
        self.line(format_args!("</linearGradient>"));
        self.line(format_args!(
            "<g class=\"legend\" font-size=\"{LEGEND_FONT}\" fill=\"{FAINT}\">"
        ));
        self.line(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{LEGEND_WIDTH}\" height=\"{h}\" \
             fill=\"url(#{id})\" stroke=\"{FRAME}\" stroke-width=\"1\"/>"
        ));
        for (height, weight) in [(0.0, "1"), (0.5, "0.5"), (1.0, "0")] {
            let x = tenths(x + LEGEND_WIDTH + GAP);
            let y = tenths(y + height * h + 0.35 * LEGEND_FONT);
            self.line(format_args!("<text x=\"{x}\" y=\"{y}\">{weight}</text>"));
        }
        self.line(format_args!("</g>"));
    }
}

/// The text with isolated writing direction, so that the arrow after it points the same way in every
/// script.
fn isolated(label: &Label) -> String {
    if label.rtl {
        format!("\u{2068}{}\u{2069}", label.text())
    } else {
        label.text().into()
    }
}

/// Rounds to one decimal, which is precise enough and keeps the file small.
fn tenths(x: f32) -> f32 {
    (x * 10.0).round() / 10.0
}
