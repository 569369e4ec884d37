//! Packed rows to padded batches and back, with plain candle operations. Nothing else pads.

use attend_batch::Segments;
use candle_core::{Device, Result, Tensor};

/// Packed `[n, d]` to `(b, longest, d)`; padding repeats row 0 and must be masked.
pub(crate) fn pad(x: &Tensor, segments: &Segments) -> Result<Tensor> {
    let longest = segments.longest();
    let mut rows = vec![0u32; segments.count() * longest];
    for (index, range) in segments.ranges().enumerate() {
        for (place, row) in range.enumerate() {
            rows[index * longest + place] = row as u32;
        }
    }
    let rows = Tensor::new(rows, x.device())?;
    let padded = x.contiguous()?.index_select(&rows, 0)?;
    padded.reshape((segments.count(), longest, x.dim(1)?))
}

/// The inverse: `(b, longest, d)` to `[n, d]`.
pub(crate) fn unpad(x: &Tensor, segments: &Segments) -> Result<Tensor> {
    let (b, longest, d) = x.dims3()?;
    let rows = x.contiguous()?.reshape((b * longest, d))?;
    rows.index_select(&places(segments, longest, x.device())?, 0)
}

/// The indices of the packed rows among rows padded to `longest`.
fn places(segments: &Segments, longest: usize, device: &Device) -> Result<Tensor> {
    let lengths = segments.lengths().iter().enumerate();
    let places: Vec<u32> = lengths
        .flat_map(|(index, &length)| (0..length).map(move |p| (index * longest + p) as u32))
        .collect();
    Tensor::new(places, device)
}
