//! The bytes of a file, and what kind of file they are.

use super::Problem;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// The most bytes of a file.
const MOST_BYTES: u64 = 64 << 20;
/// The bytes in which the root of an SVG is looked for.
const PROLOG: usize = 1 << 14;

/// What a file is, by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Png,
    Jpeg,
    Svg,
    Npy,
    Safetensors,
    /// A kind that is known by name only.
    Other(&'static str),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Svg => "SVG",
            Self::Npy => "npy",
            Self::Safetensors => "safetensors",
            Self::Other(name) => name,
        })
    }
}

impl Kind {
    /// What the content is. None if it is nothing that is known here.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let starts: [(&[u8], Self); 10] = [
            (b"\x89PNG\r\n\x1a\n", Self::Png),
            (b"\xff\xd8\xff", Self::Jpeg),
            (b"\x93NUMPY", Self::Npy),
            (b"GIF8", Self::Other("GIF")),
            (b"BM", Self::Other("BMP")),
            (b"II*\0", Self::Other("TIFF")),
            (b"MM\0*", Self::Other("TIFF")),
            (b"\x1f\x8b", Self::Other("gzip")),
            (b"PK\x03\x04", Self::Other("zip")),
            (b"%PDF", Self::Other("PDF")),
        ];
        let found = starts.iter().find(|(start, _)| bytes.starts_with(start));
        if let Some((_, kind)) = found {
            return Some(*kind);
        }
        if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            return Some(Self::Other("WebP"));
        }
        if bytes.get(4..8) == Some(b"ftyp") {
            return Some(Self::Other("AVIF or HEIF"));
        }
        if bytes.get(8) == Some(&b'{') {
            return Some(Self::Safetensors);
        }
        let start = &bytes[..bytes.len().min(PROLOG)];
        let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        let is_markup = text.trim_ascii_start().starts_with(b"<");
        let has_root = text.windows(4).any(|window| window == b"<svg");
        (is_markup && has_root).then_some(Self::Svg)
    }

    /// What the extension of a name says. None if it says nothing.
    fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match &*extension {
            "png" => Self::Png,
            "jpg" | "jpeg" | "jpe" | "jfif" => Self::Jpeg,
            "svg" => Self::Svg,
            "npy" => Self::Npy,
            "safetensors" => Self::Safetensors,
            "gif" => Self::Other("GIF"),
            "bmp" => Self::Other("BMP"),
            "tif" | "tiff" => Self::Other("TIFF"),
            "webp" => Self::Other("WebP"),
            "npz" | "zip" => Self::Other("zip"),
            "svgz" | "gz" => Self::Other("gzip"),
            "avif" | "heic" | "heif" => Self::Other("AVIF or HEIF"),
            _ => return None,
        })
    }
}

/// Reads a whole file, and says what it is. A name that says something else is an error.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, Kind), Problem> {
    let bytes = bytes(path)?;
    let said = Kind::of_name(path);
    let Some(kind) = Kind::of(&bytes) else {
        let what = match said {
            Some(said) => format!("is no {said}, although its name ends so"),
            None => "is of no kind that is known".into(),
        };
        return Err(Problem::new(what, READ));
    };
    match said {
        Some(said) if said != kind => {
            let what = format!("is {kind}, but its name says {said}");
            Err(Problem::new(what, "rename it, or convert it"))
        }
        _ => Ok((bytes, kind)),
    }
}

/// What is read.
pub(super) const READ: &str =
    "pictures are PNG, JPEG or SVG; features are safetensors or npy with one matrix of numbers";

/// An error if this is no file. It is not opened: opening a pipe could wait without end.
pub(super) fn find(path: &Path) -> Result<Metadata, Problem> {
    if path.as_os_str().is_empty() {
        return Err(Problem::new("there is no path", "give the path of a file"));
    }
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_file() {
        return Ok(metadata);
    }
    let what = match metadata.is_dir() {
        true => "is a folder, not a file",
        false => "is a pipe or a device, not a file",
    };
    Err(Problem::new(what, "give the path of a file"))
}

fn failed(error: io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::NotFound => Problem::new(
            "no such file",
            "paths are relative to the folder of the file that names them",
        ),
        _ => Problem::new(format!("cannot be read: {error}"), "check its permissions"),
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Problem> {
    let metadata = find(path)?;
    let too_large = || {
        let what = format!("has more than {} MiB", MOST_BYTES >> 20);
        Problem::new(
            what,
            "make it smaller: a model sees a small picture, or few rows",
        )
    };
    if metadata.len() > MOST_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    match bytes.len() as u64 {
        0 => Err(Problem::new("is empty", "write it again")),
        length if length > MOST_BYTES => Err(too_large()),
        _ => Ok(bytes),
    }
}
