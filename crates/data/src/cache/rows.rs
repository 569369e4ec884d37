//! Rows of different lengths, such as sentences of token ids or of characters, as three flat files.
//!
//! `items` has the rows end to end; `lengths` has the length of each row; `starts` has, for every block of 64 rows,
//! its place in `items` and its checksum (CRC-32). A row is found without reading what comes before it, damage is
//! found when a row is read, and the index takes little more than two bytes a row. Rows that are long, such as
//! pictures, are blocks of their own: to check one, no other is read.

use super::bytes::Bytes;
use crate::hash::Hasher;
use flate2::Crc;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::ops::Range;

/// Rows between two entries of `starts`, if rows are short.
const BLOCK: u8 = 64;
/// Bytes of an entry of `starts`: eight of a place, four of a checksum.
const START: usize = 12;

/// The extensions of the three files, in the order in which they are given everywhere.
pub(crate) const PARTS: [&str; 3] = ["items", "lengths", "starts"];

/// The number of rows and items, and the bytes that each takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    pub(crate) rows: u64,
    pub(crate) items: u64,
    /// Bytes of an item: 1 (text), 2 or 4 (ids).
    item: u8,
    /// Bytes of a length: 2 or 4.
    length: u8,
    /// Rows between two entries of `starts`.
    #[serde(default = "short_rows", skip_serializing_if = "are_short_rows")]
    block: u8,
}

fn short_rows() -> u8 {
    BLOCK
}

fn are_short_rows(block: &u8) -> bool {
    *block == BLOCK
}

impl Shape {
    /// Rows of ids below `vocab_size`, with at most `longest` ids each.
    pub(crate) fn of_ids(vocab_size: usize, longest: usize) -> Self {
        let bytes = |most: usize| if most <= 1 << 16 { 2 } else { 4 };
        Self {
            rows: 0,
            items: 0,
            item: bytes(vocab_size),
            length: bytes(longest.saturating_add(1)),
            block: BLOCK,
        }
    }

    /// Rows of UTF-8.
    pub(crate) fn of_text() -> Self {
        Self {
            rows: 0,
            items: 0,
            item: 1,
            length: 4,
            block: BLOCK,
        }
    }

    /// Long rows of bytes.
    pub(crate) fn of_bytes() -> Self {
        Self {
            block: 1,
            ..Self::of_text()
        }
    }

    /// Long rows of numbers of 32 bits.
    pub(crate) fn of_floats() -> Self {
        Self {
            item: 4,
            ..Self::of_bytes()
        }
    }

    /// The sizes of the three files. None if there are no such sizes.
    pub(crate) fn sizes(&self) -> Option<[u64; 3]> {
        Some([
            self.items.checked_mul(self.item.into())?,
            self.rows.checked_mul(self.length.into())?,
            self.rows
                .div_ceil(self.block.into())
                .checked_mul(START as u64)?,
        ])
    }
}

/// Writes rows one after another.
pub(crate) struct RowsWriter<W> {
    files: [W; 3],
    shape: Shape,
    hash: Hasher,
    buffer: Vec<u8>,
    /// The place and the checksum of the current block.
    block: (u64, Crc),
}

impl<W: Write> RowsWriter<W> {
    /// `shape` has no rows yet.
    pub(crate) fn new(files: [W; 3], shape: Shape) -> Self {
        Self {
            files,
            shape,
            hash: Hasher::new("rows"),
            buffer: Vec::new(),
            block: (0, Crc::new()),
        }
    }

    /// Appends a row of ids, which fit into the shape.
    pub(crate) fn push_ids(&mut self, ids: &[u32]) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        match self.shape.item {
            2 => buffer.extend(ids.iter().flat_map(|&id| (id as u16).to_le_bytes())),
            _ => buffer.extend(ids.iter().flat_map(|&id| id.to_le_bytes())),
        }
        let pushed = self.push(&buffer, ids.len());
        self.buffer = buffer;
        pushed
    }

    pub(crate) fn push_text(&mut self, text: &str) -> io::Result<()> {
        self.push(text.as_bytes(), text.len())
    }

    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.push(bytes, bytes.len())
    }

    pub(crate) fn push_floats(&mut self, numbers: &[f32]) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let pushed = self.push(&buffer, numbers.len());
        self.buffer = buffer;
        pushed
    }

    fn push(&mut self, row: &[u8], length: usize) -> io::Result<()> {
        let [items, lengths, _] = &mut self.files;
        items.write_all(row)?;
        self.block.1.update(row);
        let bytes = (length as u32).to_le_bytes();
        lengths.write_all(&bytes[..self.shape.length.into()])?;
        self.hash.add(row);
        self.shape.rows += 1;
        self.shape.items += length as u64;
        match self.shape.rows.is_multiple_of(self.shape.block.into()) {
            true => self.end_block(),
            false => Ok(()),
        }
    }

    fn end_block(&mut self) -> io::Result<()> {
        let next = (self.shape.items, Crc::new());
        let (start, checksum) = std::mem::replace(&mut self.block, next);
        self.files[2].write_all(&start.to_le_bytes())?;
        self.files[2].write_all(&checksum.sum().to_le_bytes())
    }

    /// The number of rows so far.
    pub(crate) fn len(&self) -> u64 {
        self.shape.rows
    }

    /// The files, which are not flushed, the shape, and a hash of all rows.
    pub(crate) fn finish(mut self) -> io::Result<([W; 3], Shape, String)> {
        if !self.shape.rows.is_multiple_of(self.shape.block.into()) {
            self.end_block()?;
        }
        Ok((self.files, self.shape, self.hash.finish()))
    }
}

/// Reads any row.
pub(crate) struct Rows {
    items: Bytes,
    lengths: Bytes,
    starts: Bytes,
    shape: Shape,
}

impl Rows {
    /// None if the files do not have the sizes of the shape, or if the lengths do not lead from each start to the next.
    pub(crate) fn new(files: [Bytes; 3], shape: Shape) -> Option<Self> {
        let known = matches!(
            (shape.item, shape.length, shape.block),
            (1 | 2 | 4, 2 | 4, 1..=BLOCK)
        );
        let sizes = files.each_ref().map(|file| file.len() as u64);
        if !known || shape.sizes() != Some(sizes) {
            return None;
        }
        let [items, lengths, starts] = files;
        let rows = Self {
            items,
            lengths,
            starts,
            shape,
        };
        rows.has_whole_index().then_some(rows)
    }

    /// Reads the whole index, which is small beside the items.
    fn has_whole_index(&self) -> bool {
        let width = usize::from(self.shape.length);
        let blocks = self.lengths.chunks(usize::from(self.shape.block) * width);
        let mut place = 0;
        let fits = blocks.zip(self.starts.chunks(START)).all(|(block, start)| {
            let is_here = number(&start[..8]) == place;
            let rows: u64 = block.chunks(width).map(number).sum(); // at most 64 numbers below 2^32
            place = rows.saturating_add(place);
            is_here
        });
        fits && place == self.shape.items
    }

    pub(crate) fn len(&self) -> usize {
        self.shape.rows as usize
    }

    /// The number of items in row `i`, which exists.
    pub(crate) fn length(&self, i: usize) -> usize {
        let width = usize::from(self.shape.length);
        number(&self.lengths[i * width..(i + 1) * width]) as usize
    }

    /// The ids of row `i`. None if the files are damaged.
    pub(crate) fn ids(&self, i: usize) -> Option<impl Iterator<Item = u32>> {
        let width = usize::from(self.shape.item);
        let row = self.raw(i)?;
        Some(row.chunks_exact(width).map(|id| number(id) as u32))
    }

    /// The text of row `i`. None if the files are damaged.
    pub(crate) fn text(&self, i: usize) -> Option<&str> {
        std::str::from_utf8(self.raw(i)?).ok()
    }

    /// The bytes of row `i`. None if the files are damaged.
    pub(crate) fn raw(&self, i: usize) -> Option<&[u8]> {
        self.items.get(self.bytes(i)?)
    }

    /// The numbers of row `i`. None if the files are damaged.
    pub(crate) fn floats(&self, i: usize) -> Option<impl Iterator<Item = f32>> {
        let numbers = self.raw(i)?.chunks_exact(size_of::<f32>());
        Some(numbers.map(|number| f32::from_bits(self::number(number) as u32)))
    }

    fn bytes(&self, i: usize) -> Option<Range<usize>> {
        if i >= self.len() {
            return None;
        }
        let rows = usize::from(self.shape.block);
        let block = i / rows;
        if !self.is_whole(block)? {
            return None;
        }
        let start = self.start(block)?;
        let before = (block * rows..i).map(|row| self.length(row) as u64);
        let start = start.checked_add(before.sum())?;
        let end = start.checked_add(self.length(i) as u64)?;
        self.bytes_of(start, end)
    }

    /// The place of a block in `items`. After the last one, the end.
    fn start(&self, block: usize) -> Option<u64> {
        let entry = self.starts.chunks(START).nth(block);
        Some(entry.map_or(self.shape.items, |entry| number(&entry[..8])))
    }

    /// Whether a block is what was written.
    fn is_whole(&self, block: usize) -> Option<bool> {
        let range = self.bytes_of(self.start(block)?, self.start(block + 1)?)?;
        let mut checksum = Crc::new();
        checksum.update(self.items.get(range)?);
        let written = self.starts.chunks(START).nth(block)?;
        Some(number(&written[8..]) == u64::from(checksum.sum()))
    }

    fn bytes_of(&self, start: u64, end: u64) -> Option<Range<usize>> {
        let width = u64::from(self.shape.item);
        let byte = |item: u64| usize::try_from(item.checked_mul(width)?).ok();
        Some(byte(start)?..byte(end)?)
    }
}

/// A number of up to eight bytes, the lowest first.
fn number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(shape: Shape, push: impl Fn(&mut RowsWriter<Vec<u8>>)) -> (Rows, String) {
        let mut writer = RowsWriter::new(Default::default(), shape);
        push(&mut writer);
        let (files, shape, hash) = writer.finish().unwrap();
        let rows = Rows::new(files.map(Bytes::Held), shape).unwrap();
        (rows, hash)
    }

    #[test]
    fn every_row_is_read_as_it_was_written() {
        let row = |i: u32| (0..i * 7919 % 23).map(move |k| (i * 31 + k) % 60_000);
        for (vocab_size, longest) in [(60_000, 256), (1 << 16, 65_535), (70_000, 70_000)] {
            let (rows, hash) = rows(Shape::of_ids(vocab_size, longest), |writer| {
                for i in 0..1000 {
                    writer.push_ids(&row(i).collect::<Vec<_>>()).unwrap();
                }
            });
            assert_eq!(rows.len(), 1000);
            for i in (0..1000).rev() {
                assert!(rows.ids(i).unwrap().eq(row(i as u32)), "row {i}");
                assert_eq!(rows.length(i), row(i as u32).count());
            }
            assert_eq!(hash.len(), 64);
        }
    }

    #[test]
    fn text_is_read_as_it_was_written() {
        let (rows, _) = rows(Shape::of_text(), |writer| {
            for text in ["", "ein Hund", "ß", "🐕"] {
                writer.push_text(text).unwrap();
            }
        });
        assert_eq!(rows.text(1), Some("ein Hund"));
        assert_eq!((rows.text(0), rows.text(3)), (Some(""), Some("🐕")));
    }

    #[test]
    fn damage_is_found_and_does_not_panic() {
        let mut writer = RowsWriter::<Vec<u8>>::new(Default::default(), Shape::of_ids(100, 9));
        for i in 0..100 {
            writer.push_ids(&[i, i]).unwrap();
        }
        let (files, shape, _) = writer.finish().unwrap();
        for part in 0..3 {
            let mut cut = files.clone();
            cut[part].pop();
            assert!(Rows::new(cut.map(Bytes::Held), shape).is_none());
            let mut other = files.clone();
            other[part].fill(0xff);
            let rows = Rows::new(other.map(Bytes::Held), shape);
            assert_eq!(rows.is_some(), part == 0, "{}", PARTS[part]);
        }
        for part in 0..3 {
            for bit in 0..files[part].len() * 8 {
                let mut other = files.clone();
                other[part][bit / 8] ^= 1 << (bit % 8);
                let rows = Rows::new(other.map(Bytes::Held), shape);
                let read = |rows: Rows| (0..100).all(|i| rows.ids(i).is_some());
                assert!(!rows.is_some_and(read), "bit {bit} of {}", PARTS[part]);
            }
        }
        let huge = Shape {
            rows: u64::MAX,
            items: u64::MAX,
            ..shape
        };
        assert!(Rows::new(files.map(Bytes::Held), huge).is_none());
    }
}
