//! A matrix of a file, as rows of features.

use super::Problem;
use half::{bf16, f16};

/// The most bytes of the numbers of a file.
const MOST_BYTES: usize = 64 << 20;

/// The type of a number. All are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    F16,
    Bf16,
    F32,
    F64,
}

/// A matrix whose rows are end to end.
pub(super) struct Matrix<'a> {
    pub(super) shape: [usize; 2],
    pub(super) number: Number,
    pub(super) bytes: &'a [u8],
}

impl Number {
    fn size(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The number of these bytes, of which there are as many as [`Number::size`].
    fn read(self, bytes: &[u8]) -> f32 {
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        let [a, b, c, d, ..] = all;
        match self {
            Self::F16 => f16::from_le_bytes([a, b]).to_f32(),
            Self::Bf16 => bf16::from_le_bytes([a, b]).to_f32(),
            Self::F32 => f32::from_le_bytes([a, b, c, d]),
            Self::F64 => f64::from_le_bytes(all) as f32,
        }
    }
}

impl Matrix<'_> {
    /// Its rows, if a model reads such rows.
    pub(super) fn rows(self, width: usize, max_length: usize) -> Result<Vec<f32>, Problem> {
        let [rows, columns] = self.shape;
        if columns != width {
            return Err(Problem::new(
                format!("has {columns} features in a row, and the model reads {width}"),
                "write files of this width, or set model.caption.features",
            ));
        }
        if rows == 0 {
            return Err(Problem::new("has no rows", "write it again"));
        }
        if rows > max_length {
            return Err(Problem::too_long(rows, max_length));
        }
        let count = rows.saturating_mul(columns);
        if count.saturating_mul(size_of::<f32>()) > MOST_BYTES {
            let what = format!("has {rows} × {columns} numbers, which are too many");
            return Err(Problem::new(what, "keep fewer rows"));
        }
        let whole = count.checked_mul(self.number.size());
        if whole != Some(self.bytes.len()) {
            let (has, needs) = (self.bytes.len(), whole.unwrap_or(usize::MAX));
            let what =
                format!("has {has} bytes of numbers, not {needs}: it is truncated or damaged");
            return Err(Problem::new(what, "write it again"));
        }
        let numbers = self.bytes.chunks_exact(self.number.size());
        let values: Vec<f32> = numbers.map(|number| self.number.read(number)).collect();
        match values.iter().position(|value| !value.is_finite()) {
            Some(i) => Err(Problem::new(
                format!("row {} has a number that is not finite", i / columns),
                "rows are counted from 0; correct what wrote it",
            )),
            None => Ok(values),
        }
    }
}
