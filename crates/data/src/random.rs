//! Random numbers that are a pure function of a key. They are the same on every machine.

/// The draws of one purpose: a seed, and values that tell this purpose from all others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    key: u64,
}

impl Draws {
    /// The draws for this seed and these values, such as an epoch and the number of a stream.
    pub(crate) fn new(seed: u64, values: impl IntoIterator<Item = u64>) -> Self {
        let values = values.into_iter();
        let key = values.fold(mix(seed), |key, value| mix(key ^ value));
        Self { key }
    }

    /// Draw `i`: 64 random bits.
    pub(crate) fn bits(&self, i: u64) -> u64 {
        mix(self.key ^ i)
    }

    /// Draw `i`: a number from 0 to below 1.
    pub(crate) fn unit(&self, i: u64) -> f64 {
        (self.bits(i) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draw `i`: a number from 0 to below `n`, which is not 0.
    pub(crate) fn below(&self, i: u64, n: u64) -> u64 {
        ((u128::from(self.bits(i)) * u128::from(n)) >> 64) as u64
    }

    /// The Fisher-Yates shuffle. Draw `i` is for position `i`.
    pub(crate) fn shuffle<T>(&self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64, i as u64 + 1) as usize);
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014): one step of the generator from state `x`.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
