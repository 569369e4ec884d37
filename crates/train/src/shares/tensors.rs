//! On the device that computes.

use attend_comm::Comm;
use attend_ops::Param;
use candle_core::Tensor;

use super::{Shares, width};
use crate::Result;

/// [`Shares::sum_gradients`].
pub(super) fn sum_gradients(shares: &Shares, params: &[&Param], comm: &dyn Comm) -> Result<()> {
    for bucket in &shares.buckets {
        let width = width(bucket);
        let pieces = (0..shares.ranks).flat_map(|rank| bucket.iter().map(move |it| (rank, it)));
        let parts = pieces.map(|(rank, piece)| {
            let here = piece.of(rank, shares.ranks);
            let missing = piece.range.len() - here.len();
            let part = params[piece.param].gradient_part(here)?;
            Ok(part.pad_with_zeros(0, 0, missing)?)
        });
        let send = cat(parts.collect::<Result<_>>()?)?;
        let received = comm.exchange_tensor(&send)?;
        let mut sum = received.narrow(0, 0, width)?;
        for rank in 1..shares.ranks {
            sum = (sum + received.narrow(0, rank * width, width)?)?;
        }
        let mut start = 0;
        for piece in bucket {
            let here = piece.of(shares.rank, shares.ranks);
            let part = sum.narrow(0, start, here.len())?;
            params[piece.param].set_gradient_part(here.start, &part)?;
            start += piece.range.len();
        }
    }
    Ok(())
}

/// [`Shares::gather_values`].
pub(super) fn gather_values(shares: &Shares, params: &[&Param], comm: &dyn Comm) -> Result<()> {
    for bucket in &shares.buckets {
        let width = width(bucket);
        let parts = bucket.iter().map(|piece| {
            let here = piece.of(shares.rank, shares.ranks);
            let missing = piece.range.len() - here.len();
            let part = params[piece.param].value_part(here)?;
            Ok(part.pad_with_zeros(0, 0, missing)?)
        });
        let received = comm.gather_tensor(&cat(parts.collect::<Result<_>>()?)?)?;
        for rank in (0..shares.ranks).filter(|&rank| rank != shares.rank) {
            let mut start = rank * width;
            for piece in bucket {
                let here = piece.of(rank, shares.ranks);
                let part = received.narrow(0, start, here.len())?;
                params[piece.param].set_value_part(here.start, &part)?;
                start += piece.range.len();
            }
        }
    }
    Ok(())
}

/// One tensor of one dimension.
fn cat(parts: Vec<Tensor>) -> Result<Tensor> {
    Ok(Tensor::cat(&parts, 0)?)
}
