//! The same, step by step, from operations that are composed of candle's: the reference implementation. Every
//! step copies the tape, so its graph grows with the square of the lengths.

use attend_batch::Segments;
use candle_core::{DType, Result, Tensor};

use super::super::Direction;
use super::super::steps::Steps;
use super::layout::Layout;
use super::step::{SourceSoFar, TapeSoFar, tape_step};
use super::{Fusion, SourceTape, TapeLayer, TapeWeights, Tapes};
use crate::alignment::Pairs;
use crate::pass::Pass;
use crate::shared::Shared;

pub(super) fn tapes(
    x: &Tensor,
    layer: &TapeLayer,
    layout: Layout,
    sentences: &Segments,
    source: Option<&SourceTape>,
    pass: &Pass,
) -> Result<Tapes> {
    let (h, device) = (layout.h, x.device());
    let steps = Steps::new(sentences, Direction::Forward);
    let order = steps.order();
    let source = source.map(|source| Ordered::new(source, order, pass));
    let source = source.transpose()?;
    let columns = sentences.longest();
    let source_columns = source.as_ref().map_or(0, |source| source.columns);
    let zeros = |rows: usize, width: usize| Tensor::zeros((rows, width), DType::F32, device);
    let select = |from: &Tensor, rows: Vec<u32>| from.index_select(&Tensor::new(rows, device)?, 0);
    if order.is_empty() {
        let weights = TapeWeights {
            own: zeros(0, columns)?,
            source: source
                .is_some()
                .then(|| zeros(0, source_columns))
                .transpose()?,
        };
        return Ok(Tapes {
            states: zeros(0, 2 * h)?,
            context: match layout.context() {
                0 => None,
                width => Some(zeros(0, width)?),
            },
            weights: (!pass.trains()).then_some(weights),
        });
    }
    let (mut keys, mut states) = (Vec::<Tensor>::new(), Vec::<Tensor>::new());
    let (mut reads, mut owns, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    let mut summary = zeros(order.len(), h)?;
    let mut before = zeros(order.len(), h)?;
    // The index of each row of x among the rows of all steps.
    let (mut places, mut count) = (vec![0; x.dim(0)?], 0);
    for t in 0..steps.longest(order) {
        let going = &order[..steps.going(order, t)];
        let k = going.len();
        let rows: Vec<u32> = going.iter().map(|&i| steps.row(i, t) as u32).collect();
        for &row in &rows {
            places[row as usize] = count;
            count += 1;
        }
        let tape = |parts: &[Tensor], width: usize| {
            if parts.is_empty() {
                return zeros(0, width);
            }
            let parts = parts.iter().map(|part| part.narrow(0, 0, k));
            let parts: Vec<Tensor> = parts.collect::<Result<_>>()?;
            Tensor::stack(&parts, 1)?.reshape((k * t, width))
        };
        let (summary_before, before_this) = (summary.narrow(0, 0, k)?, before.narrow(0, 0, k)?);
        let so_far = TapeSoFar {
            keys: &tape(&keys, h)?,
            states: &tape(&states, 2 * h)?,
            places: &Segments::packed(vec![t; k]),
            summary: &summary_before,
            before: Some(&before_this),
        };
        let pairs = source.as_ref().map(|source| source.pairs(k));
        let over = source
            .as_ref()
            .zip(pairs.as_ref())
            .map(|(source, pairs)| SourceSoFar {
                keys: &source.keys,
                values: &source.values,
                pairs,
            });
        let step = tape_step(&select(x, rows)?, layer, &so_far, over.as_ref(), pass)?;
        owns.push(step.own.pad_with_zeros(1, 0, columns - t)?);
        if let Some(weights) = step.source {
            let rest = source_columns - weights.dim(1)?;
            sources.push(weights.pad_with_zeros(1, 0, rest)?);
        }
        before = match (layout.fusion, &step.read) {
            (Some(Fusion::Deep), Some(read)) => read.clone(),
            _ => step.state.narrow(1, 0, h)?.contiguous()?,
        };
        reads.extend(step.read);
        summary = step.summary;
        keys.push(step.key);
        states.push(step.state);
    }
    let all = |parts: &[Tensor]| select(&Tensor::cat(parts, 0)?, places.clone());
    let weights = || -> Result<TapeWeights> {
        let source = (!sources.is_empty()).then(|| all(&sources)).transpose()?;
        Ok(TapeWeights {
            own: all(&owns)?.detach(),
            source: source.map(|source| source.detach()),
        })
    };
    Ok(Tapes {
        states: all(&states)?,
        context: match layout.context() {
            0 => None,
            _ => Some(all(&reads)?),
        },
        weights: (!pass.trains()).then(weights).transpose()?,
    })
}

/// The source with its sentences in the order of the steps.
struct Ordered {
    keys: Shared,
    values: Shared,
    segments: Segments,
    columns: usize,
}

impl Ordered {
    fn new(source: &SourceTape, order: &[usize], pass: &Pass) -> Result<Self> {
        let ranges = || {
            order
                .iter()
                .map(|&sentence| source.segments.range(sentence))
        };
        let rows: Vec<u32> = ranges().flatten().map(|row| row as u32).collect();
        let rows = Tensor::new(rows, source.keys.device())?;
        let select = |from: &Tensor| Shared::new(&from.index_select(&rows, 0)?, pass);
        Ok(Self {
            keys: select(&source.keys)?,
            values: select(&source.values)?,
            segments: Segments::packed(ranges().map(|range| range.len())),
            columns: source.segments.longest(),
        })
    }

    /// One query for each of the first k sentences.
    fn pairs(&self, k: usize) -> Pairs {
        let queries = (0..self.segments.count()).map(|rank| usize::from(rank < k));
        Pairs {
            queries: Segments::packed(queries),
            keys: self.segments.clone(),
        }
    }
}
