//! Sentences laid end to end.

/// Sentences laid end to end, without padding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentences {
    /// All ids, sentence after sentence, each ending in `</s>`.
    pub ids: Vec<u32>,
    /// How many ids each sentence has, `</s>` included. They sum to `ids.len()`.
    pub lengths: Vec<usize>,
}

impl Sentences {
    /// Lays these sentences end to end.
    pub fn pack<S: AsRef<[u32]>>(sentences: impl IntoIterator<Item = S>) -> Self {
        let mut packed = Self::default();
        for sentence in sentences {
            let sentence = sentence.as_ref();
            packed.ids.extend_from_slice(sentence);
            packed.lengths.push(sentence.len());
        }
        packed
    }

    /// Number of sentences.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are no sentences.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The sentences, one by one.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        let mut rest = self.ids.as_slice();
        self.lengths.iter().map(move |length| {
            let (sentence, tail) = rest.split_at(*length);
            rest = tail;
            sentence
        })
    }
}

/// Sentence pairs to be computed at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The source sentences.
    pub source: Sentences,
    /// Their translations, in the same order.
    pub target: Sentences,
    /// Which pair of the corpus each one is, counted from 0.
    pub pairs: Vec<usize>,
}
