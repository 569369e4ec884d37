//! Through the memory of the host.

use attend_comm::Comm;
use attend_ops::Param;

use super::{Piece, Shares, width};
use crate::Result;

/// [`Shares::sum_gradients`].
pub(super) fn sum_gradients(shares: &Shares, params: &[&Param], comm: &dyn Comm) -> Result<()> {
    let (mut send, mut receive) = (Vec::new(), Vec::new());
    for bucket in &shares.buckets {
        let width = width(bucket);
        send.clear();
        send.resize(width * shares.ranks, 0.0);
        receive.resize(send.len(), 0.0);
        for (rank, part) in send.chunks_exact_mut(width.max(1)).enumerate() {
            for (piece, values) in split(bucket, part) {
                let here = piece.of(rank, shares.ranks);
                params[piece.param].read_gradient(here.start, &mut values[..here.len()])?;
            }
        }
        let sum = comm.exchange_sum(&send, &mut receive)?;
        for (piece, values) in split(bucket, sum) {
            let here = piece.of(shares.rank, shares.ranks);
            params[piece.param].write_gradient(here.start, &values[..here.len()])?;
        }
    }
    Ok(())
}

/// [`Shares::gather_values`].
pub(super) fn gather_values(shares: &Shares, params: &[&Param], comm: &dyn Comm) -> Result<()> {
    let (mut send, mut receive) = (Vec::new(), Vec::new());
    for bucket in &shares.buckets {
        let width = width(bucket);
        send.clear();
        send.resize(width, 0.0);
        receive.resize(width * shares.ranks, 0.0);
        for (piece, values) in split(bucket, &mut send) {
            let here = piece.of(shares.rank, shares.ranks);
            params[piece.param].read_value(here.start, &mut values[..here.len()])?;
        }
        comm.gather(&send, &mut receive)?;
        let parts = receive.chunks_exact_mut(width.max(1)).enumerate();
        for (rank, part) in parts.filter(|&(rank, _)| rank != shares.rank) {
            for (piece, values) in split(bucket, part) {
                let here = piece.of(rank, shares.ranks);
                params[piece.param].write_value(here.start, &values[..here.len()])?;
            }
        }
    }
    Ok(())
}

/// The values of one rank in a bucket, piece by piece.
fn split<'a>(
    bucket: &'a [Piece],
    mut values: &'a mut [f32],
) -> impl Iterator<Item = (&'a Piece, &'a mut [f32])> {
    bucket.iter().map(move |piece| {
        let (here, rest) = std::mem::take(&mut values).split_at_mut(piece.range.len());
        values = rest;
        (piece, here)
    })
}
