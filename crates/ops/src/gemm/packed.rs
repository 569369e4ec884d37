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
            cols: self.cols,
        };
        with_scratch(a.scratch(depth), |scratch| {
            tile::rows(dst, write, a, packed, depth, scratch);
        });
    }
}
