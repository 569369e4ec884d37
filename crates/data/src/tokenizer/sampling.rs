//! Segmentations that are drawn at random: with BPE-dropout (Provilkov et al. 2020), or from all segmentations of a
//! unigram language model (Kudo 2018).

use super::dropout::Merges;
use super::json::{Json, guard};
use super::lattice::Pieces;
use super::sentencepiece::Method;
use super::{Engine, Tokenizer};
use crate::random::Draws;
use crate::{Error, Result};
use attend_config::ConfigError;
use tokenizers::models::ModelWrapper;
use tokenizers::{OffsetReferential, OffsetType, PreTokenizer};

const DROPOUT: &str = "data.augment.subword_dropout";
const ALPHA: &str = "data.augment.subword_alpha";
const STREAM: u64 = 0x7375_6277_6f72_6473; // tells these draws from those of other purposes

/// How a segmentation is drawn. With the default, none is: text is encoded as always.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampling {
    /// BPE: the probability of leaving out a merge. With 1, text is split into characters.
    pub dropout: f64,
    /// Unigram: the probability of a segmentation is proportional to its probability in the model to the power of
    /// this. The higher it is, the more often the usual segmentation is drawn. 0 turns it off.
    pub alpha: f64,
}

impl Sampling {
    /// Whether any segmentation is drawn.
    pub fn is_on(&self) -> bool {
        self.dropout > 0.0 || self.alpha > 0.0
    }
}

/// Draws one after the other.
pub(super) struct Dice {
    draws: Draws,
    next: u64,
}

impl Dice {
    pub(super) fn new(draw: u64) -> Self {
        let draws = Draws::new(draw, [STREAM]);
        Self { draws, next: 0 }
    }

    /// A number from 0 to below 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.next += 1;
        self.draws.unit(self.next)
    }
}

/// What the model of a `tokenizer.json` can draw.
pub(super) enum Sampler {
    Merges(Box<Merges>),
    Pieces(Pieces),
    None,
}

impl Sampler {
    pub(super) fn new(model: &ModelWrapper) -> Self {
        match model {
            ModelWrapper::BPE(bpe) => match Merges::new(bpe) {
                Some(merges) => Self::Merges(merges.into()),
                None => Self::None,
            },
            ModelWrapper::Unigram(unigram) => Self::Pieces(Pieces::new(unigram)),
            _ => Self::None,
        }
    }

    fn method(&self) -> Method {
        match self {
            Self::Merges(_) => Method::Dropout,
            Self::Pieces(_) => Method::Lattice,
            Self::None => Method::None,
        }
    }
}

impl Tokenizer {
    /// The ids of a sentence with `</s>`, as [`Tokenizer::encode`] gives them, but with its segmentation drawn at
    /// random. The same `draw` gives the same ids.
    ///
    /// Words and tags that were added to a BPE tokenizer stay whole.
    pub fn encode_sampled(&self, line: &str, sampling: &Sampling, draw: u64) -> Result<Vec<u32>> {
        if !sampling.is_on() {
            return self.encode(line);
        }
        self.check_sampling(sampling)?;
        let mut dice = Dice::new(draw);
        match &self.engine {
            Engine::Json(json) => json.encode_sampled(line, sampling, &mut dice),
            Engine::SentencePiece(spm) => Ok(spm.encode_sampled(line, sampling, &mut dice)),
        }
    }

    /// Refuses what this kind of tokenizer cannot do: dropout needs BPE, and alpha needs unigram. Word and char
    /// tokenizers have one segmentation.
    pub fn check_sampling(&self, sampling: &Sampling) -> Result<()> {
        if !sampling.is_on() {
            return Ok(());
        }
        let method = match &self.engine {
            Engine::Json(json) => json.sampler().method(),
            Engine::SentencePiece(spm) => spm.method(),
        };
        let (key, message, hint) = match method {
            Method::Dropout if sampling.alpha > 0.0 => (
                ALPHA,
                "is for unigram tokenizers, but the tokenizer is bpe",
                "leave it out, or set data.augment.subword_dropout",
            ),
            Method::Lattice if sampling.dropout > 0.0 => (
                DROPOUT,
                "is for bpe tokenizers, but the tokenizer is unigram",
                "leave it out, or set data.augment.subword_alpha",
            ),
            Method::None => (
                if sampling.dropout > 0.0 {
                    DROPOUT
                } else {
                    ALPHA
                },
                "is set, but the tokenizer has one way to split a text",
                "leave it out, or use a tokenizer of the kind bpe or unigram",
            ),
            Method::Dropout | Method::Lattice => return Ok(()),
        };
        Err(ConfigError::new(key, message, hint).into())
    }
}

impl Json {
    fn sampler(&self) -> &Sampler {
        let model = self.inner.get_model();
        self.sampler.get_or_init(|| Sampler::new(model))
    }

    /// The library finds the added tokens, and normalises and splits the text around them. The model's part is done
    /// here: the library would draw from the random numbers of a thread.
    fn encode_sampled(&self, line: &str, sampling: &Sampling, dice: &mut Dice) -> Result<Vec<u32>> {
        let inner = &self.inner;
        let split = || {
            let added = inner.get_added_vocabulary();
            let mut text = added.extract_and_normalize(inner.get_normalizer(), line);
            if let Some(pre_tokenizer) = inner.get_pre_tokenizer() {
                pre_tokenizer.pre_tokenize(&mut text)?;
            }
            Ok(text)
        };
        let text = guard(split).map_err(|message| Error::Encode { message })?;
        let parts = text.get_splits(OffsetReferential::Normalized, OffsetType::None);
        let parts = parts.into_iter().map(|(part, _, tokens)| match tokens {
            Some(tokens) => Err(tokens.iter().map(|token| token.id)),
            None => Ok(part),
        });
        let mut ids = Vec::with_capacity(line.len() / 2 + 1);
        match self.sampler() {
            Sampler::Merges(merges) => {
                let mut word = merges.word(sampling.dropout, dice);
                for part in parts {
                    match part {
                        Ok(text) => word.segment(text, &mut ids),
                        Err(added) => ids.extend(added),
                    }
                }
            }
            Sampler::Pieces(pieces) => {
                let mut word = pieces.word(inner.get_model(), sampling.alpha, dice);
                for part in parts {
                    match part {
                        Ok(text) => word.segment(text, &mut ids),
                        Err(added) => ids.extend(added),
                    }
                }
            }
            Sampler::None => return self.encode(line),
        }
        Ok(self.specials.finish(ids))
    }
}
