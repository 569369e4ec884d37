//! Matrix products through the `gemm` crate, behind checked views: the crate's only `unsafe` kernel.

use std::ops::Range;

use gemm::Parallelism;

/// A read-only matrix in a slice, with any strides.
#[derive(Clone, Copy)]
pub(crate) struct Mat<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> Mat<'a> {
    /// `[rows, cols]`, row after row.
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

/// Where a product goes: a column block of a row-major matrix.
pub(crate) struct MatMut<'a> {
    data: &'a mut [f32],
    rows: usize,
    cols: usize,
    width: usize,
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
        }
    }
}

impl MatMut<'_> {
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

/// What becomes of the values that the destination held.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Over,
    Add,
}

impl Write {
    /// The first writer of a buffer writes over what an earlier step left there.
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

/// dst = a · b, or dst += a · b.
pub(crate) fn product(dst: MatMut, write: Write, a: Mat, b: Mat, threads: Threads) {
    let (m, n, k) = (dst.rows, dst.cols, a.cols);
    assert_eq!((a.rows, b.rows, b.cols), (m, k, n), "shapes of a product");
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        if write == Write::Over {
            for row in 0..m {
                dst.data[row * dst.width..][..n].fill(0.0);
            }
        }
        return;
    }
    let parallelism = match threads {
        Threads::All => Parallelism::Rayon(rayon::current_num_threads()),
        Threads::One => Parallelism::None,
    };
    // SAFETY: the constructors of `Mat` and `MatMut` checked that every (row, column) of each view
    // lies inside its slice; `dst` is borrowed mutably, so it overlaps neither operand; with
    // `read_dst` false the old values are not read.
    #[allow(unsafe_code)]
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            dst.data.as_mut_ptr(),
            1,
            dst.width as isize,
            write == Write::Add,
            a.data.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            1.0f32, // scales dst
            1.0f32, // scales the product
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Site};

    fn matrix(n: usize, draw: u64) -> Vec<f32> {
        let key = Key::new(3, draw, Site::named("gemm"));
        (0..n).map(|i| key.normal(i as u64) as f32).collect()
    }

    fn products(threads: usize, m: usize, n: usize, k: usize) -> Vec<f32> {
        let (a, b) = (matrix(m * k, 1), matrix(n * k, 2));
        let mut dst = vec![1.0; m * n];
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(|| {
            let (a, b) = (Mat::new(&a, m, k), Mat::new(&b, n, k).t());
            product(MatMut::new(&mut dst, m, n), Write::Add, a, b, Threads::All);
        });
        dst
    }

    #[test]
    fn products_have_the_same_bits_on_any_number_of_threads() {
        for (m, n, k) in [
            (1, 512, 512),
            (333, 512, 2048),
            (2000, 256, 1024),
            (77, 1000, 300),
        ] {
            let one = products(1, m, n, k);
            for threads in [2, 3, 5] {
                assert!(one == products(threads, m, n, k), "{m} {n} {k} {threads}");
            }
        }
    }

    #[test]
    fn products_equal_the_sum_over_the_inner_index() {
        for (m, n, k) in [(1, 1, 1), (3, 5, 7), (17, 1, 33), (1, 19, 31), (5, 4, 0)] {
            let (a, b) = (matrix(m * k, 1), matrix(n * k, 2));
            let dst = products(2, m, n, k);
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let sum: f32 = (0..k).map(|l| a[i * k + l] * b[j * k + l]).sum();
                assert!((dst[i * n + j] - 1.0 - sum).abs() < 1e-4);
            }
        }
    }
}
