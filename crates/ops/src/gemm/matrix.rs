use std::ops::Range;

use super::{BLOCK_ROWS, FAR, tile};

/// A read-only matrix in a slice, with any strides.
#[derive(Clone, Copy)]
pub(crate) struct Mat<'a> {
    pub(super) data: &'a [f32],
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) row_stride: usize,
    pub(super) col_stride: usize,
}

impl<'a> Mat<'a> {
    /// `[rows, cols]` in row-major order.
    pub(crate) fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "matrix of {rows} by {cols}");
        Self::columns(data, rows, cols, 0, cols)
    }

    /// Columns `first..first + cols` of a row-major matrix that is `width` wide.
    pub(crate) fn columns(
        data: &'a [f32],
        rows: usize,
        width: usize,
        first: usize,
        cols: usize,
    ) -> Self {
        assert!(first + cols <= width && rows * width <= data.len());
        Self {
            data: &data[first.min(data.len())..],
            rows,
            cols,
            row_stride: width,
            col_stride: 1,
        }
    }

    /// Rows of `cols` values that begin `step` values after each other, and so can overlap.
    pub(crate) fn overlapping(data: &'a [f32], rows: usize, step: usize, cols: usize) -> Self {
        assert!(rows == 0 || (rows - 1) * step + cols <= data.len());
        Self {
            data,
            rows,
            cols,
            row_stride: step,
            col_stride: 1,
        }
    }

    /// Some of the rows.
    pub(crate) fn rows(self, rows: &Range<usize>) -> Self {
        assert!(rows.end <= self.rows);
        let start = (rows.start * self.row_stride).min(self.data.len());
        Self {
            data: &self.data[start..],
            rows: rows.len(),
            ..self
        }
    }

    /// The scratch size that [`tile::rows`] needs for `depth` of the columns; 0 if they are used in place.
    pub(super) fn scratch(&self, depth: usize) -> usize {
        let (tile_rows, _) = tile::size();
        match self.col_stride {
            1 if self.row_stride <= FAR * depth || self.rows < BLOCK_ROWS / 2 => 0, // too few uses to copy
            1 => self.rows * (depth + tile::GAP),
            _ => self.rows.next_multiple_of(tile_rows) * depth,
        }
    }

    /// The columns from `first` on.
    pub(super) fn columns_from(self, first: usize) -> Self {
        assert!(first <= self.cols);
        let start = (first * self.col_stride).min(self.data.len());
        Self {
            data: &self.data[start..],
            cols: self.cols - first,
            ..self
        }
    }

    /// The first `cols` columns.
    pub(super) fn columns_upto(self, cols: usize) -> Self {
        assert!(cols <= self.cols);
        Self { cols, ..self }
    }

    /// The transpose.
    pub(crate) fn t(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }
}

/// The destination of a product: a block of columns of a row-major matrix.
pub(crate) struct MatMut<'a> {
    pub(super) data: &'a mut [f32],
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) width: usize,
    /// The number of columns that may be overwritten: at least `cols`.
    pub(super) room: usize,
}

impl<'a> MatMut<'a> {
    pub(crate) fn new(data: &'a mut [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "matrix of {rows} by {cols}");
        Self::columns(data, rows, cols, 0, cols)
    }

    pub(crate) fn columns(
        data: &'a mut [f32],
        rows: usize,
        width: usize,
        first: usize,
        cols: usize,
    ) -> Self {
        assert!(first + cols <= width && rows * width <= data.len());
        let first = first.min(data.len());
        Self {
            data: &mut data[first..],
            rows,
            cols,
            width,
            room: cols,
        }
    }

    /// The first `cols` columns of a matrix `width` wide. The other columns may be overwritten: whole tiles
    /// are faster than partial ones.
    pub(crate) fn with_room(data: &'a mut [f32], rows: usize, width: usize, cols: usize) -> Self {
        Self {
            room: width,
            ..Self::columns(data, rows, width, 0, cols)
        }
    }

    pub(crate) fn clear(&mut self) {
        let rows = self.data.chunks_mut(self.width).take(self.rows);
        rows.for_each(|row| row[..self.cols].fill(0.0));
    }

    /// The rows, split into about equal parts for threads. Parts consist of whole tiles where possible.
    pub(super) fn parts(self) -> Vec<(Range<usize>, &'a mut [f32])> {
        let (tile_rows, _) = tile::size();
        let tiles = self.rows.div_ceil(tile_rows);
        // A multiple of two parts per thread where there are enough tiles, to balance the load.
        let least = self.rows.div_ceil(BLOCK_ROWS);
        let several = 2 * rayon::current_num_threads();
        let count = least.next_multiple_of(several).min(tiles);
        let start = |i: usize| self.rows.min(i * tiles / count * tile_rows);
        let (mut rest, mut parts) = (self.data, Vec::with_capacity(count));
        for rows in (0..count).map(|i| start(i)..start(i + 1)) {
            let size = (rows.len() * self.width).min(rest.len());
            let (part, after) = rest.split_at_mut(size);
            parts.push((rows, part));
            rest = after;
        }
        parts
    }

    /// Some of the rows.
    pub(crate) fn rows(self, rows: &Range<usize>) -> Self {
        assert!(rows.end <= self.rows);
        let start = (rows.start * self.width).min(self.data.len());
        Self {
            data: &mut self.data[start..],
            rows: rows.len(),
            ..self
        }
    }
}
