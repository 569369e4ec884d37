use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use super::super::fault::{Fault, shown};
use super::fields::Fields;

const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;
/// The lengths of these records without names and comments.
const END_LENGTH: u64 = 22;
const END_64_LENGTH: u64 = 56;
const LOCATOR_64_LENGTH: u64 = 20;
const CENTRAL_LENGTH: u64 = 46;
const LOCAL_LENGTH: u64 = 30;
/// The longest directory that is read. An entry takes about 100 bytes of it.
const LONGEST_DIRECTORY: u64 = 1 << 24;
/// Means that a 64-bit number is elsewhere.
const IN_64: u32 = u32::MAX;

/// The directory of a zip archive whose entries are stored as they are, as torch writes it. Entries are found
/// by name; a name is never a path.
pub(super) struct Archive {
    entries: BTreeMap<String, Entry>,
    /// Where the entries end and the directory begins.
    end: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    header: u64,
    length: u64,
}

impl Archive {
    /// Reads the directory of a file with `length` bytes.
    pub(super) fn read(file: &mut (impl Read + Seek), length: u64) -> Result<Self, Fault> {
        let (count, directory) = find_directory(file, length)?;
        let end = directory.start;
        let bytes = read_range(file, directory)?;
        let mut fields = Fields(&bytes);
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let (name, entry) = central_entry(&mut fields)?;
            let shown = shown(&name);
            if entries.insert(name, entry).is_some() {
                return Fault::damaged(format!("entry `{shown}` is there twice"));
            }
        }
        match fields.0 {
            [] => Ok(Self { entries, end }),
            _ => Fault::damaged("its directory is longer than its entries"),
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Where the bytes of an entry are.
    pub(super) fn locate(
        &self,
        file: &mut (impl Read + Seek),
        name: &str,
    ) -> Result<Range<u64>, Fault> {
        let Some(Entry { header, length }) = self.entries.get(name).copied() else {
            return Fault::damaged(format!("no entry `{}`", shown(name)));
        };
        let lies = || Fault::Damaged(format!("entry `{}` is not where it says", shown(name)));
        let after_header = header.checked_add(LOCAL_LENGTH).ok_or_else(lies)?;
        if after_header > self.end {
            return Err(lies());
        }
        let bytes = read_range(file, header..after_header)?;
        let mut fields = Fields(&bytes);
        let signature = fields.u32()?;
        let (_version, flags, method) = (fields.u16()?, fields.u16()?, fields.u16()?);
        fields.take(8)?; // time, date, checksum
        let lengths = [fields.u32()?, fields.u32()?];
        let (name_length, extra_length) = (fields.u16()?, fields.u16()?);
        // With flag 8, the lengths follow the data.
        let known = |l: &u32| *l == IN_64 || u64::from(*l) == length;
        let agrees = flags & 8 != 0 || lengths.iter().all(known);
        let start = after_header + u64::from(name_length) + u64::from(extra_length);
        let end = start.checked_add(length).ok_or_else(lies)?;
        if signature != LOCAL || method != 0 || !agrees || end > self.end {
            return Err(lies());
        }
        let its_name = read_range(file, after_header..after_header + u64::from(name_length))?;
        if its_name != name.as_bytes() {
            return Err(lies());
        }
        Ok(start..end)
    }
}

/// How many entries there are, and where the directory is, from the records at the end of the file.
fn find_directory(file: &mut (impl Read + Seek), length: u64) -> Result<(u64, Range<u64>), Fault> {
    let tail_start = length.saturating_sub(END_LENGTH + u64::from(u16::MAX));
    let tail = read_range(file, tail_start..length)?;
    // The last record of its kind whose comment ends with the file.
    let signature = END.to_le_bytes();
    let found = (0..tail.len()).rev().find(|at| {
        let record = &tail[*at..];
        let comment = record
            .get(20..22)
            .map(|c| usize::from(c[0]) | usize::from(c[1]) << 8);
        record.starts_with(&signature)
            && comment.is_some_and(|comment| record.len() == END_LENGTH as usize + comment)
    });
    let Some(found) = found else {
        return Fault::damaged("a zip archive without its end");
    };
    let mut fields = Fields(&tail[found..]);
    fields.take(10)?; // signature, disks, entries of this disk
    let (mut count, mut size) = (u64::from(fields.u16()?), u64::from(fields.u32()?));
    let (mut start, mut end) = (u64::from(fields.u32()?), tail_start + found as u64);

    if let Some(locator) = end.checked_sub(LOCATOR_64_LENGTH) {
        let bytes = read_range(file, locator..end)?;
        let mut fields = Fields(&bytes);
        if fields.u32()? == LOCATOR_64 {
            fields.take(4)?;
            let record = fields.u64()?;
            let after = record.checked_add(END_64_LENGTH);
            let Some(after) = after.filter(|after| *after <= locator) else {
                return Fault::damaged("a zip archive whose end is not where it says");
            };
            let bytes = read_range(file, record..after)?;
            let mut fields = Fields(&bytes);
            if fields.u32()? != END_64 {
                return Fault::damaged("a zip archive whose end is not where it says");
            }
            fields.take(28)?; // length, versions, disks, entries of this disk
            (count, size, start) = (fields.u64()?, fields.u64()?, fields.u64()?);
            end = record;
        }
    }
    let directory_end = start.checked_add(size).filter(|e| *e == end);
    let least = count.checked_mul(CENTRAL_LENGTH);
    match (directory_end, least) {
        (Some(_), Some(_)) if size > LONGEST_DIRECTORY => {
            Fault::refused(format!("a zip archive with a directory of {size} bytes"))
        }
        (Some(end), Some(least)) if least <= size => Ok((count, start..end)),
        _ => Fault::damaged("a zip archive whose directory is not where it says"),
    }
}

/// The next entry of a directory.
fn central_entry(fields: &mut Fields<'_>) -> Result<(String, Entry), Fault> {
    if fields.u32()? != CENTRAL {
        return Fault::damaged("a zip archive whose directory is not where it says");
    }
    fields.take(4)?; // versions
    let (flags, method) = (fields.u16()?, fields.u16()?);
    fields.take(8)?; // time, date, checksum
    let (stored, length) = (fields.u32()?, fields.u32()?);
    let (name_length, extra_length) = (fields.u16()?, fields.u16()?);
    let comment_length = fields.u16()?;
    fields.take(8)?; // disk, attributes
    let header = fields.u32()?;
    let name = String::from_utf8_lossy(fields.take(name_length.into())?).into_owned();
    let mut extra = Fields(fields.take(extra_length.into())?);
    fields.take(comment_length.into())?;
    if flags & 1 != 0 {
        return Fault::refused(format!("entry `{}` is encrypted", shown(&name)));
    }
    if method != 0 {
        return Fault::refused(format!("entry `{}` is compressed", shown(&name)));
    }
    let mut wide = wide_numbers(&mut extra)?;
    let mut number = |number: u32| match number {
        IN_64 => wide.u64(),
        number => Ok(u64::from(number)),
    };
    // In this order in the extra field.
    let (length, stored, header) = (number(length)?, number(stored)?, number(header)?);
    if stored != length {
        let name = shown(&name);
        return Fault::damaged(format!(
            "entry `{name}` has {stored} bytes where it says {length}"
        ));
    }
    Ok((name, Entry { header, length }))
}

/// The 64-bit numbers in the extra field of an entry.
fn wide_numbers<'a>(extra: &mut Fields<'a>) -> Result<Fields<'a>, Fault> {
    // Fewer bytes than a field's header are padding.
    while extra.0.len() >= 4 {
        let (kind, length) = (extra.u16()?, extra.u16()?);
        let field = extra.take(length.into())?;
        if kind == 1 {
            return Ok(Fields(field));
        }
    }
    Ok(Fields(&[]))
}

/// The bytes of a range within the file. It is never longer than [`LONGEST_DIRECTORY`].
fn read_range(file: &mut (impl Read + Seek), range: Range<u64>) -> Result<Vec<u8>, Fault> {
    file.seek(SeekFrom::Start(range.start))?;
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
