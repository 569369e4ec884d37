//! The inner loops of a product. They compute a tile of the result that fits the registers, over a part of
//! the inner index. The compiler vectorises them. They are compiled once per instruction set, and
//! [`Isa::current`] selects a version at run time.

use super::{COLS, DEPTH, Mat, Write};
use crate::isa::{Isa, kernel};

/// The destination of a product: the first columns of rows with a stride of `width`.
pub(crate) struct RowsMut<'a> {
    pub(crate) data: &'a mut [f32],
    pub(crate) width: usize,
}

/// A matrix that is packed for the tiles: blocks of rows, each as panels of a tile's width.
#[derive(Clone, Copy)]
pub(super) struct Panels<'a> {
    pub(super) data: &'a [f32],
    /// Columns that are packed.
    pub(super) packed: usize,
    /// Columns that are read: all, or the first.
    pub(super) cols: usize,
}

/// Rows and columns of a tile.
pub(super) fn size() -> (usize, usize) {
    match Isa::current() {
        Isa::Avx512 => (12, 32),
        Isa::Avx2 | Isa::Neon => (6, 16),
        Isa::Plain => (4, 8),
    }
}

kernel! {
    /// dst (=|+=) a · b for some rows. b is packed in blocks of `depth` of its rows. `scratch` is as large as
    /// [`Mat::scratch`] says.
    pub(super) fn rows(
        dst: RowsMut,
        write: Write,
        a: Mat,
        packed: Panels,
        depth: usize,
        scratch: &mut [f32],
    ) {
        Avx512 => tiles::<12, 16, 32, true>(dst, write, a, packed, depth, scratch),
        Avx2 => tiles::<6, 8, 16, true>(dst, write, a, packed, depth, scratch),
        Neon => tiles::<6, 8, 16, true>(dst, write, a, packed, depth, scratch),
        Plain => tiles::<4, 4, 8, false>(dst, write, a, packed, depth, scratch),
    }
}

#[inline(always)]
fn tiles<const M: usize, const W: usize, const N: usize, const FUSED: bool>(
    dst: RowsMut,
    write: Write,
    a: Mat,
    packed: Panels,
    depth: usize,
    scratch: &mut [f32],
) {
    let RowsMut { data: dst, width } = dst;
    let Panels {
        data,
        packed: packed_cols,
        cols,
    } = packed;
    const { assert!(M <= W && W <= 2 * M && N.is_multiple_of(SIDE) && COLS.is_multiple_of(N)) }
    let padded = packed_cols.next_multiple_of(N);
    for start in (0..a.cols).step_by(depth) {
        let depth = depth.min(a.cols - start);
        let write = if start == 0 { write } else { Write::Add };
        let by_rows = a.col_stride == 1;
        if !by_rows {
            pack_rows::<M, W>(a, start, depth, scratch);
        } else if !scratch.is_empty() {
            copy_rows(a, start, depth, scratch);
        }
        let scratch = &*scratch;
        // Computed once for all columns. The last row is repeated to fill the last tile.
        let tile_rows: Vec<[&[f32]; M]> = if by_rows {
            let (data, stride) = if scratch.is_empty() {
                (&a.data[start.min(a.data.len())..], a.row_stride)
            } else {
                (scratch, depth + GAP)
            };
            let row = |i: usize| &data[i.min(a.rows - 1) * stride..][..depth];
            let tiles = (0..a.rows).step_by(M);
            tiles.map(|i| std::array::from_fn(|r| row(i + r))).collect()
        } else {
            Vec::new()
        };
        let panels = data[start * padded..][..depth * padded].chunks_exact(depth * N);
        let panels = panels.take(cols.div_ceil(N));
        if by_rows && a.rows < REST {
            let panels: Vec<&[f32]> = panels.collect();
            let rows = &tile_rows[0];
            let dst = RowsMut {
                data: &mut *dst,
                width,
            };
            match a.rows {
                1 => narrow::<1, REST, N, FUSED>(dst, write, [rows[0]], &panels, cols),
                2 => narrow::<2, 2, N, FUSED>(dst, write, [rows[0], rows[1]], &panels, cols),
                _ => {
                    narrow::<3, 1, N, FUSED>(dst, write, [rows[0], rows[1], rows[2]], &panels, cols)
                }
            }
            continue;
        }
        for (j, panel) in panels.enumerate() {
            let here = N.min(cols - j * N);
            for i in (0..a.rows).step_by(M) {
                for r in 0..M.min(a.rows - i) {
                    let place = &dst[(i + r) * width + j * N..][..here];
                    prefetch(&place[0]);
                    prefetch(&place[here - 1]);
                }
                let left = a.rows - i;
                if by_rows && left <= M - REST {
                    // Smaller tiles, so that few rows are computed in vain.
                    for i in (i..a.rows).step_by(REST) {
                        let rows = &tile_rows[i / M];
                        let rows = std::array::from_fn(|r| rows[(i % M + r).min(M - 1)]);
                        let tile = tile_of_rows::<REST, N, FUSED>(&rows, panel);
                        let dst = &mut dst[i * width + j * N..];
                        store_tile(dst, width, (a.rows - i).min(REST), here, write, &tile);
                    }
                    continue;
                }
                let tile = if by_rows {
                    tile_of_rows::<M, N, FUSED>(&tile_rows[i / M], panel)
                } else {
                    tile_of_panels::<M, N, FUSED>(&scratch[i * depth..][..M * depth], panel)
                };
                let dst = &mut dst[i * width + j * N..];
                if here == N && left >= M {
                    // Both sizes are constants here, so the tile stays in registers.
                    for r in 0..M {
                        store(&mut dst[r * width..][..N], write, tile[r]);
                    }
                } else {
                    store_tile(dst, width, left.min(M), here, write, &tile);
                }
            }
        }
    }
}

/// The rows of the smaller tiles, for rows that do not fill a tile.
const REST: usize = 4;

/// Stores the first `rows` rows and `cols` columns of a tile.
#[inline(always)]
fn store_tile<const M: usize, const N: usize>(
    dst: &mut [f32],
    width: usize,
    rows: usize,
    cols: usize,
    write: Write,
    tile: &[[f32; N]; M],
) {
    for (r, values) in tile.iter().take(rows).enumerate() {
        if cols == N {
            store(&mut dst[r * width..][..N], write, *values);
        } else {
            store_part(&mut dst[r * width..][..cols], write, *values);
        }
    }
}

/// R rows and all panels, P panels at a time: one panel alone would wait for its own sums.
#[inline(always)]
fn narrow<const R: usize, const P: usize, const N: usize, const FUSED: bool>(
    dst: RowsMut,
    write: Write,
    rows: [&[f32]; R],
    panels: &[&[f32]],
    cols: usize,
) {
    let RowsMut { data: dst, width } = dst;
    for (group, panels) in panels.chunks(P).enumerate() {
        // The last panel is repeated to fill the last group.
        let panels: [&[[f32; N]]; P] = std::array::from_fn(|j| {
            let panel = panels[j.min(panels.len() - 1)];
            panel.as_chunks::<N>().0
        });
        let depth = panels[0].len();
        let panels = panels.map(|panel| &panel[..depth]);
        let rows = rows.map(|row| &row[..depth]);
        let mut tiles = [[[0.0; N]; R]; P];
        for p in 0..depth {
            let a: [f32; R] = std::array::from_fn(|r| rows[r][p]);
            for j in 0..P {
                multiply_add::<R, N, FUSED>(&mut tiles[j], a, &panels[j][p]);
            }
        }
        for (j, tile) in tiles.iter().enumerate() {
            let first = (group * P + j) * N;
            if first < cols {
                store_tile(
                    &mut dst[first..],
                    width,
                    R,
                    N.min(cols - first),
                    write,
                    tile,
                );
            }
        }
    }
}

const UNROLL: usize = 4;

#[inline(always)]
fn tile_of_rows<const M: usize, const N: usize, const FUSED: bool>(
    rows: &[&[f32]; M],
    panel: &[f32],
) -> [[f32; N]; M] {
    let (panel, _) = panel.as_chunks::<N>();
    let rows: [&[f32]; M] = std::array::from_fn(|r| &rows[r][..panel.len()]);
    let mut tile = [[0.0; N]; M];
    let (fours, rest) = panel.as_chunks::<UNROLL>();
    let quads: [&[[f32; UNROLL]]; M] =
        std::array::from_fn(|r| &rows[r].as_chunks::<UNROLL>().0[..fours.len()]);
    for (p, b) in fours.iter().enumerate() {
        for u in 0..UNROLL {
            multiply_add::<M, N, FUSED>(&mut tile, std::array::from_fn(|r| quads[r][p][u]), &b[u]);
        }
    }
    for (p, b) in rest.iter().enumerate() {
        let p = UNROLL * fours.len() + p;
        multiply_add::<M, N, FUSED>(&mut tile, std::array::from_fn(|r| rows[r][p]), b);
    }
    tile
}

#[inline(always)]
fn tile_of_panels<const M: usize, const N: usize, const FUSED: bool>(
    a: &[f32],
    b: &[f32],
) -> [[f32; N]; M] {
    let mut tile = [[0.0; N]; M];
    let (a, a_rest) = a.as_chunks::<M>().0.as_chunks::<UNROLL>();
    let (b, b_rest) = b.as_chunks::<N>().0.as_chunks::<UNROLL>();
    for (a, b) in a.iter().zip(b) {
        for u in 0..UNROLL {
            multiply_add::<M, N, FUSED>(&mut tile, a[u], &b[u]);
        }
    }
    for (a, b) in a_rest.iter().zip(b_rest) {
        multiply_add::<M, N, FUSED>(&mut tile, *a, b);
    }
    tile
}

#[inline(always)]
fn multiply_add<const M: usize, const N: usize, const FUSED: bool>(
    tile: &mut [[f32; N]; M],
    a: [f32; M],
    b: &[f32; N],
) {
    for i in 0..M {
        for j in 0..N {
            // Without an FMA instruction, `mul_add` is a slow function call.
            tile[i][j] = if FUSED {
                a[i].mul_add(b[j], tile[i][j])
            } else {
                a[i] * b[j] + tile[i][j]
            };
        }
    }
}

/// Prefetches memory that will be used soon. Makes storing tiles 3 to 8% faster.
#[inline(always)]
fn prefetch(_place: &f32) {
    // SAFETY: a prefetch is a hint. It neither reads nor writes, whatever the address.
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(_place).cast());
    }
}

/// The number of rows that are prefetched ahead: the hardware prefetcher does not predict large strides.
const AHEAD: usize = 8;

#[inline(always)]
fn prefetch_all(values: &[f32]) {
    const LINE: usize = 16;
    values.iter().step_by(LINE).for_each(prefetch);
}

#[inline(always)]
fn store<const N: usize>(dst: &mut [f32], write: Write, values: [f32; N]) {
    if let Some(dst) = dst.first_chunk_mut::<N>() {
        match write {
            Write::Over => *dst = values,
            Write::Add => dst.iter_mut().zip(values).for_each(|(d, v)| *d += v),
        }
    }
}

/// Stores a partial tile at the edge of the matrix.
#[inline(always)]
fn store_part<const N: usize>(dst: &mut [f32], write: Write, values: [f32; N]) {
    let values = dst.iter_mut().zip(values);
    match write {
        Write::Over => values.for_each(|(d, v)| *d = v),
        Write::Add => values.for_each(|(d, v)| *d += v),
    }
}

/// Elements between copied rows, so that they do not map to the same cache lines.
pub(super) const GAP: usize = 16;

/// Copies columns `start..start + depth` of a, with a gap after each row.
#[inline(always)]
fn copy_rows(a: Mat, start: usize, depth: usize, copies: &mut [f32]) {
    let rows = copies.chunks_exact_mut(depth + GAP).take(a.rows);
    for (i, row) in rows.enumerate() {
        row[..depth].copy_from_slice(&a.data[i * a.row_stride + start..][..depth]);
    }
}

/// Columns `start..start + depth` of a as panels of M rows. Rows below the last are zero.
///
/// W is M rounded up to a power of two. Where possible, W elements are copied instead of M, which takes
/// fewer instructions. The surplus is overwritten by the next column.
#[inline(always)]
fn pack_rows<const M: usize, const W: usize>(
    a: Mat,
    start: usize,
    depth: usize,
    panels: &mut [f32],
) {
    let panels = &mut panels[..a.rows.next_multiple_of(M) * depth];
    if a.row_stride != 1 {
        for (i, value) in panels.iter_mut().enumerate() {
            let (panel, place) = (i / (M * depth), i % (M * depth));
            let (row, column) = (panel * M + place % M, start + place / M);
            let at = row * a.row_stride + column * a.col_stride;
            *value = if row < a.rows { a.data[at] } else { 0.0 };
        }
        return;
    }
    // The number of panels where W elements can be copied: whole panels with W elements left.
    let wide = (a.rows / M).min((a.rows + M).saturating_sub(W) / M);
    for p in 0..depth {
        let column = |p: usize| &a.data[(start + p) * a.col_stride..][..a.rows];
        if p + AHEAD < depth {
            prefetch_all(column(p + AHEAD));
        }
        let (column, last) = (column(p), p + 1 == depth);
        for i in 0..if last { 0 } else { wide } {
            let (from, to) = (
                &column[i * M..][..W],
                &mut panels[(i * depth + p) * M..][..W],
            );
            to.copy_from_slice(from);
        }
        for i in if last { 0 } else { wide }..a.rows.div_ceil(M) {
            let from = &column[i * M..a.rows.min((i + 1) * M)];
            let (to, padding) = panels[(i * depth + p) * M..][..M].split_at_mut(from.len());
            to.copy_from_slice(from);
            padding.fill(0.0);
        }
    }
}

kernel! {
    /// Rows `start..start + depth` of b and its columns from `first` on, as panels of a tile's width.
    /// Columns beyond the last are zero.
    pub(super) fn pack(b: Mat, start: usize, depth: usize, first: usize, panels: &mut [f32]) {
        Avx512 => pack_columns::<32>(b, start, depth, first, panels),
        Avx2 => pack_columns::<16>(b, start, depth, first, panels),
        Neon => pack_columns::<16>(b, start, depth, first, panels),
        Plain => pack_columns::<8>(b, start, depth, first, panels),
    }
}

#[inline(always)]
fn pack_columns<const N: usize>(
    b: Mat,
    start: usize,
    depth: usize,
    first: usize,
    panels: &mut [f32],
) {
    let last = b.cols.min(first + panels.len() / depth.max(1));
    if b.row_stride == 1 && b.col_stride != 1 {
        for (j, panel) in panels.chunks_exact_mut(depth.max(1) * N).enumerate() {
            let columns = std::array::from_fn(|q| match first + j * N + q {
                column if column < last => &b.data[column * b.col_stride + start..][..depth],
                _ => &ZEROS[..depth],
            });
            transpose(columns, panel.as_chunks_mut::<N>().0);
        }
        return;
    }
    let (whole, rest) = panels.split_at_mut((last - first) / N * N * depth);
    if b.col_stride == 1 {
        // Row by row, so that memory is read in order.
        for p in 0..depth {
            let row =
                |p: usize| &b.data[(start + p) * b.row_stride + first..][..whole.len() / depth];
            if p + AHEAD < depth {
                prefetch_all(row(p + AHEAD));
            }
            let row = row(p);
            for (j, values) in row.as_chunks::<N>().0.iter().enumerate() {
                whole[(j * depth + p) * N..][..N].copy_from_slice(values);
            }
        }
    } else {
        for (j, panel) in whole.chunks_exact_mut(depth * N).enumerate() {
            let column = |q: usize| (first + j * N + q) * b.col_stride + start * b.row_stride;
            for (p, row) in panel.as_chunks_mut::<N>().0.iter_mut().enumerate() {
                *row = std::array::from_fn(|q| b.data[column(q) + p * b.row_stride]);
            }
        }
    }
    if rest.is_empty() {
        return;
    }
    let first = first + whole.len() / depth;
    let (rows, _) = rest.as_chunks_mut::<N>();
    rows.as_flattened_mut().fill(0.0);
    for column in first..last {
        let values = b.data[column * b.col_stride + start * b.row_stride..].iter();
        let values = values.step_by(b.row_stride).zip(&mut *rows);
        values.for_each(|(value, row)| row[column - first] = *value);
    }
}

/// Stands for columns beyond the last.
static ZEROS: [f32; DEPTH] = [0.0; DEPTH];

const SIDE: usize = 8;

/// Transposes in squares of 8 by 8. A square fits the registers, and columns with a stride of a large power
/// of two do not evict each other from the cache.
#[inline(always)]
fn transpose<const N: usize>(columns: [&[f32]; N], rows: &mut [[f32; N]]) {
    for q in (0..N).step_by(SIDE) {
        let columns: [_; SIDE] = std::array::from_fn(|c| columns[q + c].as_chunks::<SIDE>());
        let (squares, rest) = rows.as_chunks_mut::<SIDE>();
        for (s, rows) in squares.iter_mut().enumerate() {
            let square: [&[f32; SIDE]; SIDE] = std::array::from_fn(|c| &columns[c].0[s]);
            for (p, row) in rows.iter_mut().enumerate() {
                let values: [f32; SIDE] = std::array::from_fn(|c| square[c][p]);
                row[q..][..SIDE].copy_from_slice(&values);
            }
        }
        for (p, row) in rest.iter_mut().enumerate() {
            for (c, value) in row[q..][..SIDE].iter_mut().enumerate() {
                *value = columns[c].1[p];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Site};

    /// Checks the tile sizes of every instruction set, compiled without its instructions.
    fn variant<const M: usize, const W: usize, const N: usize, const FUSED: bool>() {
        let key = Key::new(3, 0, Site::named("tile"));
        let values = |n: usize, draw: u64| -> Vec<f32> {
            (0..n as u64)
                .map(|i| key.fork(draw).normal(i) as f32)
                .collect()
        };
        let sizes = [
            (1, 1, 1),
            (13, 35, 3),
            (13, 35, 29),
            (2 * M, 2 * N, 64),
            (40, 70, 9),
        ];
        let few = if cfg!(miri) { 0..2 } else { 0..sizes.len() }; // Miri is slow
        for &(m, n, k) in &sizes[few] {
            let (a, b) = (values(m * k, 1), values(k * n, 2));
            // a in place, copied, and packed.
            for (a, b, room) in [
                (Mat::new(&a, m, k), Mat::new(&b, k, n), 0),
                (Mat::new(&a, m, k), Mat::new(&b, k, n), m),
                (Mat::new(&a, k, m).t(), Mat::new(&b, n, k).t(), m),
            ] {
                let depth = 20.min(k);
                let padded = n.next_multiple_of(N);
                let mut packed = vec![f32::NAN; k * padded];
                for start in (0..k).step_by(depth) {
                    let depth = depth.min(k - start);
                    let panels = &mut packed[start * padded..][..depth * padded];
                    pack_columns::<N>(b, start, depth, 0, panels);
                }
                let mut scratch = vec![f32::NAN; room.next_multiple_of(M) * (depth + GAP)];
                let mut dst = vec![f32::NAN; m * n];
                let packed = Panels {
                    data: &packed,
                    packed: n,
                    cols: n,
                };
                let rows = RowsMut {
                    data: &mut dst,
                    width: n,
                };
                tiles::<M, W, N, FUSED>(rows, Write::Over, a, packed, depth, &mut scratch);
                for (place, value) in dst.iter().enumerate() {
                    let (i, j) = (place / n, place % n);
                    let term = |l: usize| {
                        a.data[i * a.row_stride + l * a.col_stride]
                            * b.data[l * b.row_stride + j * b.col_stride]
                    };
                    let sum: f32 = (0..k).map(term).sum();
                    assert!((value - sum).abs() < 1e-4, "{M} {N}: {value} is not {sum}");
                }
            }
        }
    }

    #[test]
    fn the_tiles_of_every_instruction_set_give_the_same_product() {
        variant::<12, 16, 32, true>();
        variant::<6, 8, 16, true>();
        variant::<4, 4, 8, false>();
    }
}
