//! The tokenizer and the cache of a config, without training.

use std::fmt;
use std::path::PathBuf;

use attend_infer::vocabularies;
use candle_core::Device;

use crate::corpora::Corpora;
use crate::{Config, Result, setup};

/// What training starts from.
#[derive(Debug)]
pub struct Prepared {
    /// Where it is kept.
    pub cache: PathBuf,
    /// Pairs of all corpora that are trained on.
    pub pairs: u64,
    /// Tokens of both sides.
    pub tokens: u64,
    /// Tokens of the target's vocabulary.
    pub vocabulary: usize,
}

/// Makes what a training of this config would make before its first step.
pub fn prepare(config: &Config) -> Result<Prepared> {
    let corpora = Corpora::find(config)?;
    corpora.test_set()?;
    let (tokenizers, _) = setup::tokenizers(config, &corpora, &Device::Cpu)?;
    let training = corpora.training(&tokenizers)?;
    corpora.validation(&tokenizers)?;
    let tokens = training.datasets().map(|data| data.tokens());
    Ok(Prepared {
        cache: corpora.cache().folder().to_path_buf(),
        pairs: training.datasets().map(|data| data.len() as u64).sum(),
        tokens: tokens.map(|all| (all.source + all.target) as u64).sum(),
        vocabulary: vocabularies(&tokenizers).target,
    })
}

impl fmt::Display for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self {
            cache,
            pairs,
            tokens,
            vocabulary,
        } = self;
        let cache = cache.display();
        write!(
            f,
            "{pairs} pairs of {tokens} tokens, a vocabulary of {vocabulary}; cache: {cache}"
        )
    }
}
