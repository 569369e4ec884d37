//! A random order of any number of things, without a list of them.

use crate::random::Draws;

const ROUNDS: u64 = 6;

/// A permutation of the numbers below `n`. Any element is computed in constant time and memory.
///
/// It is a Feistel network on numbers of an even number of bits. A result that is not below `n` is
/// put in again until one is (Black and Rogaway 2002, "Ciphers with arbitrary finite domains").
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    n: u64,
    half: u32, // bits
    draws: Draws,
}

impl Permutation {
    /// `n` is at most 2^63.
    pub(crate) fn new(n: u64, draws: Draws) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let half = bits.div_ceil(2).max(1);
        Self { n, half, draws }
    }

    /// Element `i`, which is below `n`.
    pub(crate) fn at(&self, i: u64) -> u64 {
        let mut x = i;
        loop {
            x = self.network(x);
            if x < self.n {
                return x;
            }
        }
    }

    fn network(&self, x: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        let (mut left, mut right) = (x >> self.half, x & mask);
        for round in 0..ROUNDS {
            let scrambled = self.draws.bits(round << 32 | right) >> (u64::BITS - self.half);
            (left, right) = (right, left ^ scrambled);
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(n: u64, seed: u64) -> Vec<u64> {
        let permutation = Permutation::new(n, Draws::new(seed, []));
        (0..n).map(|i| permutation.at(i)).collect()
    }

    #[test]
    fn every_number_is_there_once() {
        for n in (1..70).chain([255, 256, 257, 1000, 4097, 100_003]) {
            let mut all = order(n, 5);
            all.sort_unstable();
            assert!(all.into_iter().eq(0..n), "n = {n}");
        }
    }

    #[test]
    fn another_seed_gives_another_order() {
        assert_ne!(order(1000, 1), order(1000, 2));
        assert_eq!(order(1000, 1), order(1000, 1));
    }

    #[test]
    fn each_number_is_as_likely_at_each_place() {
        // Chi-square over 10 places x 10 numbers, 81 degrees of freedom: above 140 once in 10,000 times.
        const SEEDS: u64 = 20_000;
        let mut counts = [[0f64; 10]; 10];
        for seed in 0..SEEDS {
            for (place, number) in order(10, seed).into_iter().enumerate() {
                counts[place][number as usize] += 1.0;
            }
        }
        let expected = SEEDS as f64 / 10.0;
        let deviations = counts
            .iter()
            .flatten()
            .map(|n| (n - expected).powi(2) / expected);
        let chi_square: f64 = deviations.sum();
        assert!(chi_square < 140.0, "{chi_square}");
    }

    #[test]
    fn neighbours_do_not_stay_neighbours() {
        let order = order(100_000, 3);
        let near = order
            .windows(2)
            .filter(|w| w[0].abs_diff(w[1]) <= 10)
            .count();
        assert!((10..35).contains(&near), "{near} of about 20");
    }
}
