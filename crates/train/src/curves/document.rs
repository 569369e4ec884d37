use attend_infer::heatmap::{FONTS, escape, text_width};

use super::Curves;
use super::panel::line;
use super::style::{COLOURS, FAINT, HEIGHT, INK, WIDTH, colour, dashes};

/// The gap between panels, and the margin around all.
const GAP: f64 = 22.0;
const MARGIN: f64 = 18.0;
/// The length of a line in the legend, and the font size of its names.
const SWATCH: f64 = 22.0;
const FONT: f64 = 12.5;
const LEGEND_LINE: f64 = 20.0;

/// A run's place in the legend.
struct Entry {
    run: usize,
    x: f64,
    row: usize,
}

pub(super) fn write(curves: &Curves) -> String {
    let panels = curves.panels();
    let columns = match panels.len() {
        count @ 0..=3 => count.max(1),
        4 => 2,
        5 | 6 => 3,
        _ => 4,
    };
    let rows = panels.len().div_ceil(columns);
    let width = columns as f64 * (WIDTH + GAP) - GAP + 2.0 * MARGIN;
    let entries = legend(curves, width - 2.0 * MARGIN);
    let legend_rows = entries.last().map_or(0, |entry| entry.row + 1) as f64;
    let top = MARGIN + legend_rows * LEGEND_LINE + 10.0;
    let height = top + rows as f64 * (HEIGHT + GAP) - GAP + MARGIN;

    let names: Vec<&str> = curves.runs.iter().map(|run| run.name.as_str()).collect();
    let label = escape(&format!("Training curves of {}", names.join(", ")));
    let mut svg = String::new();
    line(
        &mut svg,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\" font-family=\"{FONTS}\">"
        ),
    );
    line(&mut svg, format_args!("<desc>{label}</desc>"));
    line(
        &mut svg,
        format_args!("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"),
    );
    for entry in &entries {
        let name = escape(&curves.runs[entry.run].name);
        let (x, y) = (
            MARGIN + 4.0 + entry.x,
            MARGIN + 4.0 + entry.row as f64 * LEGEND_LINE,
        );
        let (stroke, dashes) = (COLOURS[colour(entry.run)], dashes(entry.run));
        let (end, text, baseline) = (x + SWATCH, x + SWATCH + 6.0, y + 4.3);
        line(
            &mut svg,
            format_args!(
                "<path d=\"M{x} {y}H{end}\" stroke=\"{stroke}\" stroke-width=\"2.4\"{dashes}/>\
                 <text x=\"{text}\" y=\"{baseline}\" font-size=\"{FONT}\" fill=\"{INK}\">{name}</text>"
            ),
        );
    }
    for (index, panel) in panels.iter().enumerate() {
        let x = MARGIN + (index % columns) as f64 * (WIDTH + GAP);
        let y = top + (index / columns) as f64 * (HEIGHT + GAP);
        line(
            &mut svg,
            format_args!("<g transform=\"translate({x} {y})\">"),
        );
        svg.push_str(&panel.to_svg());
        line(&mut svg, format_args!("</g>"));
    }
    if curves.runs.iter().any(|run| run.best.is_some()) {
        let (x, y) = (width - MARGIN - 4.0, height - 7.0);
        line(
            &mut svg,
            format_args!(
                "<text x=\"{x}\" y=\"{y}\" font-size=\"10\" text-anchor=\"end\" fill=\"{FAINT}\">\
                 ring: the best validation · faint line: not smoothed</text>"
            ),
        );
    }
    line(&mut svg, format_args!("</svg>"));
    svg
}

/// Places names beside each other, in as many rows as they need.
fn legend(curves: &Curves, width: f64) -> Vec<Entry> {
    let (mut x, mut row) = (0.0, 0);
    let mut entries = Vec::new();
    for (run, history) in curves.runs.iter().enumerate() {
        let needed = SWATCH + 6.0 + f64::from(text_width(&history.name)) * FONT + 18.0;
        if x > 0.0 && x + needed > width {
            (x, row) = (0.0, row + 1);
        }
        entries.push(Entry { run, x, row });
        x += needed;
    }
    entries
}
