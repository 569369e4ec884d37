//! Compressed files: gzip, zstd and xz, told from plain text by their first bytes.

use crate::{Error, Result};
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

const BUFFER: usize = 1 << 16;

// What a file may make the decoders allocate. `zstd -d` and `xz -9` stay within these limits.
const ZSTD_WINDOW: u64 = 128 << 20;
const XZ_MEMORY_KIB: u32 = 256 << 10;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
    Xz,
}

impl Compression {
    /// The extensions of compressed files, without the dot.
    pub(crate) const EXTENSIONS: [&str; 3] = ["gz", "zst", "xz"];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
        }
    }

    /// What compressed data begins with.
    fn magic(self) -> &'static [u8] {
        match self {
            Self::Gzip => b"\x1f\x8b",
            Self::Zstd => b"\x28\xb5\x2f\xfd",
            Self::Xz => b"\xfd7zXZ\0",
        }
    }

    /// Whether data that begins with `head` is compressed. `None` if more bytes are needed to know.
    fn of(head: &[u8]) -> Option<Option<Self>> {
        let mut undecided = false;
        for compression in [Self::Gzip, Self::Zstd, Self::Xz] {
            if head.starts_with(compression.magic()) {
                return Some(Some(compression));
            }
            undecided |= compression.magic().starts_with(head);
        }
        // A zstd file can begin with a skippable frame: sixteen numbers mark one.
        let skippable = b"\x50\x2a\x4d\x18";
        if let [first, rest @ ..] = head
            && first & 0xf0 == skippable[0]
            && skippable[1..].starts_with(rest)
        {
            return (head.len() == 4).then_some(Some(Self::Zstd));
        }
        (!undecided).then_some(None)
    }
}

/// The content of a file, decompressed while it is read.
pub(crate) struct Content {
    pub(crate) reader: Box<dyn BufRead + Send>,
    pub(crate) path: PathBuf,
    pub(crate) compression: Option<Compression>,
}

impl Content {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|source| Error::reading(path, source))?;
        Self::new(file, path)
    }

    /// `name` is used in errors.
    pub(crate) fn new(
        reader: impl Read + Send + 'static,
        name: impl Into<PathBuf>,
    ) -> Result<Self> {
        let path = name.into();
        let mut reader = BufReader::with_capacity(BUFFER, reader);
        let mut head = Vec::new();
        // No byte more than it takes to decide: a terminal gives no more than what was typed.
        let compression = loop {
            if let Some(compression) = Compression::of(&head) {
                break compression;
            }
            let mut byte = [0];
            match reader.read(&mut byte) {
                Ok(0) => break None,
                Ok(_) => head.push(byte[0]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Io { path, source }),
            }
        };
        let whole = Cursor::new(head).chain(reader);
        let reader: Box<dyn BufRead + Send> = match compression {
            None => Box::new(whole),
            Some(Compression::Gzip) => buffered(MultiGzDecoder::new(whole)),
            Some(Compression::Zstd) => buffered(ZstdReader::new(whole)),
            Some(Compression::Xz) => buffered(XzReader::new_mem_limit(whole, true, XZ_MEMORY_KIB)),
        };
        Ok(Self {
            reader,
            path,
            compression,
        })
    }

    /// The error of a read that failed after so many lines.
    pub(crate) fn error(&self, source: io::Error, lines: u64) -> Error {
        let path = self.path.clone();
        match self.compression {
            // An error of the system is one of the disk, not of the data.
            Some(compression) if source.raw_os_error().is_none() => Error::Damaged {
                path,
                kind: compression.name(),
                line: lines,
                source,
            },
            _ => Error::Io { path, source },
        }
    }
}

fn buffered(reader: impl Read + Send + 'static) -> Box<dyn BufRead + Send> {
    Box::new(BufReader::with_capacity(BUFFER, reader))
}

/// All frames of a zstd file, one after another.
struct ZstdReader<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
    written: u64, // bytes of this frame
}

impl<R: BufRead> ZstdReader<R> {
    fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(ZSTD_WINDOW);
        Self {
            source,
            decoder,
            in_frame: false,
            written: 0,
        }
    }

    /// Whether there is another frame.
    fn next_frame(&mut self) -> io::Result<bool> {
        use FrameDecoderError::ReadFrameHeaderError as Header;
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => break,
                Err(Header(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    let mut skipped = (&mut self.source).take(length);
                    if io::copy(&mut skipped, &mut io::sink())? < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(invalid(error.to_string())),
            }
        }
        (self.in_frame, self.written) = (true, 0);
        Ok(true)
    }

    /// Checks a frame that was read to its end. The decoder leaves this to its caller.
    fn end_frame(&mut self) -> io::Result<()> {
        self.in_frame = false;
        let size = self.decoder.content_size(); // 0 if the frame does not tell it
        if size != 0 && size != self.written {
            return Err(invalid("a frame has another size than its header tells"));
        }
        match self.decoder.get_checksum_from_data() {
            Some(sum) if Some(sum) != self.decoder.get_calculated_checksum() => {
                Err(invalid("a checksum does not match"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && !self.next_frame()? {
                return Ok(0);
            }
            let decoder = &mut self.decoder;
            while decoder.can_collect() == 0 && !decoder.is_finished() {
                let blocks = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = decoder.decode_blocks(&mut self.source, blocks);
                decoded.map_err(|error| invalid(error.to_string()))?;
            }
            let size = decoder.read(buffer)?;
            if size > 0 {
                self.written += size as u64;
                return Ok(size);
            }
            self.end_frame()?;
        }
    }
}

fn invalid(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.into())
}
