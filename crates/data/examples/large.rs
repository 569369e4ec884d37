//! Writes a parallel corpus of any size, for measuring: `large PREFIX PAIRS`.
//!
//! The text has no meaning, but what makes tokenizing hard: words are as frequent as in real text (Zipf's law), most
//! of 200,000 are rare, and sentences have 3 to 40 of them. A target has the words of its source in another
//! spelling and in the reverse order. Line n depends on n only.

use std::fs::File;
use std::io::{self, BufWriter, Write};

const WORDS: f64 = 200_000.0;
const SYLLABLES: [&str; 32] = [
    "ba", "ren", "to", "lis", "ka", "mo", "ster", "un", "di", "pa", "ver", "ge", "sa", "lo", "ni",
    "tra", "be", "ku", "fen", "ri", "do", "mi", "zel", "ta", "an", "ro", "sch", "ei", "wo", "hal",
    "ter", "ung",
];

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || io::Error::other("usage: large PREFIX PAIRS");
    let prefix = arguments.next().ok_or_else(usage)?;
    let pairs: u64 = arguments
        .next()
        .and_then(|n| n.replace('_', "").parse().ok())
        .ok_or_else(usage)?;
    let create = |language: &str| {
        let file = File::create(format!("{prefix}.{language}"))?;
        io::Result::Ok(BufWriter::with_capacity(1 << 20, file))
    };
    let (mut source, mut target) = (create("en")?, create("de")?);
    let mut line = String::new();
    for pair in 0..pairs {
        let mut random = Random(pair);
        let words: Vec<u64> = (0..random.between(3, 40)).map(|_| random.word()).collect();
        write_line(&mut source, &mut line, words.iter().copied(), 0)?;
        write_line(&mut target, &mut line, words.iter().rev().copied(), 7)?;
    }
    source.flush()?;
    target.flush()
}

fn write_line(
    out: &mut impl Write,
    line: &mut String,
    words: impl Iterator<Item = u64>,
    spelling: u64,
) -> io::Result<()> {
    line.clear();
    for word in words {
        let mut rest = word;
        loop {
            line.push_str(SYLLABLES[((rest + spelling) % 32) as usize]);
            rest /= 32;
            if rest == 0 {
                break;
            }
        }
        line.push(' ');
    }
    line.pop();
    line.push_str(".\n");
    out.write_all(line.as_bytes())
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// The rank of a word: rank r has a probability of about 1 / r.
    fn word(&mut self) -> u64 {
        let unit = self.next() as f64 / u64::MAX as f64;
        WORDS.powf(unit) as u64
    }
}
