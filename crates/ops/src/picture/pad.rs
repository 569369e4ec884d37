//! Maps with a border of zeros, and the windows of 3 × 3 cells in them.
//!
//! In a padded map of lines of w + 2 cells, the window of the cell at line y and column x is three stretches of
//! three cells each, which begin at rows r, r + (w + 2) and r + 2 (w + 2), where r = y (w + 2) + x. So the windows
//! of successive r are the overlapping rows of three matrices, and nothing has to be copied to multiply them. The
//! last two r of a line belong to no cell.

use super::Grid;
use crate::buffer::Buffer;
use crate::gemm::Mat;

/// A map with zeros around it.
pub(super) struct Padded {
    values: Buffer,
    grid: Grid,
    channels: usize,
}

impl Padded {
    /// The values inside are arbitrary.
    pub(super) fn any(grid: Grid, channels: usize) -> Self {
        let size = (grid.height + 2) * (grid.width + 2) * channels;
        let mut padded = Self {
            values: Buffer::any(size),
            grid,
            channels,
        };
        let line = padded.stride() * channels;
        padded.values[..line].fill(0.0);
        padded.values[size - line..].fill(0.0);
        for values in padded.values.chunks_exact_mut(line) {
            values[..channels].fill(0.0);
            values[line - channels..].fill(0.0);
        }
        padded
    }

    /// Copies a map.
    pub(super) fn fill(&mut self, map: &[f32]) {
        let width = self.grid.width * self.channels;
        for (line, values) in map.chunks_exact(width).enumerate() {
            self.line(line).copy_from_slice(values);
        }
    }

    /// A line of the map, without the border.
    pub(super) fn line(&mut self, line: usize) -> &mut [f32] {
        let start = ((line + 1) * self.stride() + 1) * self.channels;
        &mut self.values[start..][..self.grid.width * self.channels]
    }

    /// Rows of a line and of the border next to it.
    pub(super) fn stride(&self) -> usize {
        self.grid.width + 2
    }

    /// A third of the windows of some lines: their upper, middle or lower cells for `third` 0, 1 or 2. A row for
    /// each r, `[lines · (w + 2) - 2, 3 · channels]`.
    pub(super) fn windows(&self, first: usize, lines: usize, third: usize) -> Mat<'_> {
        let start = (first + third) * self.stride() * self.channels;
        let rows = lines * self.stride() - 2;
        Mat::overlapping(
            &self.values[start..],
            rows,
            self.channels,
            3 * self.channels,
        )
    }

    /// The cells of some lines, in the rows that [`Padded::windows`] has for them. Rows that belong to no cell are
    /// zero.
    pub(super) fn cells(&self, first: usize, lines: usize) -> Mat<'_> {
        let start = ((first + 1) * self.stride() + 1) * self.channels;
        let rows = lines * self.stride() - 2;
        let values = &self.values[start..][..rows * self.channels];
        Mat::new(values, rows, self.channels)
    }
}
