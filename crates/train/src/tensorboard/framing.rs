//! How records lie in a file: a length of eight bytes and its checksum, then the record and its checksum.

use crc32c::crc32c;

/// Appends a record to a file's bytes.
pub(super) fn push(record: &[u8], bytes: &mut Vec<u8>) {
    let length = (record.len() as u64).to_le_bytes();
    bytes.extend(length);
    bytes.extend(checksum(&length));
    bytes.extend(record);
    bytes.extend(checksum(record));
}

/// CRC-32C, rotated and shifted by a constant: a checksum of bytes that contain their own would be easy to hit.
fn checksum(bytes: &[u8]) -> [u8; 4] {
    let crc = crc32c(bytes).rotate_right(15);
    crc.wrapping_add(0xa282_ead8).to_le_bytes()
}

/// The records of a file. Ends before the first that is damaged or cut off.
#[cfg(test)]
pub(super) fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    let mut next = || {
        let (length, rest) = bytes.split_first_chunk::<8>()?;
        let (sum, rest) = rest.split_first_chunk::<4>()?;
        let end = u64::from_le_bytes(*length) as usize;
        let (record, rest) = rest.split_at_checked(end)?;
        let (record_sum, rest) = rest.split_first_chunk::<4>()?;
        bytes = rest;
        (checksum(length) == *sum && checksum(record) == *record_sum).then(|| record.to_vec())
    };
    while let Some(record) = next() {
        records.push(record);
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written_up_to_the_first_damage() {
        let mut bytes = Vec::new();
        for record in [&b"one"[..], b"", b"three"] {
            push(record, &mut bytes);
        }
        assert_eq!(records(&bytes), [&b"one"[..], b"", b"three"]);
        assert_eq!(records(&bytes[..bytes.len() - 1]), [&b"one"[..], b""]);
        bytes[14] ^= 1; // in the first record
        assert!(records(&bytes).is_empty());
    }
}
