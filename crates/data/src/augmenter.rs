//! Pairs of a dataset with `[data.augment]` applied.

use crate::random::Draws;
use crate::{Augment, AugmentConfig, Dataset, Result, Sampling, Tokenizers};
use std::sync::Arc;

/// The streams of random numbers: for the text, for how each side is split, and for dropped tokens.
/// [`Mixture`](crate::Mixture) and [`Batches`](crate::Batches) have others.
const TEXT: u64 = 3;
const SOURCE: u64 = 4;
const TARGET: u64 = 5;
const DROPPED: u64 = 6;

/// Changes the pairs of training batches at random. What it does to a pair is a pure function of the seed, the pair
/// and its place in training.
#[derive(Clone)]
pub struct Augmenter {
    augment: Augment,
    sampling: Sampling,
    tokenizers: Arc<Tokenizers>,
    max_length: usize,
    seed: u64,
    /// Whether pairs are encoded anew.
    encodes: bool,
    /// The ids of the tags of corpora, which are never dropped.
    tags: Vec<u32>,
}

impl Augmenter {
    /// None if the config changes nothing. It is an error if a tokenizer cannot be sampled in the way that the config
    /// says.
    pub fn new(
        config: &AugmentConfig,
        tokenizers: Arc<Tokenizers>,
        tags: &[String],
        max_length: usize,
        seed: u64,
    ) -> Result<Option<Self>> {
        if !config.is_on() {
            return Ok(None);
        }
        let sampling = Sampling {
            dropout: config.subword_dropout,
            alpha: config.subword_alpha,
        };
        let source = tokenizers.require_source()?;
        source.check_sampling(&sampling)?;
        let tags = tags.iter().filter_map(|tag| source.id(tag)).collect();
        tokenizers.target().check_sampling(&sampling)?;
        Ok(Some(Self {
            augment: Augment::new(config, seed),
            sampling,
            tokenizers,
            max_length,
            seed,
            encodes: config.needs_text(),
            tags,
        }))
    }

    /// The ids of pair `i` for this place in training. A pair that would become too long is not changed.
    pub(crate) fn pair(
        &self,
        dataset: &Dataset,
        i: usize,
        place: [u64; 3],
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        let draw = |stream: u64| Draws::new(self.seed, [stream].into_iter().chain(place)).bits(0);
        let source_tokenizer = self.tokenizers.require_source()?;
        let (mut source, target) = if self.encodes {
            let (source, target) = dataset.text(i)?;
            // The tag is not text.
            let tag = dataset
                .tag()
                .map(|tag| format!("{tag} "))
                .unwrap_or_default();
            let source = source.strip_prefix(&tag).unwrap_or(source);
            let (mut source, mut target) = (source.to_string(), target.to_string());
            self.augment
                .change_text(draw(TEXT), &mut source, &mut target);
            source.insert_str(0, &tag);
            let encode = |tokenizer: &crate::Tokenizer, text: &str, stream| {
                tokenizer.encode_sampled(text, &self.sampling, draw(stream))
            };
            let source = encode(source_tokenizer, &source, SOURCE)?;
            let target = encode(self.tokenizers.target(), &target, TARGET)?;
            let fits = |ids: &[u32]| (2..=self.max_length).contains(&ids.len());
            if fits(&source) && fits(&target) {
                (source, target)
            } else {
                dataset.ids(i)?
            }
        } else {
            dataset.ids(i)?
        };
        let unk = source_tokenizer.unk();
        self.augment.drop_tokens(
            draw(DROPPED),
            &mut source,
            |id| self.tags.contains(&id),
            unk,
        );
        Ok((source, target))
    }
}
