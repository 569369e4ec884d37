//! Colours and sizes. The ink and the fonts are those of the heatmaps.

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito 2008), without the yellow, which is
/// hard to see on white.
pub(super) const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333",
];
/// The same for a dark background.
pub(super) const COLOURS_ON_DARK: [&str; 7] = [
    "#4aa8e0", "#f28a45", "#35c99d", "#e09ac0", "#f0b53c", "#8accf2", "#d5d5d5",
];
/// When the colours are used up, they come again with dashes.
const DASHES: [&str; 3] = ["", "6 3", "2 2.5"];

pub(super) const INK: &str = "#222";
pub(super) const FAINT: &str = "#666";
pub(super) const GRID: &str = "#e6e6ea";
pub(super) const AXIS: &str = "#aaa";

/// The size of a panel, and of the margins around its curves.
pub(super) const WIDTH: f64 = 340.0;
pub(super) const HEIGHT: f64 = 214.0;
pub(super) const LEFT: f64 = 48.0;
pub(super) const RIGHT: f64 = 10.0;
pub(super) const TOP: f64 = 36.0;
pub(super) const BOTTOM: f64 = 40.0;

/// The number of a run's colour.
pub(super) fn colour(run: usize) -> usize {
    run % COLOURS.len()
}

/// The attribute that makes the lines of a run dashed, if they are.
pub(super) fn dashes(run: usize) -> String {
    match DASHES[run / COLOURS.len() % DASHES.len()] {
        "" => String::new(),
        dashes => format!(" stroke-dasharray=\"{dashes}\""),
    }
}
