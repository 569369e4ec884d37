//! The replacements of a normalisation rule. A model stores them as a double-array trie (of the library
//! darts-clone), followed by the texts to which its values point.

use super::trie::Trie;

/// The most bytes. The largest rule of SentencePiece, NFKC with case folding, has about 300 KB.
const MOST: usize = 4 << 20;
/// The most bytes of one string that is replaced, and of all of them with their beginnings.
const LONGEST_KEY: usize = 256;
const MOST_KEYS: usize = MOST;
/// The most that a replacement may lengthen what it replaces. NFKC: 11 times.
const MOST_GROWTH: usize = 1024;

/// Strings and what replaces them.
#[derive(Default)]
pub(super) struct Charsmap {
    keys: Trie, // where the replacement begins in `texts`
    texts: String,
}

impl Charsmap {
    /// Reads and checks all replacements; no bytes are none.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let damaged = |why: &str| format!("its precompiled_charsmap is damaged: {why}");
        if bytes.len() > MOST {
            return Err(format!(
                "its precompiled_charsmap has more than {MOST} bytes"
            ));
        }
        let (size, rest) = bytes
            .split_first_chunk()
            .ok_or_else(|| damaged("it is too short"))?;
        let size = u32::from_le_bytes(*size) as usize;
        let (units, texts) = rest
            .split_at_checked(size)
            .filter(|(units, _)| units.len() % 4 == 0)
            .ok_or_else(|| damaged("its trie has a wrong length"))?;
        let units = units
            .as_chunks()
            .0
            .iter()
            .map(|unit| u32::from_le_bytes(*unit));
        let texts = std::str::from_utf8(texts)
            .map_err(|_| damaged("not UTF-8"))?
            .to_string();
        let entries = entries(&units.collect::<Vec<_>>()).map_err(damaged)?;
        for (key, value) in &entries {
            let text =
                replacement(&texts, *value).ok_or_else(|| damaged("a replacement is missing"))?;
            if std::str::from_utf8(key).is_err() {
                return Err(damaged("not UTF-8"));
            }
            if text.len() > key.len() * MOST_GROWTH {
                return Err(damaged("a replacement is too long"));
            }
        }
        let keys = Trie::new(entries.iter().map(|(key, value)| (&key[..], *value)));
        Ok(Self { keys, texts })
    }

    /// The length of the longest string that is replaced at the beginning of `text`, and its replacement.
    pub(super) fn replace(&self, text: &str) -> Option<(usize, &str)> {
        let (length, value) = self.keys.longest(text.as_bytes())?;
        Some((length, replacement(&self.texts, value)?))
    }
}

/// The text at this place, which ends before a zero byte.
fn replacement(texts: &str, value: u32) -> Option<&str> {
    let text = texts
        .get(value as usize..)
        .filter(|text| !text.is_empty())?;
    text.split('\0').next()
}

/// All keys of a double array with their values. Keys share their endings, so that a damaged array can have
/// cycles, or very many keys.
fn entries(units: &[u32]) -> Result<Vec<(Vec<u8>, u32)>, &'static str> {
    let offset = |unit: u32| ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize;
    let outside = "its trie points outside itself";
    let root = *units.first().ok_or(outside)?;
    let mut entries = Vec::new();
    let mut bytes = 0;
    let mut open = vec![(offset(root), Vec::new())];
    while let Some((base, key)) = open.pop() {
        for label in 1..=255u8 {
            let place = base ^ label as usize;
            let Some(&unit) = units.get(place) else {
                continue;
            };
            if unit & (1 << 31 | 0xff) != u32::from(label) {
                continue;
            }
            let key = [&key[..], &[label]].concat();
            bytes += key.len();
            if key.len() > LONGEST_KEY || bytes > MOST_KEYS {
                return Err("its strings are too long or too many");
            }
            let child = place ^ offset(unit);
            if unit >> 8 & 1 == 1 {
                let value = units.get(child).ok_or(outside)? & !(1 << 31);
                entries.push((key.clone(), value));
            }
            open.push((child, key));
        }
    }
    Ok(entries)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A charsmap that replaces single bytes by texts. The units of the double array lie at the values of
    /// the bytes, those of the values after them.
    pub(in super::super) fn bytes_of(replacements: &[(u8, &str)]) -> Vec<u8> {
        let mut units = vec![0u32; 1024];
        let mut texts = Vec::new();
        for (index, (byte, text)) in replacements.iter().enumerate() {
            let leaf = 512 + index as u32;
            let place = u32::from(*byte);
            units[place as usize] = (place ^ leaf) << 10 | 1 << 8 | place;
            units[leaf as usize] = 1 << 31 | texts.len() as u32;
            texts.extend_from_slice(text.as_bytes());
            texts.push(0);
        }
        let mut bytes = (4 * units.len() as u32).to_le_bytes().to_vec();
        bytes.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        bytes.extend(texts);
        bytes
    }

    #[test]
    fn replacements_are_read() {
        let map = Charsmap::parse(&bytes_of(&[(b'a', "AA"), (b'b', ""), (b'\t', " ")])).unwrap();
        assert_eq!(map.replace("abc"), Some((1, "AA")));
        assert_eq!(map.replace("bc"), Some((1, "")));
        assert_eq!(map.replace("\t"), Some((1, " ")));
        assert_eq!(map.replace("c"), None);
        assert_eq!(map.replace(""), None);
        assert_eq!(Charsmap::parse(&[]).unwrap().replace("a"), None);
    }

    #[test]
    fn damage_is_refused() {
        let good = bytes_of(&[(b'a', "A")]);
        let change = |place: usize, unit: u32| {
            let mut bytes = good.clone();
            bytes[4 + 4 * place..8 + 4 * place].copy_from_slice(&unit.to_le_bytes());
            bytes
        };
        let a = u32::from(b'a');
        let cases = [
            (good[..3].to_vec(), "too short"),
            (good[..4000].to_vec(), "a wrong length"),
            (good[..4100].to_vec(), "missing"),
            (change(b'a' as usize, a << 10 | a), "too long or too many"), // back to the root's children
            (
                change(b'a' as usize, 1 << 20 | 1 << 8 | a),
                "outside itself",
            ),
            (change(512, 1 << 31 | 2), "missing"),
            (bytes_of(&[(0xc3, "A")]), "not UTF-8"),
            (bytes_of(&[(b'a', &"A".repeat(1025))]), "too long"),
            (vec![0; MOST + 1], "more than 4194304 bytes"),
            (vec![1; 5], "a wrong length"),
            (vec![0; 5], "outside itself"),
        ];
        for (bytes, expected) in cases {
            let error = Charsmap::parse(&bytes).err().unwrap_or_default();
            assert!(error.contains(expected), "{error:?} {expected}");
        }
    }
}
