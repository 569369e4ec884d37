use std::ops::Range;
use std::sync::Arc;

use attend_batch::Segments;
use candle_core::{Result, Tensor};

use super::{SourceWeights, source_keys_values};
use crate::buffer::Buffer;
use crate::cpu::view;
use crate::sublayer::{Body, Sublayer};

/// What a stack of sub-layers keeps of the tokens that it has read, and of the source.
///
/// Every token of a hypothesis has a slot, which holds its keys and values in every layer.
pub struct StepCache {
    d: usize,
    /// For each self-attention, keys and values `[slots, 2d]` in blocks of [`BLOCK`] slots, so that what has been
    /// written never moves.
    own: Vec<Vec<Buffer>>,
    /// How many slots there are.
    slots: usize,
    /// Slots that no hypothesis uses.
    free: Vec<usize>,
    sentences: Vec<Sentence>,
    rows: Vec<Row>,
}

/// Slots of a block.
const BLOCK: usize = 64;

/// A sentence that is being translated.
struct Sentence {
    source: Arc<Source>,
    /// Its tokens among those of the source.
    tokens: Range<usize>,
    /// The slots that its rows were given. They are free again when the sentence is done.
    slots: Vec<usize>,
}

/// Sentences that were encoded together. They are dropped with the last of them.
struct Source {
    /// For each attention to the source, keys and values `[n, 2d]`.
    keys_values: Vec<Buffer>,
}

/// A hypothesis: the slots of its tokens.
#[derive(Clone)]
struct Row {
    sentence: usize,
    slots: Vec<usize>,
}

impl StepCache {
    /// An empty cache for these sub-layers, which are `d` wide.
    pub fn new<'a>(d: usize, sublayers: impl IntoIterator<Item = &'a Sublayer>) -> Self {
        let bodies = sublayers.into_iter().map(|sublayer| &sublayer.body);
        let own = bodies.filter(|body| matches!(body, Body::Itself(..)));
        Self {
            d,
            own: own.map(|_| Vec::new()).collect(),
            slots: 0,
            free: Vec::new(),
            sentences: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Adds sentences, each with `beams` rows that have read nothing. `states` are the encoder's, `[n, d]`.
    pub fn add<'a>(
        &mut self,
        states: &Tensor,
        segments: &Segments,
        beams: usize,
        sublayers: impl IntoIterator<Item = &'a Sublayer>,
    ) -> Result<()> {
        let states = view(states)?;
        let bodies = sublayers.into_iter().map(|sublayer| &sublayer.body);
        let keys_values = bodies.filter_map(|body| match body {
            Body::Memory(heads) => Some(source_keys_values(&states, heads)),
            _ => None,
        });
        let keys_values = keys_values.collect::<Result<_>>()?;
        let source = Arc::new(Source { keys_values });
        for tokens in segments.ranges() {
            let row = Row {
                sentence: self.sentences.len(),
                slots: Vec::new(),
            };
            self.rows.extend(std::iter::repeat_n(row, beams));
            self.sentences.push(Sentence {
                source: source.clone(),
                tokens,
                slots: Vec::new(),
            });
        }
        Ok(())
    }

    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// How many tokens each row has read.
    pub fn lengths(&self) -> Vec<u32> {
        let lengths = self.rows.iter().map(|row| row.slots.len() as u32);
        lengths.collect()
    }

    /// Keeps only these sentences, in this order, and of each only these rows. Rows are counted among all rows;
    /// one may be taken more than once.
    pub fn select<'a>(&mut self, kept: impl IntoIterator<Item = (usize, &'a [usize])>) {
        let mut sentences: Vec<Option<Sentence>> = self.sentences.drain(..).map(Some).collect();
        let mut rows = Vec::with_capacity(self.rows.len());
        for (sentence, kept) in kept {
            let place = self.sentences.len();
            self.sentences.extend(sentences[sentence].take());
            rows.extend(kept.iter().map(|&row| Row {
                sentence: place,
                slots: self.rows[row].slots.clone(),
            }));
        }
        for done in sentences.into_iter().flatten() {
            self.free.extend(done.slots);
        }
        self.rows = rows;
    }

    #[cfg(test)]
    pub(super) fn slot_count(&self) -> usize {
        self.slots
    }

    /// Gives each row a slot for its next token.
    pub(super) fn append(&mut self) {
        for row in &mut self.rows {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.slots += 1;
                self.slots - 1
            });
            row.slots.push(slot);
            self.sentences[row.sentence].slots.push(slot);
        }
        let (blocks, size) = (self.slots.div_ceil(BLOCK), BLOCK * 2 * self.d);
        for own in &mut self.own {
            own.resize_with(blocks, || Buffer::any(size));
        }
    }

    /// Stores the keys and values of every row's last token, from `[rows, 3d]`.
    pub(super) fn store(&mut self, layer: usize, qkv: &[f32]) {
        let width = 2 * self.d;
        for (row, qkv) in self.rows.iter().zip(qkv.chunks_exact(3 * self.d)) {
            if let Some(slot) = row.slots.last() {
                let block = &mut self.own[layer][slot / BLOCK];
                let place = &mut block[slot % BLOCK * width..][..width];
                place.copy_from_slice(&qkv[self.d..]);
            }
        }
    }

    /// The keys and values of a row's tokens, `2d` each.
    pub(super) fn own_keys(&self, layer: usize, row: usize) -> Vec<&[f32]> {
        let (own, width) = (&self.own[layer], 2 * self.d);
        let slots = self.rows[row].slots.iter();
        let keys = slots.map(|slot| &own[slot / BLOCK][slot % BLOCK * width..][..width]);
        keys.collect()
    }

    /// The keys and values of a row's source, `2d` each.
    pub(super) fn source_keys(&self, layer: usize, row: usize) -> Vec<&[f32]> {
        let Sentence { source, tokens, .. } = &self.sentences[self.rows[row].sentence];
        let width = 2 * self.d;
        let keys = &source.keys_values[layer][tokens.start * width..tokens.end * width];
        keys.chunks_exact(width).collect()
    }

    /// Room for the weights of an attention to the source.
    pub(super) fn no_weights(&self, heads: usize) -> SourceWeights {
        let lengths = self.sentences.iter().map(|sentence| sentence.tokens.len());
        let keys = lengths.max().unwrap_or(0);
        SourceWeights {
            values: vec![0.0; heads * self.rows() * keys],
            heads,
            keys,
        }
    }
}
