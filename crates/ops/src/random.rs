//! Counter-based random numbers. Each is a pure function of (seed, draw, site, index), so there is no state
//! to save, and nothing depends on the number of threads.

use attend_batch::RowNumbers;
use candle_core::{Device, Result, Tensor};

/// Identifies one use of random numbers, such as a layer's dropout or a parameter's initial values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site(u64);

impl Site {
    /// The site of a name such as `model.encoder.layers.3.self_attn` (64-bit FNV-1a).
    pub fn named(name: &str) -> Self {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(hash)
    }

    /// A site of its own at this one.
    pub(crate) fn part(self, name: &str) -> Self {
        Self(mix(self.0 ^ Self::named(name).0))
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
pub fn mix(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One stream of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    pub fn new(seed: u64, draw: u64, site: Site) -> Self {
        Self(mix(mix(mix(seed) ^ draw) ^ site.0))
    }

    /// An independent stream derived from this one.
    pub fn fork(self, index: u64) -> Self {
        Self(mix(self.0 ^ mix(index)))
    }

    /// Uniform on [0, 1), with 53 random bits.
    pub fn uniform(self, index: u64) -> f64 {
        (self.fork(index).0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller's transform.
    pub fn normal(self, index: u64) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform(2 * index)).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform(2 * index + 1)).cos()
    }
}

/// Inverted dropout: each element is dropped with probability p, and the others are scaled by 1/(1-p). The
/// backward pass recomputes the mask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    key: Key,
    /// An element is dropped if its 32-bit hash is below this.
    threshold: u32,
    scale: f32,
}

impl Dropout {
    pub const NONE: Self = Self {
        key: Key(0),
        threshold: 0,
        scale: 1.0,
    };

    /// # Panics
    /// If the rate is not in [0, 1). Configs are validated before.
    pub fn new(rate: f32, key: Key) -> Self {
        assert!((0.0..1.0).contains(&rate), "dropout rate {rate}");
        Self {
            key,
            threshold: (f64::from(rate) * 4_294_967_296.0) as u32,
            scale: 1.0 / (1.0 - rate),
        }
    }

    pub fn is_none(&self) -> bool {
        self.threshold == 0
    }

    pub(crate) fn scale(&self) -> f32 {
        self.scale
    }

    /// The dropout of one part, such as one sentence and head of an attention. For use where the index of
    /// an element would exceed 32 bits or has no natural order.
    pub(crate) fn part(&self, index: u64) -> Self {
        Self {
            key: self.key.fork(index),
            ..*self
        }
    }

    /// The same mask of zeros and ones, instead of ones that are scaled up.
    pub(crate) fn unscaled(self) -> Self {
        Self { scale: 1.0, ..self }
    }

    /// Whether element `index` is not dropped.
    pub(crate) fn is_kept(&self, index: u32) -> bool {
        self.is_none() || self.factor(index) != 0.0
    }

    /// The dropout of the same site in one head of an attention.
    pub fn of_head(&self, head: usize) -> Self {
        self.row(head)
    }

    /// The dropout of rows that have these numbers.
    pub fn of_rows(self, numbers: RowNumbers) -> RowDropout {
        RowDropout {
            dropout: self,
            numbers,
        }
    }

    /// The factor of element `index`: 0 or 1/(1-p). Branch-free, so that loops over it vectorise.
    #[inline(always)]
    pub(crate) fn factor(&self, index: u32) -> f32 {
        let mut x = index ^ self.key.0 as u32;
        x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
        x = (x ^ (x >> 15) ^ (self.key.0 >> 32) as u32).wrapping_mul(0x846c_a68b);
        x ^= x >> 16;
        if x >= self.threshold { self.scale } else { 0.0 }
    }

    /// The dropout of row `row`; columns index its elements.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> Self {
        if self.is_none() {
            *self
        } else {
            self.part(row as u64)
        }
    }
}

/// The dropout of the rows of a packed batch. What is dropped from a row depends on its number, not on the rows that
/// are computed with it.
#[derive(Clone, Debug, PartialEq)]
pub struct RowDropout {
    dropout: Dropout,
    numbers: RowNumbers,
}

impl RowDropout {
    pub const NONE: Self = Self {
        dropout: Dropout::NONE,
        numbers: RowNumbers::NONE,
    };

    pub fn is_none(&self) -> bool {
        self.dropout.is_none()
    }

    /// For rows that are some of these, in this order.
    pub fn select(&self, rows: &[u32]) -> Self {
        self.dropout.of_rows(self.numbers.select(rows))
    }

    /// The dropout of row `row`; columns index its elements.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> Dropout {
        if self.is_none() {
            self.dropout
        } else {
            self.dropout.part(self.numbers.of(row))
        }
    }

    /// x with this dropout, from plain candle operations.
    pub(crate) fn composed(&self, x: &Tensor) -> Result<Tensor> {
        if self.is_none() {
            return Ok(x.clone());
        }
        let (n, d) = x.dims2()?;
        let mut factors = Vec::with_capacity(n * d);
        for row in 0..n {
            let dropout = self.row(row);
            factors.extend((0..d as u32).map(|column| dropout.factor(column)));
        }
        x.mul(&Tensor::from_vec(factors, (n, d), x.device())?)
    }
}

/// A tensor filled by `value(index)`.
pub fn tensor(
    shape: impl Into<candle_core::Shape>,
    device: &Device,
    value: impl Fn(u64) -> f64,
) -> Result<Tensor> {
    let shape = shape.into();
    let values: Vec<f32> = (0..shape.elem_count() as u64)
        .map(|index| value(index) as f32)
        .collect();
    Tensor::from_vec(values, shape, device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(draw: u64) -> Key {
        Key::new(1, draw, Site::named("a.site"))
    }

    #[test]
    fn dropout_drops_at_its_rate_and_keeps_the_mean() {
        for rate in [0.1, 0.3, 0.5] {
            let dropout = Dropout::new(rate, key(2));
            let n = 1_000_000;
            let factors: Vec<f32> = (0..n).map(|i| dropout.factor(i)).collect();
            let dropped = factors.iter().filter(|&&f| f == 0.0).count() as f64 / f64::from(n);
            let mean = factors.iter().map(|&f| f64::from(f)).sum::<f64>() / f64::from(n);
            assert!((dropped - f64::from(rate)).abs() < 2e-3, "{dropped}");
            assert!((mean - 1.0).abs() < 4e-3, "{mean}");
        }
    }

    #[test]
    fn masks_of_two_draws_sites_or_rows_are_independent() {
        let here = Dropout::new(0.1, key(2));
        let site = Dropout::new(0.1, Key::new(1, 2, Site::named("another.site")));
        for other in [Dropout::new(0.1, key(3)), site, here.row(1)] {
            let both = (0..1_000_000)
                .filter(|&i| here.factor(i) == 0.0 && other.factor(i) == 0.0)
                .count();
            assert!((both as f64 / 1e6 - 0.01).abs() < 1e-3, "{both}");
        }
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_variance_one() {
        let draws: Vec<f64> = (0..200_000).map(|i| key(5).normal(i)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.01, "{variance}");
    }
}
