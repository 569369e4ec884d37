//! The positions and sizes of all elements. Cells shrink as sentences grow, down to a minimum at
//! which labels do not overlap. Beyond that, the picture grows.

use super::label::{self, Label};
use super::{Axes, Picture};

/// sin 45° = cos 45°.
const DIAGONAL: f32 = std::f32::consts::FRAC_1_SQRT_2;
/// The distance between lines of text that do not touch, in font sizes.
const LINE: f32 = 1.1;
/// The margin around the picture.
const MARGIN: f32 = 12.0;
/// The gap between cells and the labels of their rows and columns.
pub(super) const GAP: f32 = 6.0;
/// The gap between the cells and the colour scale.
const LEGEND_GAP: f32 = 24.0;
const LEGEND_HEIGHT: f32 = 100.0;
pub(super) const LEGEND_WIDTH: f32 = 12.0;
/// The font size of the labels of the colour scale.
pub(super) const LEGEND_FONT: f32 = 10.0;

/// Positions and sizes in SVG units. Those of cells are integers, so that edges are sharp.
pub(super) struct Layout {
    /// Side length of a cell.
    pub(super) cell: f32,
    /// Font size of the labels.
    pub(super) font: f32,
    /// Font size of the titles.
    pub(super) title_font: f32,
    /// Whether column labels are rotated by 45°. They are vertical if cells are too narrow for that.
    pub(super) slanted: bool,
    /// Width and height of the cells of a panel.
    pub(super) panel: (f32, f32),
    /// Top left corner of the first panel's cells.
    pub(super) origin: (f32, f32),
    /// Horizontal distance between panels, and vertical distance between rows of panels.
    pub(super) pitch: (f32, f32),
    /// Left, top and height of the colour scale.
    pub(super) legend: (f32, f32, f32),
    /// Width and height of the picture.
    pub(super) size: (f32, f32),
}

impl Layout {
    pub(super) fn of(picture: &Picture) -> Self {
        let Axes { columns, rows } = &picture.axes;
        let longest = rows.len().max(columns.len()).max(1) as f32;
        let (cell, font, title_font) = if picture.is_single() {
            let cell = (640.0 / longest).clamp(14.0, 34.0).floor();
            (cell, (cell * 0.5).clamp(10.0, 14.0), 13.0)
        } else {
            let cell = (200.0 / longest).clamp(9.0, 18.0).floor();
            (cell, (cell * 0.62).clamp(8.0, 11.0), 11.0)
        };
        let slanted = cell * DIAGONAL >= font * LINE;
        let panel = (columns.len() as f32 * cell, rows.len() as f32 * cell);

        let titles = picture.panels.iter().flatten();
        let title = titles.map(|panel| label::width(&panel.title) * title_font);
        let title = title.fold(0.0, f32::max);
        let beside = ((title - panel.0) / 2.0).max(0.0); // if a title is wider than its panel
        let left = (widest(rows) * font + GAP).max(beside);
        let tallest = widest(columns) * font;
        let top = if slanted {
            (tallest + font) * DIAGONAL
        } else {
            tallest
        };
        let origin = ((MARGIN + left).ceil(), (MARGIN + top + GAP).ceil());
        let below = title_font * 2.0;
        let pitch = (
            (panel.0.max(title) + 1.5 * cell).ceil(),
            (panel.1 + below + cell).ceil(),
        );

        let across = picture.panels.iter().map(Vec::len).max().unwrap_or(1) as f32 - 1.0;
        let down = picture.panels.len() as f32 - 1.0;
        let last = (origin.0 + across * pitch.0, origin.1 + down * pitch.1);
        let right = last.0 + panel.0 + beside;
        let height = (last.1 + panel.1 - origin.1).clamp(LEGEND_HEIGHT / 2.0, LEGEND_HEIGHT);
        let legend = ((right + LEGEND_GAP).ceil(), origin.1, height.round());
        let ticks = legend.0 + LEGEND_WIDTH + GAP + label::width("0.5") * LEGEND_FONT;
        let overhang = columns.iter().zip(0..).map(|(label, i)| {
            if slanted {
                last.0 + (i as f32 + 0.5) * cell + (label.width() + 0.5) * font * DIAGONAL
            } else {
                right
            }
        });
        let width = overhang.fold(ticks, f32::max) + MARGIN;
        let bottom = (last.1 + panel.1 + below).max(legend.1 + height + LEGEND_FONT);
        Self {
            cell,
            font,
            title_font,
            slanted,
            panel,
            origin,
            pitch,
            legend,
            size: (width.ceil(), (bottom + MARGIN).ceil()),
        }
    }

    /// Top left corner of the cells of a panel.
    pub(super) fn panel_at(&self, row: usize, column: usize) -> (f32, f32) {
        let (x, y) = self.origin;
        (
            x + column as f32 * self.pitch.0,
            y + row as f32 * self.pitch.1,
        )
    }
}

/// The width of the widest label, in ems.
fn widest(labels: &[Label]) -> f32 {
    labels.iter().map(Label::width).fold(0.0, f32::max)
}
