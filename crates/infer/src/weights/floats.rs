use std::io::{self, Read, Take};

use half::{bf16, f16};
use safetensors::Dtype;

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 16;

/// The bytes of one number. Types of less than a byte count as one.
pub(super) fn bytes_of(dtype: Dtype) -> usize {
    dtype.bitsize().div_ceil(8)
}

/// All numbers of a reader, as 32-bit floats; `None` if they are no floats that are read.
pub(crate) fn read_floats(bytes: Take<impl Read>, dtype: Dtype) -> Option<io::Result<Vec<f32>>> {
    Some(match dtype {
        Dtype::F64 => numbers(bytes, |bytes| f64::from_le_bytes(bytes) as f32),
        Dtype::F32 => numbers(bytes, f32::from_le_bytes),
        Dtype::F16 => numbers(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()),
        Dtype::BF16 => numbers(bytes, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        _ => return None,
    })
}

fn numbers<const N: usize>(
    mut bytes: Take<impl Read>,
    number: impl Fn([u8; N]) -> f32,
) -> io::Result<Vec<f32>> {
    let mut values = Vec::with_capacity(bytes.limit() as usize / N);
    let mut chunk = vec![0; CHUNK.min(bytes.limit() as usize)];
    while bytes.limit() > 0 {
        let size = chunk.len().min(bytes.limit() as usize);
        bytes.read_exact(&mut chunk[..size])?;
        let numbers = chunk[..size].as_chunks::<N>().0.iter();
        values.extend(numbers.map(|bytes| number(*bytes)));
    }
    Ok(values)
}
