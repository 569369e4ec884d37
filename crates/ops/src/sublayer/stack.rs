//! A stack of sub-layers as a single operation on CPU.

use std::sync::Mutex;

use attend_batch::{RowNumbers, Segments};
use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::{AttendedStates, Body, DropoutSite, FeedForward, MultiHead, NormPlacement, Sublayer};
use crate::attention::{Inputs, Mask, Plan, Softmax, fused as attention};
use crate::buffer::Buffer;
use crate::cpu::{self, slice, view};
use crate::gemm::Write;
use crate::linear::{self, InputGradient};
use crate::norm::{self, Branch, Saved, add_rows, dropped};
use crate::pass::Pass;
use crate::random::RowDropout;
use crate::threads::stay_awake;
use crate::weight::recorded;

pub(super) fn fused<'a>(
    x: &Tensor,
    sentences: &Segments,
    memory: Option<AttendedStates>,
    sublayers: impl IntoIterator<Item = &'a Sublayer>,
    pass: &Pass,
) -> Result<Tensor> {
    let (n, d) = x.dims2()?;
    let memory_rows = memory.map(|memory| memory.states.dim(0)).transpose()?;
    if n != sentences.rows() || memory_rows != memory.map(|memory| memory.segments.rows()) {
        bail!("a stack of {n} rows does not match the lengths of its sentences");
    }
    let stack = Stack {
        d,
        sublayers: sublayers.into_iter().cloned().collect(),
        sentences: sentences.clone(),
        numbers: if pass.trains() {
            sentences.numbers()
        } else {
            RowNumbers::NONE
        },
        memory: memory.map(|memory| memory.segments.clone()),
        pass: *pass,
        kept: Mutex::new(None),
    };
    let of_memory = memory.is_some_and(|memory| memory.states.track_op());
    let x = if pass.trains() && !of_memory {
        &recorded(x, stack.sublayers.iter().flat_map(Sublayer::weights))?
    } else {
        x
    };
    match (memory, pass.trains()) {
        (None, true) => x.apply_op1(stack),
        (None, false) => x.apply_op1_no_bwd(&stack),
        (Some(memory), true) => x.apply_op2(memory.states, stack),
        (Some(memory), false) => x.apply_op2_no_bwd(memory.states, &stack),
    }
}

struct Stack {
    /// The width of the rows.
    d: usize,
    sublayers: Vec<Sublayer>,
    sentences: Segments,
    /// Those of the rows, by which dropout draws.
    numbers: RowNumbers,
    /// The sentences of the memory.
    memory: Option<Segments>,
    pass: Pass,
    /// What the forward pass keeps of each sub-layer. The backward pass takes it, and frees the buffers of a
    /// sub-layer as soon as it is done with it.
    kept: Mutex<Option<Vec<Kept>>>,
}

/// What the backward pass needs of one sub-layer.
struct Kept {
    /// The input. `None` for the first sub-layer, whose input is the stack's, and with pre-norm.
    x: Option<Buffer>,
    /// The normalised input, with pre-norm.
    normed: Option<Buffer>,
    norm: Saved,
    body: KeptBody,
}

enum KeptBody {
    Itself {
        qkv: Buffer,
        context: Buffer,
        softmaxes: Vec<Softmax>,
    },
    Memory {
        q: Buffer,
        kv: Buffer,
        context: Buffer,
        softmaxes: Vec<Softmax>,
    },
    FeedForward {
        inner: Buffer,
        before: Option<Buffer>,
    },
}

/// The gradients that are passed between sub-layers.
struct Gradients {
    x: Buffer,
    /// Of the memory. `None` until the backward pass of a sub-layer that attends to it.
    memory: Option<Buffer>,
}

impl CustomOp1 for Stack {
    fn name(&self) -> &'static str {
        "stack"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let y = self.forward(slice(x, layout)?, &[])?;
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let gradients = self.backward(&view(x)?, &[], &view(dy)?)?;
        Ok(Some(cpu::like(gradients.x.to_vec(), x)?))
    }
}

impl CustomOp2 for Stack {
    fn name(&self) -> &'static str {
        "stack with memory"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        memory: &CpuStorage,
        memory_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let memory = slice(memory, memory_layout)?;
        let y = self.forward(slice(x, x_layout)?, memory)?;
        Ok((CpuStorage::F32(y), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        memory: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let gradients = self.backward(&view(x)?, &view(memory)?, &view(dy)?)?;
        let of_memory = match gradients.memory {
            Some(gradient) => cpu::like(gradient.to_vec(), memory)?,
            None => memory.zeros_like()?,
        };
        let of_x = cpu::like(gradients.x.to_vec(), x)?;
        Ok((Some(of_x), Some(of_memory)))
    }
}

impl Stack {
    fn forward(&self, x: &[f32], memory: &[f32]) -> Result<Vec<f32>> {
        let mut kept = Vec::new();
        let mut last: Option<Buffer> = None;
        for sublayer in &self.sublayers {
            let input = last.as_deref().unwrap_or(x);
            let (y, mut keep) = self.forward_one(sublayer, input, memory)?;
            let x = last.replace(y);
            if keep.normed.is_none() {
                keep.x = x;
            }
            if self.pass.trains() {
                kept.push(keep);
            }
        }
        if self.pass.trains() {
            *self.kept.lock().unwrap_or_else(|e| e.into_inner()) = Some(kept);
        }
        Ok(last.as_deref().unwrap_or(x).to_vec())
    }

    fn forward_one(
        &self,
        sublayer: &Sublayer,
        x: &[f32],
        memory: &[f32],
    ) -> Result<(Buffer, Kept)> {
        stay_awake();
        let Sublayer { residual, body } = sublayer;
        let dropout = &self.dropout(&residual.drop);
        let (y, normed, norm, body) = match residual.placement {
            NormPlacement::Post => {
                let (z, body) = self.forward_body(body, x, memory)?;
                let mut y = Buffer::any(x.len());
                let z = Branch {
                    values: &z,
                    dropout,
                };
                let norm = norm::forward(x, Some(z), &residual.norm, &mut y)?;
                (y, None, norm, body)
            }
            NormPlacement::Pre => {
                let mut normed = Buffer::any(x.len());
                let norm = norm::forward(x, None, &residual.norm, &mut normed)?;
                let (z, body) = self.forward_body(body, &normed, memory)?;
                let mut y = Buffer::copy_of(x);
                add_rows(&mut y, &z, self.d, dropout);
                (y, Some(normed), norm, body)
            }
        };
        let x = None;
        Ok((
            y,
            Kept {
                x,
                normed,
                norm,
                body,
            },
        ))
    }

    fn forward_body(&self, body: &Body, x: &[f32], memory: &[f32]) -> Result<(Buffer, KeptBody)> {
        let d = self.d;
        let affine = |x: &[f32], layers: &[&linear::Linear]| -> Result<Buffer> {
            let mut y = Buffer::any(x.len() / d * linear::outputs(layers)?);
            linear::forward(x, layers, None, &RowDropout::NONE, &mut y)?;
            Ok(y)
        };
        match body {
            Body::Itself(heads, mask) => {
                let plan = self.plan(heads, d, *mask, &self.sentences);
                plan.check(x.len() / d, x.len() / d)?;
                let qkv = affine(x, &[&heads.query, &heads.key, &heads.value])?;
                let mut context = Buffer::any(x.len());
                let softmaxes = attention::forward(&plan, Inputs::together(&qkv), &mut context);
                let z = affine(&context, &[&heads.out])?;
                let kept = KeptBody::Itself {
                    qkv,
                    context,
                    softmaxes,
                };
                Ok((z, kept))
            }
            Body::Memory(heads) => {
                let plan = self.plan(heads, d, Mask::Full, self.memory()?);
                plan.check(x.len() / d, memory.len() / d)?;
                let q = affine(x, &[&heads.query])?;
                let kv = affine(memory, &[&heads.key, &heads.value])?;
                let mut context = Buffer::any(x.len());
                let softmaxes = attention::forward(&plan, Inputs::apart(&q, &kv), &mut context);
                let z = affine(&context, &[&heads.out])?;
                let kept = KeptBody::Memory {
                    q,
                    kv,
                    context,
                    softmaxes,
                };
                Ok((z, kept))
            }
            Body::FeedForward(network) => {
                let FeedForward {
                    inner: layer,
                    outer,
                    activation,
                    drop,
                } = network;
                let mut inner = Buffer::any(x.len() / d * linear::outputs(&[layer])?);
                let dropout = &self.dropout(drop);
                let before = linear::forward(x, &[layer], Some(*activation), dropout, &mut inner)?;
                let mut z = Buffer::any(x.len());
                linear::forward(&inner, &[outer], None, &RowDropout::NONE, &mut z)?;
                Ok((z, KeptBody::FeedForward { inner, before }))
            }
        }
    }

    fn backward(&self, x: &[f32], memory: &[f32], dy: &[f32]) -> Result<Gradients> {
        let Some(mut kept) = self.kept.lock().unwrap_or_else(|e| e.into_inner()).take() else {
            bail!("stack: the backward pass runs once, after a forward pass in training")
        };
        let mut gradients = Gradients {
            x: Buffer::copy_of(dy),
            memory: None,
        };
        for sublayer in self.sublayers.iter().rev() {
            let Some(kept) = kept.pop() else { break };
            gradients = self.backward_one(sublayer, kept, x, memory, gradients)?;
        }
        Ok(gradients)
    }

    fn backward_one(
        &self,
        Sublayer { residual, body }: &Sublayer,
        kept: Kept,
        x: &[f32],
        memory: &[f32],
        gradients: Gradients,
    ) -> Result<Gradients> {
        stay_awake();
        let dropout = &self.dropout(&residual.drop);
        let x = kept.x.as_deref().unwrap_or(x);
        let (d, mut dy) = (self.d, gradients.x);
        let mut of_memory = gradients.memory;
        match &kept.normed {
            None => {
                norm::backward(&kept.norm, &residual.norm, &mut dy)?;
                let dz = dropped(&dy, d, dropout);
                let dx = InputGradient {
                    values: &mut dy,
                    write: Write::Add,
                };
                self.backward_body(body, kept.body, x, memory, dz, dx, &mut of_memory)?;
            }
            Some(normed) => {
                let dz = dropped(&dy, d, dropout);
                let mut ds = Buffer::any(normed.len());
                let dx = InputGradient::over(&mut ds);
                self.backward_body(body, kept.body, normed, memory, dz, dx, &mut of_memory)?;
                norm::backward(&kept.norm, &residual.norm, &mut ds)?;
                add_rows(&mut dy, &ds, d, &RowDropout::NONE);
            }
        }
        Ok(Gradients {
            x: dy,
            memory: of_memory,
        })
    }

    #[expect(clippy::too_many_arguments, reason = "each is another tensor")]
    fn backward_body(
        &self,
        body: &Body,
        kept: KeptBody,
        x: &[f32],
        memory: &[f32],
        dz: Buffer,
        dx: InputGradient,
        of_memory: &mut Option<Buffer>,
    ) -> Result<()> {
        let d = self.d;
        match (body, kept) {
            (
                Body::Itself(heads, mask),
                KeptBody::Itself {
                    qkv,
                    context,
                    softmaxes,
                },
            ) => {
                let mut dcontext = Buffer::any(context.len());
                linear::backward(
                    &context,
                    &[&heads.out],
                    &dz,
                    InputGradient::over(&mut dcontext),
                )?;
                let plan = self.plan(heads, d, *mask, &self.sentences);
                let dqkv = attention::backward_together(&plan, &qkv, &softmaxes, &dcontext);
                linear::backward(x, &[&heads.query, &heads.key, &heads.value], &dqkv, dx)
            }
            (
                Body::Memory(heads),
                KeptBody::Memory {
                    q,
                    kv,
                    context,
                    softmaxes,
                },
            ) => {
                let mut dcontext = Buffer::any(context.len());
                linear::backward(
                    &context,
                    &[&heads.out],
                    &dz,
                    InputGradient::over(&mut dcontext),
                )?;
                let plan = self.plan(heads, d, Mask::Full, self.memory()?);
                let (dq, dkv) = attention::backward_apart(&plan, &q, &kv, &softmaxes, &dcontext);
                let write = Write::first(of_memory.is_none());
                let gradient = of_memory.get_or_insert_with(|| Buffer::any(memory.len()));
                let to_memory = [&heads.key, &heads.value];
                linear::backward(
                    memory,
                    &to_memory,
                    &dkv,
                    InputGradient {
                        values: gradient,
                        write,
                    },
                )?;
                linear::backward(x, &[&heads.query], &dq, dx)
            }
            (Body::FeedForward(network), KeptBody::FeedForward { inner, before }) => {
                let width = linear::outputs(&[&network.inner])?;
                let mut dinner = Buffer::any(inner.len());
                linear::backward(
                    &inner,
                    &[&network.outer],
                    &dz,
                    InputGradient::over(&mut dinner),
                )?;
                let kept = before.as_deref().unwrap_or(&inner);
                let dropout = &self.dropout(&network.drop);
                linear::before_activation(&mut dinner, kept, width, network.activation, dropout);
                linear::backward(x, &[&network.inner], &dinner, dx)
            }
            _ => unreachable!("a sub-layer keeps what its own body needs"),
        }
    }

    fn dropout(&self, drop: &DropoutSite) -> RowDropout {
        drop.of(&self.pass).of_rows(self.numbers.clone())
    }

    fn memory(&self) -> Result<&Segments> {
        match &self.memory {
            Some(segments) => Ok(segments),
            None => bail!("a stack attends to a memory, but none is given"),
        }
    }

    fn plan(&self, heads: &MultiHead, d: usize, mask: Mask, keys: &Segments) -> Plan {
        Plan {
            heads: heads.heads,
            d,
            queries: self.sentences.clone(),
            keys: keys.clone(),
            mask,
            dropout: heads.drop.of(&self.pass),
        }
    }
}
