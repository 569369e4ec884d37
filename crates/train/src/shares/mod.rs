//! Which part of every parameter each rank updates, and how gradients and values get there and back: as slices, or as
//! tensors that stay on their device.

mod slices;
mod tensors;

use std::ops::Range;

use attend_comm::Comm;
use attend_model::Kernels;
use attend_ops::Param;

use crate::Result;

/// Every parameter is cut into as many pieces of equal length as there are ranks (the last ones may be shorter). A rank
/// sums the gradients of its pieces, holds their moments and updates them (ZeRO-1, Rajbhandari et al. 2020).
/// What is sent together is a bucket, so that the buffers are small.
pub(crate) struct Shares {
    rank: usize,
    ranks: usize,
    buckets: Vec<Vec<Piece>>,
    kernels: Kernels,
}

/// A range of each rank's piece of a parameter.
struct Piece {
    /// The index of the parameter.
    param: usize,
    /// Elements of the parameter.
    len: usize,
    /// Relative to the start of a rank's piece.
    range: Range<usize>,
}

/// The elements that a bucket has at most, of all ranks together.
const BUCKET: usize = 1 << 20;
/// Of a rank at least, whatever the number of ranks: short messages take as long as longer ones.
const MESSAGE: usize = 1 << 14;

impl Shares {
    /// For parameters of these lengths. Those without one are not shared.
    pub(crate) fn new(
        lengths: impl IntoIterator<Item = Option<usize>>,
        kernels: Kernels,
        comm: &dyn Comm,
    ) -> Self {
        let ranks = comm.size();
        let room = (BUCKET / ranks).max(MESSAGE);
        let mut buckets = vec![Vec::new()];
        let mut load = 0;
        for (param, len) in lengths.into_iter().enumerate() {
            let piece = len.map_or(0, |len| len.div_ceil(ranks));
            let mut start = 0;
            while let (Some(len), true) = (len, start < piece) {
                if load == room {
                    buckets.push(Vec::new());
                    load = 0;
                }
                let end = piece.min(start + room - load);
                load += end - start;
                let range = start..end;
                buckets
                    .last_mut()
                    .expect("one at least")
                    .push(Piece { param, len, range });
                start = end;
            }
        }
        buckets.retain(|bucket| !bucket.is_empty());
        Self {
            rank: comm.rank(),
            ranks,
            buckets,
            kernels,
        }
    }

    /// The elements of a parameter of this length that belong to this rank.
    pub(crate) fn own(&self, len: usize) -> Range<usize> {
        let piece = len.div_ceil(self.ranks);
        let at = |rank: usize| (rank * piece).min(len);
        at(self.rank)..at(self.rank + 1)
    }

    /// All elements of a parameter of this length, of which every rank has its own.
    pub(crate) fn whole(&self, own: &[f32], len: usize, comm: &dyn Comm) -> Result<Vec<f32>> {
        let piece = len.div_ceil(self.ranks);
        let mut send = own.to_vec();
        send.resize(piece, 0.0);
        let mut whole = vec![0.0; piece * self.ranks];
        comm.gather(&send, &mut whole)?;
        whole.truncate(len);
        Ok(whole)
    }

    /// Sums the gradients over all ranks. Each rank has the sum of its own elements only.
    pub(crate) fn sum_gradients<'a>(
        &self,
        params: impl Iterator<Item = &'a Param>,
        comm: &dyn Comm,
    ) -> Result<()> {
        let params: Vec<&Param> = params.collect();
        // Before anything is written to a part of a buffer, of which the rest would count: it has old values.
        params.iter().try_for_each(|param| param.add_zero())?;
        match self.kernels {
            Kernels::Fused => slices::sum_gradients(self, &params, comm),
            Kernels::Composed => tensors::sum_gradients(self, &params, comm),
        }
    }

    /// Gives every rank the values that the others have updated.
    pub(crate) fn gather_values<'a>(
        &self,
        params: impl Iterator<Item = &'a Param>,
        comm: &dyn Comm,
    ) -> Result<()> {
        let params: Vec<&Param> = params.collect();
        match self.kernels {
            Kernels::Fused => slices::gather_values(self, &params, comm),
            Kernels::Composed => tensors::gather_values(self, &params, comm),
        }
    }
}

impl Piece {
    /// The elements of the parameter that are this range of a rank's piece. The last pieces may lack some.
    fn of(&self, rank: usize, ranks: usize) -> Range<usize> {
        let piece = self.len.div_ceil(ranks);
        let at = |offset: usize| (rank * piece + offset).min(self.len);
        at(self.range.start)..at(self.range.end)
    }
}

/// The values of one rank in a bucket.
fn width(bucket: &[Piece]) -> usize {
    bucket.iter().map(|piece| piece.range.len()).sum()
}

#[cfg(test)]
mod tests {
    use attend_comm::Threads;
    use candle_core::{Device, Tensor};

    use super::*;

    /// Runs the same on every rank.
    fn on_ranks<T: Send>(ranks: usize, run: impl Fn(&dyn Comm) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let threads = Threads::of(ranks).into_iter();
            let threads: Vec<_> = threads
                .map(|comm| {
                    scope.spawn(|| {
                        let comm = comm;
                        run(&comm)
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        })
    }

    fn params(lengths: &[usize]) -> Vec<Param> {
        let param = |(i, &len): (usize, &usize)| {
            let zeros = Tensor::zeros(len, candle_core::DType::F32, &Device::Cpu).unwrap();
            Param::new(format!("{i}"), &zeros).unwrap()
        };
        lengths.iter().enumerate().map(param).collect()
    }

    #[test]
    fn each_rank_sums_its_elements_and_all_get_what_each_updates() {
        let lengths = [1, 5, 3_000_000, 7, 2];
        let all_kernels = (1..=4).flat_map(|ranks| Kernels::ALL.map(|kernels| (ranks, kernels)));
        for (ranks, kernels) in all_kernels {
            on_ranks(ranks, |comm| {
                let params = params(&lengths);
                let number =
                    |rank: usize, param: usize, i: usize| (rank * 7 + param + i % 13) as f32;
                for (p, param) in params.iter().enumerate() {
                    let gradient = (0..lengths[p]).map(|i| number(comm.rank(), p, i));
                    param
                        .write_gradient(0, &gradient.collect::<Vec<_>>())
                        .unwrap();
                    // A rank without sentences: what it had before does not count.
                    if comm.size() > 1 && comm.rank() + 1 == comm.size() {
                        param.clear();
                    }
                }
                let shares = Shares::new(lengths.map(Some), kernels, comm);
                shares.sum_gradients(params.iter(), comm).unwrap();
                for (p, param) in params.iter().enumerate() {
                    let own = shares.own(lengths[p]);
                    let mut sum = vec![0.0; own.len()];
                    param.read_gradient(own.start, &mut sum).unwrap();
                    for (sum, i) in sum.iter().zip(own.clone()) {
                        let all = 0..(comm.size() - 1).max(1);
                        let all = all.map(|rank| number(rank, p, i));
                        assert_eq!(*sum, all.sum::<f32>());
                    }
                    let new: Vec<f32> = own.clone().map(|i| i as f32).collect();
                    param.write_value(own.start, &new).unwrap();
                }
                shares.gather_values(params.iter(), comm).unwrap();
                for param in &params {
                    let values = param.value().to_vec1::<f32>().unwrap();
                    assert!(values.iter().enumerate().all(|(i, &x)| x == i as f32));
                }
            });
        }
    }
}
