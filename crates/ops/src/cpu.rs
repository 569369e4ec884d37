//! Candle tensors as plain slices, on CPU.

use std::ops::{Deref, Range};
use std::sync::Mutex;

use candle_core::{CpuStorage, InplaceOp1, Layout, Result, Storage, Tensor, bail};

/// The elements of a contiguous f32 tensor, inside an operation's `cpu_fwd`.
pub(crate) fn slice<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<f32>()?[start..end]),
        None => bail!("a fused operation needs contiguous input, not {layout:?}"),
    }
}

/// The elements of a contiguous f32 CPU tensor, outside an operation's `cpu_fwd`.
pub(crate) struct View<'a> {
    storage: Box<dyn Deref<Target = Storage> + 'a>,
    start: usize,
    end: usize,
}

pub(crate) fn view(tensor: &Tensor) -> Result<View<'_>> {
    let (storage, layout) = tensor.storage_and_layout();
    let Some((start, end)) = layout.contiguous_offsets() else {
        bail!("a fused operation needs contiguous input, not {layout:?}")
    };
    if !matches!(&*storage, Storage::Cpu(CpuStorage::F32(_))) {
        bail!("a fused operation needs an f32 tensor on the CPU");
    }
    Ok(View {
        storage: Box::new(storage),
        start,
        end,
    })
}

impl Deref for View<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &**self.storage {
            Storage::Cpu(CpuStorage::F32(values)) => &values[self.start..self.end],
            _ => unreachable!("checked when the view was made"),
        }
    }
}

/// Changes a contiguous f32 CPU tensor in place.
pub(crate) fn edit<R>(tensor: &Tensor, change: impl FnOnce(&mut [f32]) -> R) -> Result<R> {
    let edit = Edit(Mutex::new((Some(change), None)));
    tensor.inplace_op1(&edit)?;
    let (_, result) = edit.0.into_inner().unwrap_or_else(|e| e.into_inner());
    Ok(result.expect("candle ran the edit"))
}

struct Edit<F, R>(Mutex<(Option<F>, Option<R>)>);

impl<R, F: FnOnce(&mut [f32]) -> R> InplaceOp1 for Edit<F, R> {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let Some((start, end)) = layout.contiguous_offsets() else {
            bail!("only contiguous tensors can be edited in place")
        };
        let CpuStorage::F32(values) = storage else {
            bail!("only f32 tensors can be edited in place")
        };
        let mut state = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(change) = state.0.take() {
            state.1 = Some(change(&mut values[start..end]));
        }
        Ok(())
    }
}

/// Copies elements of a contiguous f32 tensor on any device, from `start` on.
pub(crate) fn read(tensor: &Tensor, start: usize, values: &mut [f32]) -> Result<()> {
    if tensor.device().is_cpu() {
        values.copy_from_slice(&view(tensor)?[start..start + values.len()]);
    } else {
        let here = part(tensor, start..start + values.len())?;
        values.copy_from_slice(&here.to_vec1::<f32>()?);
    }
    Ok(())
}

/// Replaces elements of a contiguous f32 tensor on any device, from `start` on.
pub(crate) fn write(tensor: &Tensor, start: usize, values: &[f32]) -> Result<()> {
    if tensor.device().is_cpu() {
        let copy = |all: &mut [f32]| all[start..start + values.len()].copy_from_slice(values);
        return edit(tensor, copy);
    }
    set_part(
        tensor,
        start,
        &Tensor::from_slice(values, values.len(), tensor.device())?,
    )
}

/// Elements of a contiguous tensor on any device, as one of one dimension.
pub(crate) fn part(tensor: &Tensor, range: Range<usize>) -> Result<Tensor> {
    tensor.flatten_all()?.narrow(0, range.start, range.len())
}

/// Replaces elements of a contiguous tensor on any device, from `start` on, by one of one dimension.
pub(crate) fn set_part(tensor: &Tensor, start: usize, part: &Tensor) -> Result<()> {
    match part.elem_count() {
        0 => Ok(()),
        _ => tensor
            .flatten_all()?
            .slice_set(&part.contiguous()?, 0, start),
    }
}

/// A tensor of these values with the shape and device of another: the gradient of that tensor.
pub(crate) fn like(values: Vec<f32>, tensor: &Tensor) -> Result<Tensor> {
    Tensor::from_vec(values, tensor.shape(), tensor.device())
}
