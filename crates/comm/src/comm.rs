use candle_core::Tensor;

use crate::{Error, Result};

/// [`Comm::sum`] sends pieces of about this many elements.
const BUCKET: usize = 1 << 20;

/// Processes that train one model together.
///
/// All ranks make the same calls in the same order, each from one thread at a time.
pub trait Comm: Send + Sync {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn size(&self) -> usize;

    /// Sends part r of `send`, which is `size()` parts of equal length, to rank r, and receives what each rank has for
    /// this one, in rank order. Both slices have the same length.
    fn exchange(&self, send: &[f32], receive: &mut [f32]) -> Result<()>;

    /// Receives what every rank sends, in rank order. All send equally many: `receive` is `size()` times as long as
    /// `send`.
    fn gather(&self, send: &[f32], receive: &mut [f32]) -> Result<()>;

    /// [`Comm::exchange`] of an f32 tensor of one dimension. What is received is on its device; it leaves the device
    /// only if it has to.
    fn exchange_tensor(&self, send: &Tensor) -> Result<Tensor> {
        let failed = |error| Error::tensor(self, "exchange_tensor", error);
        let send_values = send.to_vec1().map_err(failed)?;
        let mut receive = vec![0.0; send_values.len()];
        self.exchange(&send_values, &mut receive)?;
        Tensor::new(receive, send.device()).map_err(failed)
    }

    /// [`Comm::gather`] of such a tensor.
    fn gather_tensor(&self, send: &Tensor) -> Result<Tensor> {
        let failed = |error| Error::tensor(self, "gather_tensor", error);
        let send_values = send.to_vec1().map_err(failed)?;
        let mut receive = vec![0.0; send_values.len() * self.size()];
        self.gather(&send_values, &mut receive)?;
        Tensor::new(receive, send.device()).map_err(failed)
    }

    /// Receives what every rank sends, in rank order. Each may send another number of bytes.
    fn gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Replaces the bytes by those of rank `root`.
    fn broadcast(&self, bytes: &mut Vec<u8>, root: usize) -> Result<()>;

    /// Waits until all ranks have called it.
    fn barrier(&self) -> Result<()>;

    /// Ends the communication in good order, as the last call of a program that succeeded. A program that fails leaves
    /// it out, so that the launcher ends the other ranks.
    fn finish(&self) -> Result<()> {
        Ok(())
    }

    /// Whether this is rank 0.
    fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Whether there are no other ranks.
    fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// [`Comm::exchange`], and the sum of the parts received, in the order of ranks. It takes the place of the first.
    fn exchange_sum<'a>(&self, send: &[f32], receive: &'a mut [f32]) -> Result<&'a mut [f32]> {
        self.exchange(send, receive)?;
        let (sum, others) = receive.split_at_mut(send.len() / self.size());
        for other in others.chunks_exact(sum.len().max(1)) {
            for (sum, x) in sum.iter_mut().zip(other) {
                *sum += *x;
            }
        }
        Ok(sum)
    }

    /// Sums over ranks elementwise, in the order of ranks. All ranks have the same bits afterwards, whatever the MPI
    /// library and its algorithms. Nothing is done if there is one rank.
    ///
    /// The values go in pieces, so the memory that this takes does not grow with their number.
    fn sum(&self, values: &mut [f32]) -> Result<()> {
        let size = self.size();
        if size == 1 {
            return Ok(());
        }
        // A multiple of the ranks: only the last piece may need padding.
        let bucket = BUCKET.div_ceil(size) * size;
        let longest = values.len().min(bucket).next_multiple_of(size);
        let mut received = vec![0.0; longest];
        let mut padded = Vec::new();
        for piece in values.chunks_mut(bucket) {
            let part = piece.len().div_ceil(size);
            let received = &mut received[..part * size];
            if piece.len() == received.len() {
                let sum = self.exchange_sum(piece, received)?;
                self.gather(sum, piece)?;
            } else {
                padded.clear();
                padded.extend_from_slice(piece);
                padded.resize(part * size, 0.0);
                let sum = self.exchange_sum(&padded, received)?;
                self.gather(sum, &mut padded)?;
                piece.copy_from_slice(&padded[..piece.len()]);
            }
        }
        Ok(())
    }

    /// The same for a few numbers, such as a loss.
    fn sum_f64(&self, values: &mut [f64]) -> Result<()> {
        if self.is_alone() {
            return Ok(());
        }
        let send: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        for (from, bytes) in self.gather_bytes(&send)?.iter().enumerate() {
            let (numbers, _) = bytes.as_chunks::<8>();
            if bytes.len() != send.len() {
                let problem = format!(
                    "{} numbers here, but {} on rank {from}",
                    values.len(),
                    numbers.len()
                );
                return Err(Error::lengths(self, "sum_f64", problem));
            }
            for (sum, &number) in values.iter_mut().zip(numbers) {
                let number = f64::from_le_bytes(number);
                *sum = if from == 0 { number } else { *sum + number };
            }
        }
        Ok(())
    }
}

/// Checks the slices of [`Comm::exchange`]. Returns the length of a part.
pub(crate) fn check_exchange(comm: &impl Comm, send: &[f32], receive: &[f32]) -> Result<usize> {
    let (size, length) = (comm.size(), send.len());
    if length != receive.len() {
        let problem = format!("{length} values to send, but room for {}", receive.len());
        return Err(Error::lengths(comm, "exchange", problem));
    }
    if !length.is_multiple_of(size) {
        let problem = format!("{length} values do not divide into {size} equal parts");
        return Err(Error::lengths(comm, "exchange", problem));
    }
    Ok(length / size)
}

/// Checks the slices of [`Comm::gather`].
pub(crate) fn check_gather(comm: &impl Comm, send: &[f32], receive: &[f32]) -> Result<()> {
    let (size, length) = (comm.size(), send.len());
    if Some(receive.len()) != length.checked_mul(size) {
        let room = receive.len();
        let problem = format!("{size} times {length} values to receive, but room for {room}");
        return Err(Error::lengths(comm, "gather", problem));
    }
    Ok(())
}

/// Checks the root of [`Comm::broadcast`].
pub(crate) fn check_root(comm: &impl Comm, root: usize) -> Result<()> {
    if root >= comm.size() {
        return Err(Error::lengths(
            comm,
            "broadcast",
            format!("there is no rank {root}"),
        ));
    }
    Ok(())
}
