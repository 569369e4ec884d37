use std::io::Read;

use super::super::super::fault::Fault;

/// The longest pickle that is read. A tensor takes about 200 bytes of it.
const LONGEST: u64 = 1 << 24;
/// The longest text, and the longest name of a global.
const LONGEST_TEXT: u64 = 1 << 16;

/// The bytes of a pickle. No more of them are read than there can be.
pub(in super::super) struct Input<R> {
    reader: R,
    left: u64,
    /// Whether there are more bytes than are read.
    limited: bool,
}

impl<R: Read> Input<R> {
    /// `length` is how many bytes there are.
    pub(in super::super) fn new(reader: R, length: u64) -> Self {
        Self {
            reader,
            left: length.min(LONGEST),
            limited: length > LONGEST,
        }
    }

    /// Checks that so many bytes are left.
    pub(super) fn require(&self, bytes: u64) -> Result<(), Fault> {
        match bytes <= self.left {
            true => Ok(()),
            false if self.limited => {
                Fault::refused(format!("a pickle of more than {LONGEST} bytes"))
            }
            false => Fault::damaged("its pickle ends too early"),
        }
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.require(N as u64)?;
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        self.left -= N as u64;
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        let [byte] = self.bytes()?;
        Ok(byte)
    }

    /// A text whose length was read.
    pub(super) fn text(&mut self, length: u64) -> Result<String, Fault> {
        self.require(length)?;
        if length > LONGEST_TEXT {
            return Fault::refused(format!("a text of {length} bytes in its pickle"));
        }
        let mut bytes = vec![0; length as usize];
        self.reader.read_exact(&mut bytes)?;
        self.left -= length;
        utf8(bytes)
    }

    /// A text up to the end of the line.
    pub(super) fn line(&mut self) -> Result<String, Fault> {
        let mut bytes = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => return utf8(bytes),
                _ if bytes.len() as u64 == LONGEST_TEXT => {
                    return Fault::refused("a name that is too long in its pickle");
                }
                byte => bytes.push(byte),
            }
        }
    }

    /// A number of up to 16 bytes, in two's complement.
    pub(super) fn long(&mut self, length: u8) -> Result<i128, Fault> {
        if length > 16 {
            return Fault::refused(format!("a number of {length} bytes in its pickle"));
        }
        let mut bytes = [0; 16];
        for byte in bytes.iter_mut().take(length.into()) {
            *byte = self.byte()?;
        }
        let unused = 128 - 8 * u32::from(length);
        let number = i128::from_le_bytes(bytes);
        // Shifted up and down again, so that its sign fills the bytes that it does not have.
        Ok(number
            .checked_shl(unused)
            .map_or(0, |number| number >> unused))
    }
}

fn utf8(bytes: Vec<u8>) -> Result<String, Fault> {
    String::from_utf8(bytes).or_else(|_| Fault::damaged("a text in its pickle is not UTF-8"))
}
