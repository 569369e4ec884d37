//! Products of 8-bit rows and panels. Sums of integers are exact, so every version gives the same bits.

use super::int8::{GROUP, PANEL, QuantizedRows};
use crate::gemm::RowsMut;
#[cfg(target_arch = "x86_64")]
use crate::isa::Isa;

/// Some panels of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub(super) panels: &'a [u8],
    /// What turns the integers of each output into weights.
    pub(super) steps: &'a [f32],
    /// Outputs that are wanted: the last panel may have more.
    pub(super) outputs: usize,
}

/// y = x Wᵀ for the outputs of a block. They are the first columns of `y`.
pub(super) fn rows(y: RowsMut, x: &QuantizedRows, block: Block) {
    // SAFETY: the CPU has the instructions that each version is compiled for.
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    match Isa::current() {
        Isa::Avx512 if is_x86_feature_detected!("avx512vnni") => {
            return unsafe { avx512::rows(y, x, block) };
        }
        Isa::Avx512 | Isa::Avx2 => return unsafe { avx2::rows(y, x, block) },
        _ => {}
    }
    plain(y, x, block);
}

/// The versions that this CPU can run, for tests.
#[cfg(test)]
pub(super) fn versions() -> Vec<fn(RowsMut, &QuantizedRows, Block)> {
    let mut versions: Vec<fn(RowsMut, &QuantizedRows, Block)> = vec![plain];
    // SAFETY: the CPU has the instructions that each version is compiled for.
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    {
        if is_x86_feature_detected!("avx2") {
            versions.push(|y, x, block| unsafe { avx2::rows(y, x, block) });
        }
        if is_x86_feature_detected!("avx512vnni") {
            versions.push(|y, x, block| unsafe { avx512::rows(y, x, block) });
        }
    }
    versions
}

/// Writes what was summed for one row and one panel.
#[inline(always)]
fn store(sums: &[i32; PANEL], step: f32, steps: &[f32], y: &mut [f32]) {
    if let (Some(y), Some(steps)) = (y.first_chunk_mut::<PANEL>(), steps.first_chunk::<PANEL>()) {
        for j in 0..PANEL {
            y[j] = sums[j] as f32 * (step * steps[j]);
        }
    } else {
        for ((y, sum), of_output) in y.iter_mut().zip(sums).zip(steps) {
            *y = *sum as f32 * (step * of_output);
        }
    }
}

fn plain(y: RowsMut, x: &QuantizedRows, block: Block) {
    let panels = block.panels.chunks_exact(PANEL * x.depth);
    for (p, panel) in panels.enumerate() {
        let first = p * PANEL;
        let here = PANEL.min(block.outputs - first);
        for row in 0..x.count() {
            let mut sums = [0; PANEL];
            let groups = panel.as_chunks::<{ PANEL * GROUP }>().0.iter();
            for (group, a) in groups.zip(x.row(row).as_chunks::<GROUP>().0) {
                for (sum, w) in sums.iter_mut().zip(group.as_chunks::<GROUP>().0) {
                    for (a, w) in a.iter().zip(w) {
                        *sum += i32::from(*a) * i32::from(w.cast_signed());
                    }
                }
            }
            let y = &mut y.data[row * y.width + first..][..here];
            store(&sums, x.steps[row], &block.steps[first..], y);
        }
    }
}

/// With VNNI: one instruction multiplies 64 pairs of bytes and adds them in groups of four. It multiplies unsigned
/// by signed bytes, so weights are read as w + 128, and 128 · Σ a is subtracted from the sums.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::*;

    use super::super::int8::{GROUP, PANEL, QuantizedRows};
    use super::Block;
    use crate::gemm::RowsMut;

    /// Rows of a tile: 24 registers of sums.
    const ROWS: usize = 12;
    /// The rows of smaller tiles, for those that do not fill one.
    const REST: usize = 4;

    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) unsafe fn rows(mut y: RowsMut, x: &QuantizedRows, block: Block) {
        let n = x.count();
        // SAFETY: the caller has checked the CPU; the tiles check what they read.
        unsafe {
            match n {
                1 => return narrow::<1, 4>(&mut y, x, block),
                2 => return narrow::<2, 2>(&mut y, x, block),
                _ => {}
            }
            let panels = block.panels.chunks_exact(PANEL * x.depth);
            for (p, panel) in panels.enumerate() {
                let mut row = 0;
                while n - row > ROWS - REST {
                    tile::<ROWS, 1>(&mut y, x, row, block, p, [panel]);
                    row += ROWS;
                    if row >= n {
                        break;
                    }
                }
                while row < n {
                    tile::<REST, 1>(&mut y, x, row, block, p, [panel]);
                    row += REST;
                }
            }
        }
    }

    /// R rows and all panels, P at a time: one panel alone would wait for its own sums.
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn narrow<const R: usize, const P: usize>(
        y: &mut RowsMut,
        x: &QuantizedRows,
        block: Block,
    ) {
        let size = PANEL * x.depth;
        let count = block.panels.len() / size;
        for first in (0..count).step_by(P) {
            // The last panel is repeated to fill the last group.
            let panels =
                std::array::from_fn(|j| &block.panels[(first + j).min(count - 1) * size..][..size]);
            // SAFETY: as in `rows`.
            unsafe { tile::<R, P>(y, x, 0, block, first, panels) };
        }
    }

    /// Rows `row..row + R` and panels `first..first + P`. Rows after the last are the last one again, and are
    /// not stored.
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn tile<const R: usize, const P: usize>(
        y: &mut RowsMut,
        x: &QuantizedRows,
        row: usize,
        block: Block,
        first: usize,
        panels: [&[u8]; P],
    ) {
        let groups = x.depth / GROUP;
        let rows: [&[i8]; R] = std::array::from_fn(|r| x.row((row + r).min(x.count() - 1)));
        assert!(rows.iter().all(|row| row.len() == groups * GROUP));
        assert!(
            panels
                .iter()
                .all(|panel| panel.len() == groups * GROUP * PANEL)
        );
        let offset = _mm512_set1_epi8(-128);
        let mut sums = [[[_mm512_setzero_si512(); 2]; P]; R];
        for group in 0..groups {
            let mut weights = [[offset; 2]; P];
            for (weights, panel) in weights.iter_mut().zip(&panels) {
                // SAFETY: a panel has 128 bytes for each group.
                let at = unsafe { panel.as_ptr().add(group * GROUP * PANEL) };
                let low = unsafe { _mm512_loadu_si512(at.cast()) };
                let high = unsafe { _mm512_loadu_si512(at.add(64).cast()) };
                *weights = [low, high].map(|w| _mm512_xor_si512(w, offset));
            }
            for (sums, row) in sums.iter_mut().zip(&rows) {
                // SAFETY: a row has 4 bytes for each group.
                let a = unsafe { row.as_ptr().cast::<i32>().add(group).read_unaligned() };
                let a = _mm512_set1_epi32(a);
                for (sums, weights) in sums.iter_mut().zip(&weights) {
                    sums[0] = _mm512_dpbusd_epi32(sums[0], weights[0], a);
                    sums[1] = _mm512_dpbusd_epi32(sums[1], weights[1], a);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate().take(x.count() - row) {
            let extra = _mm512_set1_epi32(128 * x.sums[row + r]);
            for (p, sums) in sums.iter().enumerate() {
                let start = (first + p) * PANEL;
                if start >= block.outputs {
                    break;
                }
                let here = PANEL.min(block.outputs - start);
                let y = &mut y.data[(row + r) * y.width + start..][..here];
                let steps = &block.steps[start..][..PANEL];
                let step = _mm512_set1_ps(x.steps[row + r]);
                for (half, sums) in sums.iter().enumerate() {
                    let sums = _mm512_cvtepi32_ps(_mm512_sub_epi32(*sums, extra));
                    let wanted = here.saturating_sub(16 * half).min(16) as u32;
                    let mask = ((1u32 << wanted) - 1) as u16;
                    // SAFETY: there are 32 steps, and only as many results are stored as there is room for.
                    unsafe {
                        let steps = _mm512_loadu_ps(steps.as_ptr().add(16 * half));
                        let values = _mm512_mul_ps(sums, _mm512_mul_ps(step, steps));
                        let to = y.as_mut_ptr().wrapping_add(16 * half);
                        _mm512_mask_storeu_ps(to, mask, values);
                    }
                }
            }
        }
    }
}

/// With AVX2: |w| · sign(w) a is w · a, and the sum of two of them fits 16 bits, as activations are at least -127.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use std::arch::x86_64::*;

    use super::super::int8::{GROUP, PANEL, QuantizedRows};
    use super::{Block, store};
    use crate::gemm::RowsMut;

    /// Registers of 8 sums in a panel.
    const PARTS: usize = PANEL / 8;

    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn rows(mut y: RowsMut, x: &QuantizedRows, block: Block) {
        let panels = block.panels.chunks_exact(PANEL * x.depth);
        for (p, panel) in panels.enumerate() {
            for row in (0..x.count()).step_by(2) {
                // SAFETY: the caller has checked the CPU; the tiles check what they read.
                unsafe { tile::<2>(&mut y, x, row, block, p, panel) };
            }
        }
    }

    #[target_feature(enable = "avx2")]
    unsafe fn tile<const R: usize>(
        y: &mut RowsMut,
        x: &QuantizedRows,
        row: usize,
        block: Block,
        index: usize,
        panel: &[u8],
    ) {
        let groups = x.depth / GROUP;
        let rows: [&[i8]; R] = std::array::from_fn(|r| x.row((row + r).min(x.count() - 1)));
        assert!(rows.iter().all(|row| row.len() == groups * GROUP));
        assert!(panel.len() == groups * GROUP * PANEL);
        let ones = _mm256_set1_epi16(1);
        let mut sums = [[_mm256_setzero_si256(); PARTS]; R];
        for group in 0..groups {
            let mut a = [ones; R];
            for (a, row) in a.iter_mut().zip(&rows) {
                // SAFETY: a row has 4 bytes for each group.
                let bytes = unsafe { row.as_ptr().cast::<i32>().add(group).read_unaligned() };
                *a = _mm256_set1_epi32(bytes);
            }
            for part in 0..PARTS {
                // SAFETY: a panel has 128 bytes for each group.
                let at = unsafe { panel.as_ptr().add(group * GROUP * PANEL + 32 * part) };
                let weights = unsafe { _mm256_loadu_si256(at.cast()) };
                let sizes = _mm256_abs_epi8(weights);
                for (sums, a) in sums.iter_mut().zip(&a) {
                    let pairs = _mm256_maddubs_epi16(sizes, _mm256_sign_epi8(*a, weights));
                    let fours = _mm256_madd_epi16(pairs, ones);
                    sums[part] = _mm256_add_epi32(sums[part], fours);
                }
            }
        }
        let start = index * PANEL;
        let here = PANEL.min(block.outputs - start);
        for (r, sums) in sums.iter().enumerate().take(x.count() - row) {
            let mut all = [0; PANEL];
            for (part, sums) in all.chunks_exact_mut(8).zip(sums) {
                // SAFETY: a part is 8 sums.
                unsafe { _mm256_storeu_si256(part.as_mut_ptr().cast(), *sums) };
            }
            let y = &mut y.data[(row + r) * y.width + start..][..here];
            store(&all, x.steps[row + r], &block.steps[start..], y);
        }
    }
}
