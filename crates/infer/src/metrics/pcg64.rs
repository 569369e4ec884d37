//! The random numbers of NumPy's `default_rng(seed)`, which sacreBLEU resamples with: `SeedSequence` and PCG64
//! (O'Neill 2014, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random Number
//! Generation"; the variant XSL-RR with 128 bits of state).

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// A generator in the state of `numpy.random.default_rng(seed)`.
#[derive(Clone, Debug)]
pub(super) struct Pcg64 {
    state: u128,
    increment: u128,
    /// The high half of the last 64 bits, if only the low half was used.
    half: Option<u32>,
}

impl Pcg64 {
    pub(super) fn new(seed: u64) -> Self {
        let [state_high, state_low, increment_high, increment_low] = seed_words(seed);
        let join = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let mut this = Self {
            state: 0,
            increment: join(increment_high, increment_low) << 1 | 1,
            half: None,
        };
        this.step();
        this.state = this.state.wrapping_add(join(state_high, state_low));
        this.step();
        this
    }

    fn step(&mut self) {
        self.state = (self.state.wrapping_mul(MULTIPLIER)).wrapping_add(self.increment);
    }

    fn next_u64(&mut self) -> u64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// 64 bits give two numbers, the low half first.
    pub(super) fn next_u32(&mut self) -> u32 {
        if let Some(half) = self.half.take() {
            return half;
        }
        let both = self.next_u64();
        self.half = Some((both >> 32) as u32);
        both as u32
    }

    /// A number below `n`, each as likely as any other (Lemire 2019, "Fast Random Integer Generation in an
    /// Interval"). `choice(n, size)` of NumPy is a sequence of them.
    pub(super) fn below(&mut self, n: u32) -> u32 {
        if n <= 1 {
            return 0; // NumPy draws nothing here
        }
        let threshold = n.wrapping_neg() % n;
        loop {
            let product = u64::from(self.next_u32()) * u64::from(n);
            if product as u32 >= threshold {
                return (product >> 32) as u32;
            }
        }
    }
}

/// `SeedSequence(seed).generate_state(4, uint64)`.
fn seed_words(seed: u64) -> [u64; 4] {
    let fold = |value: u32| value ^ value >> 16;
    let mut constant: u32 = 0x43b0_d7e5;
    let mut hash = |value: u32| {
        let value = value ^ constant;
        constant = constant.wrapping_mul(0x931e_8875);
        fold(value.wrapping_mul(constant))
    };
    let mut pool = [seed as u32, (seed >> 32) as u32, 0, 0].map(&mut hash);
    for from in 0..pool.len() {
        for to in (0..pool.len()).filter(|&to| to != from) {
            let left = pool[to].wrapping_mul(0xca01_f9dd);
            let right = hash(pool[from]).wrapping_mul(0x4973_f715);
            pool[to] = fold(left.wrapping_sub(right));
        }
    }

    let mut constant: u32 = 0x8b51_f9dd;
    let mut word = |i: usize| {
        let value = pool[i % pool.len()] ^ constant;
        constant = constant.wrapping_mul(0x58f3_8ded);
        u64::from(fold(value.wrapping_mul(constant)))
    };
    std::array::from_fn(|i| word(2 * i) | word(2 * i + 1) << 32)
}

#[cfg(test)]
mod tests {
    use super::super::tests::golden;
    use super::*;

    #[test]
    fn draws_equal_numpy() {
        let draws = golden().draws;
        assert!(draws.len() > 10);
        for draw in draws {
            let mut random = Pcg64::new(draw.seed);
            let indices: Vec<u32> = draw.choice.iter().map(|_| random.below(draw.n)).collect();
            assert_eq!(indices, draw.choice, "seed {}, n {}", draw.seed, draw.n);
        }
    }

    #[test]
    fn numbers_are_below_the_bound_and_reach_it() {
        let mut random = Pcg64::new(1);
        for n in [1, 2, 3, 7] {
            let mut seen = vec![false; n as usize];
            (0..200).for_each(|_| seen[random.below(n) as usize] = true);
            assert!(seen.iter().all(|seen| *seen), "{n}");
        }
    }
}
