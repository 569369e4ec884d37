//! Deterministic mutations of seeds, for tests without a fuzzing engine.

/// Random numbers that are a function of (stream, index).
#[derive(Clone, Debug)]
struct Draws {
    stream: u64,
    index: u64,
}

impl Draws {
    fn next(&mut self) -> u64 {
        self.index += 1;
        mix(mix(self.stream) ^ self.index)
    }

    /// A number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Numbers at the limits of types, and strings that mean something to some parser.
const WORDS: [&str; 24] = [
    "0",
    "-1",
    "1e999",
    "NaN",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "65536",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "0.1",
    "\n",
    "\r\n",
    "\u{feff}",
    "\u{2581}",
    "..",
    "/",
    "=",
    "\"",
    "\\",
    "</s>",
];

/// Changes seeds at random.
#[derive(Debug)]
pub struct Mutator<'a> {
    seeds: &'a [Vec<u8>],
    /// The names and numbers in the seeds, which are likely to mean something in other places too.
    words: Vec<Vec<u8>>,
}

impl<'a> Mutator<'a> {
    /// # Panics
    /// If there are no seeds.
    pub fn new(seeds: &'a [Vec<u8>]) -> Self {
        assert!(!seeds.is_empty(), "no seeds");
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-<>/".contains(byte);
        let found = seeds.iter().flat_map(|seed| {
            let runs = seed.chunk_by(move |a, b| is_word(a) == is_word(b));
            runs.filter(move |run| is_word(&run[0])).map(<[u8]>::to_vec)
        });
        let mut words: Vec<Vec<u8>> = found.collect();
        words.extend(WORDS.map(|word| word.as_bytes().to_vec()));
        words.sort();
        words.dedup();
        Self { seeds, words }
    }

    /// Mutation `index`: one seed with one to eight changes.
    pub fn mutation(&self, index: u64) -> Vec<u8> {
        let mut draws = Draws {
            stream: index,
            index: 0,
        };
        let mut bytes = draws.pick(self.seeds).clone();
        for _ in 0..1 << draws.below(4) {
            self.change(&mut bytes, &mut draws);
        }
        bytes
    }

    fn change(&self, bytes: &mut Vec<u8>, draws: &mut Draws) {
        let at = draws.below(bytes.len() + 1);
        let end = at + draws.below((bytes.len() - at).min(64) + 1);
        match draws.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << draws.below(8),
            1 if at < bytes.len() => bytes[at] = draws.below(256) as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let word = draws.pick(&self.words).clone();
                bytes.splice(at..at, word);
            }
            5 => {
                let word = draws.pick(&self.words).clone();
                bytes.splice(word_at(bytes, at), word);
            }
            6 => {
                let copy = bytes[at..end].repeat(1 + draws.below(4));
                bytes.splice(at..at, copy);
            }
            7 => {
                let other = draws.pick(self.seeds);
                let from = draws.below(other.len() + 1);
                bytes.splice(at.., other[from..].iter().copied());
            }
            _ => edit_number(bytes, at, draws),
        }
    }
}

/// The letters and digits around a place.
fn word_at(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let before = bytes[..at].iter().rev().take_while(|byte| is_word(byte));
    let after = bytes[at..].iter().take_while(|byte| is_word(byte));
    at - before.count()..at + after.count()
}

/// Replaces the next decimal number by one near it, one far from it, or its negative.
fn edit_number(bytes: &mut Vec<u8>, at: usize, draws: &mut Draws) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let start = at + start;
    let digits = bytes[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let end = start + digits.count();
    let old = std::str::from_utf8(&bytes[start..end]).unwrap_or_default();
    let old: u64 = old.parse().unwrap_or(u64::MAX);
    let new = match draws.below(5) {
        0 => old.wrapping_add(1).to_string(),
        1 => old.wrapping_sub(1).to_string(),
        2 => format!("-{old}"),
        3 => (1u64 << draws.below(64)).to_string(),
        _ => old.wrapping_mul(1000).to_string(),
    };
    bytes.splice(start..end, new.into_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutation_is_a_function_of_its_index() {
        let seeds = [b"steps = 100\n".to_vec(), b"out = \"run\"\n".to_vec()];
        let mutator = Mutator::new(&seeds);
        let some: Vec<Vec<u8>> = (0..200).map(|index| mutator.mutation(index)).collect();
        assert!(
            (0..200)
                .map(|index| mutator.mutation(index))
                .eq(some.clone())
        );
        let distinct: std::collections::BTreeSet<Vec<u8>> = some.into_iter().collect();
        assert!(distinct.len() > 150, "{}", distinct.len());
    }
}
