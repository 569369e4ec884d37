//! Finding pairs that came before, in bounded memory.

use crate::{Error, Progress, Result, TextSource};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

/// Bytes of a hash. At 2^128, pairs that differ do not have the same hash.
const HASH: usize = 16;
/// Hashes that are sorted at a time: 256 MiB of them.
const SORTED: u64 = (256 << 20) / size_of::<(u128, u64)>() as u64;

/// The pairs of a corpus that came before, as one bit for each pair.
pub struct Duplicates {
    bits: Vec<u64>,
}

impl Duplicates {
    /// Reads the corpus once. The hashes of its pairs are kept in a temporary file in `folder`.
    pub(crate) fn find(text: &TextSource, folder: &Path, progress: &dyn Progress) -> Result<Self> {
        let failed = |source| Error::Write {
            path: folder.into(),
            source,
        };
        let task = progress.start(&format!("looking for duplicates in {}", text.name()), None);
        let mut hashes = BufWriter::new(tempfile::tempfile_in(folder).map_err(failed)?);
        let mut pairs = 0u64;
        text.for_each_chunk(None, |chunk| {
            for checked in &chunk {
                let mut hash = [0; HASH]; // zero if the pair is dropped anyway
                if checked.dropped.is_none() {
                    let mut sha = Sha256::new();
                    sha.update((checked.pair.source.len() as u64).to_le_bytes());
                    sha.update(&checked.pair.source);
                    sha.update(&checked.pair.target);
                    hash.copy_from_slice(&sha.finalize()[..HASH]);
                }
                hashes.write_all(&hash).map_err(failed)?;
            }
            pairs += chunk.len() as u64;
            task.advance(chunk.len() as u64);
            Ok(())
        })?;
        let mut hashes = hashes.into_inner().map_err(|error| failed(error.into()))?;
        repeated(&mut hashes, pairs, SORTED).map_err(failed)
    }

    /// Whether pair `i` of the corpus came before.
    pub(crate) fn contains(&self, i: u64) -> bool {
        let word = self.bits.get((i / 64) as usize);
        word.is_some_and(|word| word >> (i % 64) & 1 == 1)
    }
}

/// Goes through the hashes several times, each time with a share of them that fits into memory.
fn repeated(file: &mut File, pairs: u64, at_a_time: u64) -> std::io::Result<Duplicates> {
    let mut bits = vec![0u64; pairs.div_ceil(64) as usize];
    let shares = pairs.div_ceil(at_a_time) as u128;
    let most = (at_a_time + at_a_time / 4).min(pairs) as usize; // shares are not exactly equal
    let mut seen = Vec::with_capacity(most);
    for share in 0..shares {
        file.rewind()?;
        let mut reader = BufReader::with_capacity(1 << 16, &mut *file);
        seen.clear();
        let mut full = most;
        for pair in 0..pairs {
            let mut hash = [0; HASH];
            reader.read_exact(&mut hash)?;
            let hash = u128::from_le_bytes(hash);
            if hash != 0 && hash % shares == share {
                // A pair that is repeated very often makes its share large. Only the first is needed.
                if seen.len() >= full {
                    mark(&mut seen, &mut bits);
                    full = most.max(2 * seen.len());
                }
                seen.push((hash, pair));
            }
        }
        mark(&mut seen, &mut bits);
    }
    Ok(Duplicates { bits })
}

/// Marks all but the first of equal hashes, and leaves only the first ones.
fn mark(seen: &mut Vec<(u128, u64)>, bits: &mut [u64]) {
    seen.sort_unstable();
    for pair in seen.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let later = pair[1].1;
        bits[(later / 64) as usize] |= 1 << (later % 64);
    }
    seen.dedup_by_key(|(hash, _)| *hash);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_first_of_equal_pairs_are_found_whatever_fits_into_memory() {
        let values: Vec<u128> = (0..1000u128).map(|i| (i * i) % 307).collect();
        for at_a_time in [1, 7, 300, 5000] {
            let mut file = tempfile::tempfile().unwrap();
            for value in &values {
                file.write_all(&value.to_le_bytes()).unwrap();
            }
            let found = repeated(&mut file, 1000, at_a_time).unwrap();
            for (i, value) in values.iter().enumerate() {
                let before = *value != 0 && values[..i].contains(value);
                assert_eq!(found.contains(i as u64), before, "pair {i}");
            }
        }
        let mut same = tempfile::tempfile().unwrap();
        same.write_all(&[7; 1000 * HASH]).unwrap();
        let found = repeated(&mut same, 1000, 4).unwrap();
        assert!((0..1000).all(|i| found.contains(i) == (i > 0)));
        assert!(
            !repeated(&mut tempfile::tempfile().unwrap(), 0, 7)
                .unwrap()
                .contains(0)
        );
    }
}
