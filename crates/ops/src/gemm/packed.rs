use super::tile::{Panels, RowsMut};
use super::{Mat, Write, depth, pack, tile, whole_tiles, with_scratch};
use crate::buffer::Buffer;

/// A right operand, packed once for many products.
///
/// A step of a recurrence has few rows. Packing the weights again for each step makes it more than 1.5 times
/// as slow.
pub(crate) struct PackedMatrix {
    values: Buffer,
    rows: usize,
    cols: usize,
}

impl PackedMatrix {
    /// Packs b `[rows, cols]`.
    pub(crate) fn new(b: Mat, rows: usize, cols: usize) -> Self {
        let mut values = Buffer::any(rows * whole_tiles(cols));
        pack(b, 0, cols, depth(rows), &mut values);
        Self { values, rows, cols }
    }

    /// dst (=|+=) a · b on this thread, for the rows of a. A row's bits do not depend on the other rows.
    pub(crate) fn product(&self, dst: RowsMut, write: Write, a: Mat) {
        let depth = depth(self.rows);
        let packed = Panels {
            data: &self.values,
            packed: self.cols,
            cols: self.cols,
        };
        with_scratch(a.scratch(depth), |scratch| {
            tile::rows(dst, write, a, packed, depth, scratch);
        });
    }
}

/// A right operand that is packed once for many products, in blocks of columns that threads can share.
pub(crate) struct ColumnBlocks {
    values: Vec<f32>,
    rows: usize,
    cols: usize,
}

impl ColumnBlocks {
    /// The columns of a block; the last one may have fewer.
    pub(crate) const COLS: usize = super::COLS;

    /// Packs b `[rows, cols]`.
    pub(crate) fn new(b: Mat, rows: usize, cols: usize) -> Self {
        let mut values = vec![0.0; rows * whole_tiles(cols)];
        for (i, block) in values.chunks_mut((rows * Self::COLS).max(1)).enumerate() {
            let first = i * Self::COLS;
            pack(b, first, Self::COLS.min(cols - first), depth(rows), block);
        }
        Self { values, rows, cols }
    }

    /// The inner index of products.
    pub(crate) fn depth(&self) -> usize {
        self.rows
    }

    fn block(&self, index: usize) -> Panels<'_> {
        let first = index * Self::COLS;
        let cols = Self::COLS.min(self.cols - first);
        let data = &self.values[first * self.rows..][..whole_tiles(cols) * self.rows];
        let packed = cols;
        Panels { data, packed, cols }
    }

    /// dst = a · b for the first columns of one block, on this thread. A row's bits do not depend on the other
    /// rows.
    pub(crate) fn product(&self, a: Mat, block: usize, cols: usize, dst: RowsMut) {
        let depth = depth(self.rows);
        let block = self.block(block);
        assert!(cols <= block.cols, "columns of a block");
        let block = Panels { cols, ..block };
        with_scratch(a.scratch(depth), |scratch| {
            tile::rows(dst, Write::Over, a, block, depth, scratch);
        });
    }

    /// One column of b.
    pub(crate) fn column(&self, column: usize, values: &mut [f32]) {
        let (block, place) = (self.block(column / Self::COLS), column % Self::COLS);
        let ((_, tile), whole) = (tile::size(), depth(self.rows));
        let padded = whole_tiles(block.cols);
        for (i, values) in values.chunks_mut(whole).enumerate() {
            let start = i * whole * padded + place / tile * tile * values.len();
            let from = block.data[start + place % tile..].iter().step_by(tile);
            values
                .iter_mut()
                .zip(from)
                .for_each(|(to, from)| *to = *from);
        }
    }
}
