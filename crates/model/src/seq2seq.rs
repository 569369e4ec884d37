use attend_ops::{Loss, Pass, Path, Segments};
use candle_core::{Result, Tensor};

use crate::attention::Choice;
use crate::{Packed, Params};

/// The encoder's output.
#[derive(Clone, Debug)]
pub struct Memory {
    /// `[n, d]`
    pub states: Tensor,
    pub segments: Segments,
    /// What a recurrent decoder starts from, for each of its layers.
    pub(crate) finals: Vec<Tensor>,
}

/// The decoder's output.
#[derive(Clone, Debug)]
pub struct Output {
    /// `[n, d]`, each row to predict a token of the target.
    pub hidden: Tensor,
    /// How a recurrent decoder attended to the source: what it minimises may depend on it.
    pub(crate) alignment: Option<Alignment>,
}

/// How the tokens of a target attended to their sources.
#[derive(Clone, Debug)]
pub(crate) struct Alignment {
    /// `[n, s]`: a column for each token of the sentence's source.
    pub(crate) weights: Tensor,
    pub(crate) choice: Option<Choice>,
    /// The source's sentences.
    pub(crate) keys: Segments,
}

/// Where an attention stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The source to itself.
    Encoder,
    /// The target to itself.
    Decoder,
    /// The target to the source.
    Cross,
}

/// The weights of one attention over a sentence pair.
#[derive(Clone, Debug)]
pub struct AttentionMap {
    pub place: Place,
    /// Counted from 0.
    pub layer: usize,
    /// Counted from 0.
    pub head: usize,
    /// `[queries, keys]`; the query of a target's row is what predicts its token.
    pub weights: Tensor,
}

/// All that search and training know of a model.
pub trait Seq2Seq: Send + Sync {
    fn params(&self) -> &Params;

    fn encode(&self, source: &Packed, pass: &Pass) -> Result<Memory>;

    /// Teacher forcing: hidden states for every position of `target`, to predict it from.
    fn decode(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Output>;

    /// Label-smoothed cross-entropy of those hidden states, summed over tokens; the `[n, v]` logits
    /// are never held whole. In training it goes with what else the model minimises.
    fn loss(&self, output: &Output, target: &Packed, smoothing: f32, pass: &Pass) -> Result<Loss>;

    /// Every attention of one sentence pair, with teacher forcing: to be looked at. None if the model
    /// has none.
    fn attention(&self, source: &Packed, target: &Packed, path: Path) -> Result<Vec<AttentionMap>>;

    /// The state before the first token: `beams` rows for every sentence of the memory.
    fn start(&self, memory: &Memory, beams: usize, pass: &Pass) -> Result<State>;

    /// One more token per row: logits `[rows, words]` of the next. Padding is not among the words.
    fn step(&self, state: &mut State, last: &[u32], pass: &Pass) -> Result<Tensor>;

    /// The token that a translation starts from.
    fn start_token(&self) -> u32;
}

/// What a decoder remembers between steps: a value that the caller owns, with one row for every
/// hypothesis, the hypotheses of a sentence next to each other.
///
/// Not `Clone`: steps write into its tensors, which a clone would share.
#[derive(Debug)]
pub struct State {
    /// How many tokens each row has read.
    pub(crate) length: usize,
    /// How many rows each sentence has.
    pub(crate) rows: Vec<usize>,
    /// What each row remembers of itself: `[rows, …]`, or with room to grow `[rows, capacity, …]`.
    pub(crate) own: Vec<Tensor>,
    /// What is remembered of the source, `[n, …]`, one copy for all rows of a sentence.
    pub(crate) source: Vec<Tensor>,
    /// The source's sentences.
    pub(crate) segments: Segments,
}

impl State {
    /// Tokens that a row of a new state has room for.
    pub(crate) const FIRST_ROOM: usize = 16;

    /// Rows in all.
    pub fn rows(&self) -> usize {
        self.rows.iter().sum()
    }

    /// Keeps, for each sentence in `kept`, the rows given with it, in that order; a row may be taken
    /// more than once. Rows are counted over the whole state and must belong to the sentence;
    /// sentences stay in order.
    pub fn select(&mut self, kept: &[(usize, Vec<usize>)]) -> Result<()> {
        let rows: Vec<usize> = kept.iter().flat_map(|(_, rows)| rows.clone()).collect();
        if rows.len() != self.rows() || rows.iter().enumerate().any(|(i, &row)| i != row) {
            let index: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
            let index = Tensor::new(index, self.own[0].device())?;
            for own in &mut self.own {
                *own = own.index_select(&index, 0)?;
            }
        }
        if kept.len() != self.segments.count() {
            let ranges: Vec<_> = kept.iter().map(|(s, _)| self.segments.range(*s)).collect();
            let index: Vec<u32> = ranges
                .iter()
                .flat_map(|r| r.start as u32..r.end as u32)
                .collect();
            let index = Tensor::new(index, self.own[0].device())?;
            for source in &mut self.source {
                *source = source.index_select(&index, 0)?;
            }
            self.segments = Segments::packed(ranges.into_iter().map(|range| range.len()));
        }
        self.rows = kept.iter().map(|(_, rows)| rows.len()).collect();
        Ok(())
    }

    /// Makes room for one more token in every row, twice as much when there is none.
    pub(crate) fn reserve(&mut self) -> Result<()> {
        for own in &mut self.own {
            if own.rank() == 3 && own.dim(1)? == self.length {
                *own = Tensor::cat(&[&*own, &own.zeros_like()?], 1)?;
            }
        }
        Ok(())
    }
}
