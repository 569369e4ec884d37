//! Ranks with a GPU each. What ranks exchange goes from GPU to GPU.

mod queue;

use std::sync::{Mutex, PoisonError};

use candle_core::cuda_backend::cudarc::driver::{CudaSlice, CudaView, DeviceRepr, ValidAsZeroBits};
use candle_core::cuda_backend::cudarc::nccl::{self, NcclType, group_end, group_start};
use candle_core::cuda_backend::{CudaDType, CudaStorage};
use candle_core::op::BackpropOp;
use candle_core::{CudaDevice, Device, Storage, Tensor, WithDType};

use crate::comm::{check_exchange, check_gather, check_root};
use crate::rendezvous::Meeting;
use crate::{Comm, Error, Result};
use queue::{Failure, Queue};

/// The ranks of a job with NCCL between their GPUs. [`connect`](crate::connect) makes it.
pub struct Nccl {
    rank: usize,
    size: usize,
    device: CudaDevice,
    queue: Queue,
    /// How the ranks have found each other, and what ends the job if one of them is lost. `None` after `finish`.
    session: Mutex<Option<Session>>,
}

/// How ranks find each other.
pub(crate) enum Session {
    #[cfg(feature = "mpi")]
    Mpi(crate::Mpi),
    Files(Meeting),
}

/// What NCCL does with the elements that are sent, and where it puts those that are received.
type Collective<T> =
    fn(&nccl::Comm, &CudaView<T>, &mut CudaSlice<T>) -> std::result::Result<(), Failure>;

/// A new name of a group of ranks, by which NCCL finds them.
pub(crate) fn new_id() -> Result<Vec<u8>> {
    let id = std::panic::catch_unwind(nccl::Id::new); // a panic if there is no NCCL
    let id = id.map_err(|_| queue::start("the library libnccl.so cannot be loaded"))?;
    let id = id.map_err(|error| queue::start(format!("{error:?}")))?;
    Ok(id.internal().iter().map(|&byte| byte as u8).collect())
}

impl Nccl {
    /// Connects the GPUs of ranks that have found each other. `id` is the first rank's [`new_id`].
    pub(crate) fn connect(
        device: &CudaDevice,
        (rank, size): (usize, usize),
        id: &[u8],
        session: Session,
    ) -> Result<Self> {
        Ok(Self {
            rank,
            size,
            device: device.clone(),
            queue: Queue::start(device.cuda_stream(), rank, size, id)?,
            session: Mutex::new(Some(session)),
        })
    }

    fn failed(&self, operation: &'static str) -> impl Fn(candle_core::Error) -> Error {
        let (rank, size) = (self.rank, self.size);
        move |error| Error::Failed {
            operation,
            rank,
            size,
            problem: error.to_string(),
        }
    }

    /// A tensor of `length` elements that NCCL makes of this one. The GPU computes it when it comes to it.
    fn collective<T>(
        &self,
        operation: &'static str,
        send: &Tensor,
        length: usize,
        collective: Collective<T>,
    ) -> Result<Tensor>
    where
        T: WithDType + CudaDType + DeviceRepr + NcclType + ValidAsZeroBits,
    {
        let device = self.device.clone();
        let send = send.contiguous().map_err(self.failed(operation))?;
        let call = move |comm: &nccl::Comm| {
            let (storage, layout) = send.storage_and_layout();
            let Storage::Cuda(storage) = &*storage else {
                return Err(Failure::from("the tensor is not on the GPU"));
            };
            let start = layout.start_offset();
            let all = storage.as_cuda_slice::<T>()?;
            let send = all.slice(start..start + layout.shape().elem_count());
            let mut received = device.alloc_zeros::<T>(length)?;
            collective(comm, &send, &mut received)?;
            let storage = CudaStorage::wrap_cuda_slice(received, device);
            let (storage, none) = (Storage::Cuda(storage), BackpropOp::none());
            Ok(Tensor::from_storage(storage, length, none, false))
        };
        let done = self.queue.call(call);
        done.map_err(|problem| Error::Failed {
            operation,
            rank: self.rank,
            size: self.size,
            problem,
        })
    }

    /// What all ranks send, equally many bytes each.
    fn gather_equal(&self, operation: &'static str, send: &[u8]) -> Result<Vec<u8>> {
        let failed = self.failed(operation);
        let device = Device::Cuda(self.device.clone());
        let tensor = Tensor::new(send, &device).map_err(&failed)?;
        let length = send.len() * self.size;
        let received = self.collective::<u8>(operation, &tensor, length, gather)?;
        received.to_vec1().map_err(failed)
    }
}

fn exchange(
    comm: &nccl::Comm,
    send: &CudaView<f32>,
    receive: &mut CudaSlice<f32>,
) -> std::result::Result<(), Failure> {
    let part = send.len() / comm.world_size();
    group_start()?;
    for peer in 0..comm.world_size() {
        let range = peer * part..(peer + 1) * part;
        comm.send(&send.slice(range.clone()), peer as i32)?;
        comm.recv(&mut receive.slice_mut(range), peer as i32)?;
    }
    group_end()?;
    Ok(())
}

fn gather<T: NcclType>(
    comm: &nccl::Comm,
    send: &CudaView<T>,
    receive: &mut CudaSlice<T>,
) -> std::result::Result<(), Failure> {
    comm.all_gather(send, receive)?;
    Ok(())
}

impl Comm for Nccl {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, send: &[f32], receive: &mut [f32]) -> Result<()> {
        check_exchange(self, send, receive)?;
        let failed = self.failed("exchange");
        let device = Device::Cuda(self.device.clone());
        let send = Tensor::new(send, &device).map_err(&failed)?;
        let received = self.exchange_tensor(&send)?.to_vec1().map_err(failed)?;
        receive.copy_from_slice(&received);
        Ok(())
    }

    fn gather(&self, send: &[f32], receive: &mut [f32]) -> Result<()> {
        check_gather(self, send, receive)?;
        let failed = self.failed("gather");
        let device = Device::Cuda(self.device.clone());
        let send = Tensor::new(send, &device).map_err(&failed)?;
        let received = self.gather_tensor(&send)?.to_vec1().map_err(failed)?;
        receive.copy_from_slice(&received);
        Ok(())
    }

    fn exchange_tensor(&self, send: &Tensor) -> Result<Tensor> {
        let length = send.elem_count();
        match length {
            0 => Ok(send.clone()),
            _ => self.collective::<f32>("exchange_tensor", send, length, exchange),
        }
    }

    fn gather_tensor(&self, send: &Tensor) -> Result<Tensor> {
        let length = send.elem_count() * self.size;
        match length {
            0 => Ok(send.clone()),
            _ => self.collective::<f32>("gather_tensor", send, length, gather),
        }
    }

    fn gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
        const OPERATION: &str = "gather_bytes";
        let lengths = self.gather_equal(OPERATION, &(send.len() as u64).to_le_bytes())?;
        let (lengths, _) = lengths.as_chunks::<8>();
        let lengths = lengths
            .iter()
            .map(|&bytes| u64::from_le_bytes(bytes) as usize);
        let longest = lengths.clone().max().unwrap_or(0);
        if longest == 0 {
            return Ok(vec![Vec::new(); self.size]);
        }
        let mut padded = send.to_vec();
        padded.resize(longest, 0);
        let all = self.gather_equal(OPERATION, &padded)?;
        let parts = all.chunks_exact(longest).zip(lengths);
        Ok(parts
            .map(|(part, length)| part[..length].to_vec())
            .collect())
    }

    fn broadcast(&self, bytes: &mut Vec<u8>, root: usize) -> Result<()> {
        check_root(self, root)?;
        let send: &[u8] = if self.rank == root { bytes } else { &[] };
        *bytes = self.gather_bytes(send)?.swap_remove(root);
        Ok(())
    }

    fn barrier(&self) -> Result<()> {
        self.gather_bytes(&[]).map(drop)
    }

    fn finish(&self) -> Result<()> {
        let session = self.session.lock();
        let session = session.unwrap_or_else(PoisonError::into_inner).take();
        match session {
            None => Ok(()),
            #[cfg(feature = "mpi")]
            Some(Session::Mpi(mpi)) => mpi.finish(),
            Some(Session::Files(meeting)) => {
                self.barrier()?;
                meeting.finish();
                Ok(())
            }
        }
    }
}
