use super::{Mat, Write, depth, pack, tile, whole_tiles, with_scratch};
use crate::buffer::Buffer;

/// A matrix that many products have on their right: packed once for all of them.
///
/// A step of a recurrence has few rows: packing the weights anew for each costs more than half as much again.
pub(crate) struct Packed {
    values: Buffer,
    rows: usize,
    cols: usize,
}

impl Packed {
    /// Packs b `[rows, cols]`.
    pub(crate) fn new(b: Mat, rows: usize, cols: usize) -> Self {
        let mut values = Buffer::any(rows * whole_tiles(cols));
        pack(b, 0, cols, depth(rows), &mut values);
        Self { values, rows, cols }
    }

    /// dst (=|+=) a · b on this thread, with k rows of a, in the first columns of dst, which is `width`
    /// wide. A row's bits do not depend on the others.
    pub(crate) fn product(&self, (dst, width): (&mut [f32], usize), write: Write, a: Mat) {
        let depth = depth(self.rows);
        let packed = (&self.values[..], self.cols);
        with_scratch(a.scratch(depth), |scratch| {
            tile::rows((dst, width), write, a, packed, depth, scratch);
        });
    }
}
