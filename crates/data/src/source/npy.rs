//! Features in a file of NumPy (`numpy.save`). The format is described in `numpy.lib.format`.

use super::Problem;
use super::features::{Matrix, Number};

const MAGIC: usize = 6;

/// The array of the file.
pub(super) fn parse(bytes: &[u8]) -> Result<Matrix<'_>, Problem> {
    let refuse = |what: String| {
        let hint = "write it with numpy.save(path, array.astype(\"<f4\")), where the array is a matrix in C order";
        Problem::new(what, hint)
    };
    let (header, numbers) =
        split(bytes).ok_or_else(|| refuse("a damaged npy header, or a truncated file".into()))?;
    let value = |key: &str| {
        let rest = header.split_once(&format!("'{key}':"));
        let rest = rest.map(|(_, rest)| rest.trim_start());
        rest.ok_or_else(|| refuse(format!("its npy header has no {key}")))
    };
    let number = value("descr")?;
    let number = match number.get(1..4) {
        Some("<f2") => Number::F16,
        Some("<f4") => Number::F32,
        Some("<f8") => Number::F64,
        _ => {
            let shown: String = number.chars().take(12).collect();
            return Err(refuse(format!(
                "is an array of {shown}…, not of <f2, <f4 or <f8"
            )));
        }
    };
    if !value("fortran_order")?.starts_with("False") {
        return Err(refuse("is in Fortran order".into()));
    }
    let shape = value("shape")?;
    let inner = shape
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(')'));
    let sizes = inner.map(|(inner, _)| {
        let sizes = inner
            .split(',')
            .map(str::trim)
            .filter(|size| !size.is_empty());
        sizes
            .map(str::parse::<usize>)
            .collect::<Result<Vec<_>, _>>()
    });
    match sizes {
        Some(Ok(sizes)) => match sizes[..] {
            [rows, columns] => Ok(Matrix {
                shape: [rows, columns],
                number,
                bytes: numbers,
            }),
            _ => Err(refuse(format!("has {} dimensions, not two", sizes.len()))),
        },
        _ => Err(refuse("its npy header has no usable shape".into())),
    }
}

/// The header, a literal of Python, and what follows it.
fn split(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (major, rest) = (*bytes.get(MAGIC)?, bytes.get(MAGIC + 2..)?);
    let (length, rest) = match major {
        1 => {
            let (length, rest) = rest.split_at_checked(2)?;
            (
                usize::from(u16::from_le_bytes(length.try_into().ok()?)),
                rest,
            )
        }
        _ => {
            let (length, rest) = rest.split_at_checked(4)?;
            (u32::from_le_bytes(length.try_into().ok()?) as usize, rest)
        }
    };
    let (header, numbers) = rest.split_at_checked(length)?;
    Some((std::str::from_utf8(header).ok()?, numbers))
}
