//! All steps of all sentences as one operation, with its backward pass.

use std::sync::Mutex;

use attend_batch::Segments;
use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, Layout as Strides, Result, Shape, Tensor, bail,
};
use rayon::prelude::*;

use super::super::Direction;
use super::super::steps::{Group, Steps};
use super::backward::{Back, Kept};
use super::forward::{Ahead, PackedLayer, Shares, SourceSlices};
use super::gradients::{Columns, Made, add_rows};
use super::layout::Layout;
use super::{SourceTape, TapeLayer, TapeWeights, Tapes};
use crate::buffer::Buffer;
use crate::cpu::{self, slice, view};
use crate::pass::Pass;
use crate::profile::{self, Part};
use crate::weight::recorded;

/// Its inputs are x `[n, X]` and, flat, the keys and then the values of the source. Its output is flat: the states
/// `[n, 2h]`, then with shallow fusion the contexts `[n, h]`.
pub(super) struct Operation {
    layer: TapeLayer,
    layout: Layout,
    steps: Steps,
    /// The source's sentences.
    source: Option<Segments>,
    kept: Mutex<Option<Forward>>,
}

/// What the forward pass made besides its output.
struct Forward {
    /// `[n, h]`
    keys: Buffer,
    /// `[n, K]`
    kept: Buffer,
    /// `[n, l]`
    own: Buffer,
    /// `[n, s]`
    read: Buffer,
}

impl Operation {
    pub(super) fn run(
        input: &Tensor,
        layer: &TapeLayer,
        layout: Layout,
        sentences: &Segments,
        source: Option<&SourceTape>,
        pass: &Pass,
    ) -> Result<Tapes> {
        let op = Self {
            layer: layer.clone(),
            layout,
            steps: Steps::new(sentences, Direction::Forward),
            source: source.map(|source| source.segments.clone()),
            kept: Mutex::new(None),
        };
        let flat = source.map(|source| {
            Tensor::cat(
                &[source.keys.flatten_all()?, source.values.flatten_all()?],
                0,
            )
        });
        let flat = flat.transpose()?;
        let (output, weights) = if pass.trains() {
            let x = recorded(&input.contiguous()?, layer.weights())?;
            let output = match &flat {
                None => x.apply_op1(op)?,
                Some(flat) => x.apply_op2(flat, op)?,
            };
            (output, None)
        } else {
            let input = input.contiguous()?;
            let flat = flat.as_ref().map(view).transpose()?;
            let (values, forward) = op.forward(&view(&input)?, flat.as_deref())?;
            let count = values.len();
            let output = Tensor::from_vec(values, count, input.device())?;
            (output, Some(op.weights(forward, &input)?))
        };
        let (n, h) = (sentences.rows(), layout.h);
        let part = |first: usize, width: usize| {
            output.narrow(0, first * n, width * n)?.reshape((n, width))
        };
        Ok(Tapes {
            states: part(0, 2 * h)?,
            context: match layout.context() {
                0 => None,
                width => Some(part(2 * h, width)?),
            },
            weights,
        })
    }

    fn weights(&self, forward: Forward, like: &Tensor) -> Result<TapeWeights> {
        let n = self.steps.sentences().rows();
        let tensor = |values: &[f32], columns: usize| {
            Tensor::from_vec(values.to_vec(), (n, columns), like.device())
        };
        let source = self.source.as_ref();
        let source = source.map(|source| tensor(&forward.read, source.longest()));
        Ok(TapeWeights {
            own: tensor(&forward.own, self.steps.sentences().longest())?,
            source: source.transpose()?,
        })
    }

    fn source_slices<'a>(&'a self, flat: Option<&'a [f32]>) -> Option<SourceSlices<'a>> {
        let segments = self.source.as_ref()?;
        let (keys, values) = flat?.split_at(segments.rows() * self.layout.h);
        Some(SourceSlices {
            keys,
            values,
            segments,
        })
    }

    fn forward(&self, x: &[f32], source: Option<&[f32]>) -> Result<(Vec<f32>, Forward)> {
        let _time = profile::time(Part::Recurrence);
        let (h, sentences) = (self.layout.h, self.steps.sentences());
        let (n, keep) = (sentences.rows(), self.layout.kept());
        let weights = PackedLayer::new(&self.layer, true)?;
        let shares = Shares {
            layout: self.layout,
            steps: &self.steps,
            weights: &weights,
            source: self.source_slices(source),
        };
        let (columns, source_columns) = shares.columns();
        let mut output = vec![0.0; n * 2 * h];
        // Columns of weights that are after a row's own stay zero.
        let mut made = Forward {
            keys: Buffer::any(n * h),
            kept: Buffer::any(n * keep),
            own: Buffer::zeros(n * columns),
            read: Buffer::zeros(n * source_columns),
        };
        let mut keys = sentences.split(&mut made.keys, h).into_iter();
        let mut kept = sentences.split(&mut made.kept, keep).into_iter();
        let mut own = sentences.split(&mut made.own, columns).into_iter();
        let mut read = sentences.split(&mut made.read, source_columns).into_iter();
        let mut parts = Vec::with_capacity(sentences.count());
        for states in sentences.split(&mut output, 2 * h) {
            parts.push(Ahead {
                states,
                keys: keys.next().unwrap_or_default(),
                kept: kept.next().unwrap_or_default(),
                own: own.next().unwrap_or_default(),
                read: read.next().unwrap_or_default(),
            });
        }
        self.each_group(parts, |group| shares.forward(x, group));
        if self.layout.context() > 0 {
            let read = self.layout.kept_read();
            let rows = made.kept.chunks_exact(keep);
            output.extend(rows.flat_map(|kept| &kept[read.clone()]));
        }
        Ok((output, made))
    }

    fn each_group<T: Send>(&self, parts: Vec<T>, work: impl Fn(Group<T>) + Sync + Send) {
        let groups = self.steps.deal(parts, rayon::current_num_threads());
        groups.into_par_iter().with_max_len(1).for_each(work);
    }

    /// Accumulates the gradients of the weights. Returns those of x and of the source.
    fn backward(
        &self,
        source: Option<&[f32]>,
        output: &[f32],
        doutput: &[f32],
    ) -> Result<(Vec<f32>, Vec<f32>)> {
        let _time = profile::time(Part::RecurrenceBackward);
        let made = self.kept.lock().unwrap_or_else(|e| e.into_inner()).take();
        let Some(made) = made else {
            bail!("tapes: the backward pass runs once, after a forward pass in training")
        };
        let (layout, sentences) = (self.layout, self.steps.sentences());
        let (h, n, b) = (layout.h, sentences.rows(), sentences.count());
        let width = layout.input();
        let weights = PackedLayer::new(&self.layer, false)?;
        let shares = Shares {
            layout,
            steps: &self.steps,
            weights: &weights,
            source: self.source_slices(source),
        };
        let (states, _) = output.split_at(n * 2 * h);
        let (dstates, dcontext) = doutput.split_at(n * 2 * h);
        let kept = Kept {
            states,
            keys: &made.keys,
            kept: &made.kept,
            own: &made.own,
            read: &made.read,
            dstates,
            dcontext,
        };
        let mut dx = vec![0.0; n * width];
        let mut dsource = vec![0.0; source.map_or(0, <[f32]>::len)];
        let none = Segments::packed(vec![0; b]);
        let sources = self.source.as_ref().unwrap_or(&none);
        let (dsource_keys, dsource_values) = dsource.split_at_mut(sources.rows() * h);
        let (mut dtape, mut dkeys) = (Buffer::zeros(n * 2 * h), Buffer::zeros(n * h));
        let (mut next, mut source_next) = (Buffer::any(n * h), Buffer::any(n * layout.source()));
        let each = Segments::packed(vec![1; b]);
        let mut dvectors = Buffer::zeros(b * h);
        let mut dsource_vectors = Buffer::zeros(b * layout.source());
        {
            let mut dtape = sentences.split(&mut dtape, 2 * h).into_iter();
            let mut dkeys = sentences.split(&mut dkeys, h).into_iter();
            let mut next = sentences.split(&mut next, h).into_iter();
            let mut source_next = sentences
                .split(&mut source_next, layout.source())
                .into_iter();
            let mut dvectors = each.split(&mut dvectors, h).into_iter();
            let mut dsource_vectors = each
                .split(&mut dsource_vectors, layout.source())
                .into_iter();
            let mut dsource_keys = sources.split(dsource_keys, h).into_iter();
            let mut dsource_values = sources.split(dsource_values, layout.read()).into_iter();
            let mut parts = Vec::with_capacity(b);
            for dx in sentences.split(&mut dx, width) {
                parts.push(Back {
                    dx,
                    dtape: dtape.next().unwrap_or_default(),
                    dkeys: dkeys.next().unwrap_or_default(),
                    next: next.next().unwrap_or_default(),
                    source_next: source_next.next().unwrap_or_default(),
                    dvector: dvectors.next().unwrap_or_default(),
                    dsource_vector: dsource_vectors.next().unwrap_or_default(),
                    dsource_keys: dsource_keys.next().unwrap_or_default(),
                    dsource_values: dsource_values.next().unwrap_or_default(),
                });
            }
            self.each_group(parts, |group| shares.backward(kept, group));
        }
        let made = Made {
            n,
            dx: Columns::new(&dx, width),
            kept: Columns::new(&made.kept, layout.kept()),
            states: Columns::new(states, 2 * h),
            dkeys: Columns::new(&dkeys, h),
            next: Columns::new(&next, h),
            source_next: Columns::new(&source_next, layout.source()),
        };
        made.accumulate(&self.layer, layout)?;
        add_rows(&self.layer.vector, &dvectors, h)?;
        if let Some(reader) = &self.layer.source {
            add_rows(&reader.vector, &dsource_vectors, h)?;
        }
        Ok((dx, dsource))
    }
}

impl Operation {
    fn forward_and_keep(&self, x: &[f32], source: Option<&[f32]>) -> Result<(CpuStorage, Shape)> {
        let (output, made) = self.forward(x, source)?;
        *self.kept.lock().unwrap_or_else(|e| e.into_inner()) = Some(made);
        let count = output.len();
        Ok((CpuStorage::F32(output), count.into()))
    }
}

impl CustomOp1 for Operation {
    fn name(&self) -> &'static str {
        "tapes"
    }

    fn cpu_fwd(&self, x: &CpuStorage, strides: &Strides) -> Result<(CpuStorage, Shape)> {
        self.forward_and_keep(slice(x, strides)?, None)
    }

    fn bwd(&self, x: &Tensor, output: &Tensor, doutput: &Tensor) -> Result<Option<Tensor>> {
        let doutput = doutput.contiguous()?;
        let (dx, _) = self.backward(None, &view(output)?, &view(&doutput)?)?;
        cpu::like(dx, x).map(Some)
    }
}

impl CustomOp2 for Operation {
    fn name(&self) -> &'static str {
        "tapes-with-source"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        strides: &Strides,
        source: &CpuStorage,
        source_strides: &Strides,
    ) -> Result<(CpuStorage, Shape)> {
        let source = slice(source, source_strides)?;
        self.forward_and_keep(slice(x, strides)?, Some(source))
    }

    fn bwd(
        &self,
        x: &Tensor,
        source: &Tensor,
        output: &Tensor,
        doutput: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let doutput = doutput.contiguous()?;
        let values = view(source)?;
        let (dx, dsource) = self.backward(Some(&values), &view(output)?, &view(&doutput)?)?;
        Ok((Some(cpu::like(dx, x)?), Some(cpu::like(dsource, source)?)))
    }
}
