//! Matrix products.
//!
//! These replace the `gemm` crate that candle uses, because a training step is faster with them; see
//! docs/performance.md for figures. The code is safe except for a prefetch hint.

mod matrix;
mod packed;
mod tile;

use std::cell::RefCell;

use rayon::prelude::*;

use crate::buffer::Buffer;
pub(crate) use matrix::{Mat, MatMut};
pub(crate) use packed::{ColumnBlocks, PackedMatrix};
use tile::Panels;
pub(crate) use tile::RowsMut;

/// Whether a result replaces the values of the destination or is added to them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Over,
    Add,
}

impl Write {
    /// Replaces if nothing was accumulated yet, else adds.
    pub(crate) fn first(fresh: bool) -> Self {
        if fresh { Write::Over } else { Write::Add }
    }
}

/// How many threads share a product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    All,
    One,
}

/// `cols`, rounded up to whole tiles.
pub(crate) fn whole_tiles(cols: usize) -> usize {
    cols.next_multiple_of(tile::size().1)
}

/// dst = a · b, or dst += a · b.
pub(crate) fn product(dst: MatMut, write: Write, a: Mat, b: Mat, threads: Threads) {
    product_then(dst, write, a, b, threads, |_, _| {});
}

/// The same, followed by `finish(row, values)` for every row of dst while it is in the cache.
///
/// The algorithm of Goto and van de Geijn (2008): b is divided into blocks that fit the cache. They are
/// packed in the order in which they are read and shared by all threads, which divide the rows of dst. The
/// order of summation depends only on the shapes, so the bits do not depend on the number of threads.
pub(crate) fn product_then(
    dst: MatMut,
    write: Write,
    a: Mat,
    b: Mat,
    threads: Threads,
    finish: impl Fn(usize, &mut [f32]) + Sync,
) {
    let (m, n, k) = (dst.rows, dst.cols, a.cols);
    assert_eq!((a.rows, b.rows, b.cols), (m, k, n), "shapes of a product");
    if m == 0 || n == 0 {
        return;
    }
    if threads == Threads::One || m * n * k < SMALL {
        return on_this_thread(dst, write, a, b, finish);
    }
    if m <= FEW && write == Write::Over {
        return few_rows(dst, a, b, finish);
    }
    let (depth, padded) = (depth(k), whole_tiles(n));
    // Either some columns of b are packed at once, or, if rows of a must be packed or copied as well, all
    // columns for some of the inner index, so that a is packed only once.
    let once = a.rows(&(0..m.min(BLOCK_ROWS))).scratch(depth) > 0 && depth * padded <= 2 * PACKED;
    let (length, cols) = if once {
        (k.min((PACKED / padded / depth).max(1) * depth), padded)
    } else {
        (
            k,
            whole_tiles((PACKED / k).max(4 * tile::size().1)).min(padded),
        )
    };
    let mut packed = Buffer::any(length * cols);
    let (width, mut parts) = (dst.width, dst.parts());
    for first in (0..n).step_by(cols) {
        let cols = cols.min(n - first);
        for start in (0..k).step_by(length) {
            let inner = start..k.min(start + length);
            let write = if start == 0 { write } else { Write::Add };
            let packed = &mut packed[..inner.len() * whole_tiles(cols)];
            pack(b.rows(&inner), first, cols, depth, packed);
            let a = a.columns_upto(inner.end).columns_from(start);
            parts
                .par_iter_mut()
                .with_max_len(1)
                .for_each(|(rows, dst)| {
                    let a = a.rows(rows);
                    let here = RowsMut {
                        data: &mut dst[first..],
                        width,
                    };
                    let packed = Panels {
                        data: packed,
                        packed: cols,
                        cols,
                    };
                    with_scratch(a.scratch(depth), |scratch| {
                        tile::rows(here, write, a, packed, depth, scratch);
                    });
                    if first + cols == n && inner.end == k {
                        let values = dst.chunks_mut(width).zip(rows.clone());
                        values.for_each(|(values, row)| finish(row, &mut values[..n]));
                    }
                });
        }
    }
}

/// A product of few rows and a large matrix, as in decoding. Threads divide the columns. Each packs some
/// columns and uses them immediately, so that the packed matrix stays in the cache.
fn few_rows(dst: MatMut, a: Mat, b: Mat, finish: impl Fn(usize, &mut [f32]) + Sync) {
    let (m, n) = (dst.rows, dst.cols);
    let starts: Vec<usize> = (0..n).step_by(COLS).collect();
    let blocks: Vec<Buffer> = starts
        .par_iter()
        .map(|&first| {
            let b = b.columns_from(first).columns_upto(COLS.min(n - first));
            let mut block = Buffer::any(m * b.cols);
            let dst = MatMut::new(&mut block, m, b.cols);
            on_this_thread(dst, Write::Over, a, b, |_, _| {});
            block
        })
        .collect();
    for (row, values) in dst.data.chunks_mut(dst.width).take(m).enumerate() {
        for (&first, block) in starts.iter().zip(&blocks) {
            let cols = block.len() / m;
            values[first..][..cols].copy_from_slice(&block[row * cols..][..cols]);
        }
        finish(row, &mut values[..n]);
    }
}

/// A product on one thread: too small to divide, or one of many in parallel.
fn on_this_thread(
    mut dst: MatMut,
    write: Write,
    a: Mat,
    b: Mat,
    finish: impl Fn(usize, &mut [f32]) + Sync,
) {
    let (m, n, k) = (dst.rows, dst.cols, a.cols);
    let (depth, padded) = (depth(k), whole_tiles(n));
    let (size, more) = (k * padded, a.scratch(depth));
    let cols = if padded <= dst.room { padded } else { n };
    if k == 0 && write == Write::Over {
        dst.clear();
    }
    with_scratch(size + more, |scratch| {
        let (packed, scratch) = scratch.split_at_mut(size);
        for start in (0..k).step_by(depth) {
            let depth = depth.min(k - start);
            let packed = &mut packed[start * padded..][..depth * padded];
            tile::pack(b, start, depth, 0, packed);
        }
        let here = RowsMut {
            data: &mut *dst.data,
            width: dst.width,
        };
        let packed = Panels {
            data: packed,
            packed: padded,
            cols,
        };
        tile::rows(here, write, a, packed, depth, scratch);
    });
    let rows = dst.data.chunks_mut(dst.width).take(m).enumerate();
    rows.for_each(|(row, values)| finish(row, &mut values[..n]));
}

/// Scratch memory with arbitrary values for packed operands. It is local to the thread, because memory that
/// another thread has just written is slow to access.
fn with_scratch<T>(size: usize, work: impl FnOnce(&mut [f32]) -> T) -> T {
    thread_local! {
        /// It grows and never shrinks.
        static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.len() < size {
            scratch.resize(size, 0.0);
        }
        work(&mut scratch[..size])
    })
}

/// The part of the inner index per pass of the tiles: equal parts of at most [`DEPTH`].
fn depth(k: usize) -> usize {
    k.div_ceil(k.div_ceil(DEPTH).max(1)).max(1)
}

/// Columns of b per packing task: a multiple of every tile width.
const COLS: usize = 128;

/// Columns `first..first + cols` of b, as [`tile::rows`] reads them.
fn pack(b: Mat, first: usize, cols: usize, depth: usize, packed: &mut [f32]) {
    let padded = packed.len() / b.rows;
    let b = b.columns_upto(first + cols);
    for start in (0..b.rows).step_by(depth) {
        let depth = depth.min(b.rows - start);
        let packed = &mut packed[start * padded..][..depth * padded];
        let parts = packed
            .par_chunks_mut(COLS * depth)
            .with_max_len(1)
            .enumerate();
        parts.for_each(|(i, panels)| tile::pack(b, start, depth, first + i * COLS, panels));
    }
}

/// The most of the inner index per pass of the tiles. A panel of b is then about as large as the
/// first-level cache.
pub(crate) const DEPTH: usize = 512;
/// The most rows of dst and a per task. A block of a then stays in the second-level cache.
const BLOCK_ROWS: usize = 96;
/// Rows of a are copied if their stride is more than this many times what is read of each, unless they are
/// few. Strides of large powers of two, common in models, map all rows to the same few cache lines.
const FAR: usize = 2;
/// Roughly the elements of b that are packed at once. They stay in the third-level cache.
const PACKED: usize = 1 << 20;
/// At most so many rows: threads divide the columns instead.
const FEW: usize = 24;
/// Products of fewer multiplications run on one thread: waking another costs more.
const SMALL: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Site};

    fn matrix(n: usize, draw: u64) -> Vec<f32> {
        let key = Key::new(3, draw, Site::named("gemm"));
        (0..n).map(|i| key.normal(i as u64) as f32).collect()
    }

    /// Whether each operand is transposed.
    const LAYOUTS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

    fn view(data: &[f32], rows: usize, cols: usize, transposed: bool) -> Mat<'_> {
        if transposed {
            Mat::new(data, cols, rows).t()
        } else {
            Mat::new(data, rows, cols)
        }
    }

    /// A product added to ones, in the middle columns of a wider matrix. Each row is then doubled.
    fn products(
        threads: usize,
        (m, n, k): (usize, usize, usize),
        layout: (bool, bool),
    ) -> Vec<f32> {
        let (a, b) = (matrix(m * k, 1), matrix(n * k, 2));
        let mut dst = vec![1.0; m * (n + 3)];
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(|| {
            let (a, b) = (view(&a, m, k, layout.0), view(&b, k, n, layout.1));
            let dst = MatMut::columns(&mut dst, m, n + 3, 2, n);
            product_then(dst, Write::Add, a, b, Threads::All, |_, row| {
                row.iter_mut().for_each(|x| *x *= 2.0);
            });
        });
        dst
    }

    #[test]
    fn products_have_the_same_bits_on_any_number_of_threads() {
        for size in [
            (1, 512, 512),
            (333, 512, 1100),
            (2000, 96, 300),
            (77, 5000, 300),
            (100, 1100, 1100),
        ] {
            for layout in LAYOUTS {
                let one = products(1, size, layout);
                for threads in [2, 3, 5] {
                    assert!(one == products(threads, size, layout), "{size:?} {threads}");
                }
            }
        }
    }

    #[test]
    fn products_equal_a_plain_sum_in_any_layout_and_size() {
        let small = [
            (1, 1, 1),
            (3, 5, 7),
            (17, 1, 33),
            (1, 19, 31),
            (5, 4, 0),
            (25, 25, 64),
        ];
        // Larger than one task, one packed block, and one pass.
        let large = [
            (97, 130, 600),
            (100, 64, 70),
            (13, 3000, 520),
            (200, 33, 1025),
        ];
        for (m, n, k) in small.into_iter().chain(large) {
            let (a, b) = (matrix(m * k, 1), matrix(n * k, 2));
            for layout in LAYOUTS {
                let (av, bv) = (view(&a, m, k, layout.0), view(&b, k, n, layout.1));
                let a_at = |i, l| av.data[i * av.row_stride + l * av.col_stride];
                let b_at = |l, j| bv.data[l * bv.row_stride + j * bv.col_stride];
                let dst = products(2, (m, n, k), layout);
                for (i, row) in dst.chunks(n + 3).enumerate() {
                    assert_eq!([row[0], row[1], row[n + 2]], [1.0; 3], "beside the columns");
                    for (j, x) in row[2..n + 2].iter().enumerate() {
                        let sum: f64 = (0..k)
                            .map(|l| f64::from(a_at(i, l)) * f64::from(b_at(l, j)))
                            .sum();
                        let error = f64::from(x / 2.0) - 1.0 - sum;
                        assert!(error.abs() < 2e-4, "{m} {n} {k} {layout:?}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_empty_inner_index_gives_zeros() {
        let mut dst = vec![f32::NAN; 6];
        let (a, b) = (Mat::new(&[], 2, 0), Mat::new(&[], 0, 3));
        product(MatMut::new(&mut dst, 2, 3), Write::Over, a, b, Threads::All);
        assert_eq!(dst, [0.0; 6]);
    }
}
