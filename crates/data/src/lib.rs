//! Parallel text to packed batches, in a reproducible order.
//!
//! In the order in which text passes through them:
//!
//! | file | contents |
//! |---|---|
//! | `config` | the `[data]` section |
//! | `paths`, `resolve` | how a config names files; finds them |
//! | `compression`, `lines` | decompresses a file; reads it as lines: UTF-8, line endings |
//! | `input`, `read/` | reads sentence pairs from files, one file of code for each format |
//! | `corpus` | all pairs in memory |
//! | `clean/` | normalises text; drops pairs, and counts why |
//! | `text_source`, `duplicates` | a corpus as a stream of checked pairs, in bounded memory |
//! | `source/` | sources that are not text: pictures and features, from files |
//! | `tokenizer/` | encodes text as token ids, and decodes them: `tokenizer.json` or SentencePiece |
//! | `dataset/` | the pairs that are kept, as token ids |
//! | `cache/` | the folder that keeps them, from which they are mapped |
//! | `mixture`, `permutation` | several corpora as one: which pair comes when |
//! | `augment/`, `augmenter` | changes training text at random |
//! | `batching`, `sampler` | cuts pairs into batches; their order, a pure function of (seed, position) |
//! | `batch` | sentence pairs packed for a model |
//!
//! ```
//! use attend_data::{
//!     Batches, CleanConfig, Cleaner, Corpus, Dataset, HeldOut, Mixture, Position, TokenizerConfig, Tokenizers,
//! };
//! use std::sync::Arc;
//!
//! # fn main() -> attend_data::Result<()> {
//! let corpus = Corpus::new(
//!     vec!["a dog runs".into(), "a cat sleeps".into()],
//!     vec!["ein Hund rennt".into(), "eine Katze schläft".into()],
//! )?;
//! let config = TokenizerConfig { vocab_size: 100, ..Default::default() };
//! let tokenizers = Tokenizers::train(&config, &corpus, &())?;
//! let cleaner = Cleaner::new(&CleanConfig::default(), "en", "de", 256, HeldOut::new())?;
//! let dataset = Dataset::encode(&corpus, &tokenizers, &cleaner)?;
//! assert_eq!(dataset.counts().kept, 2);
//!
//! let mixture = Arc::new(Mixture::of(dataset, 1));
//! let mut batches = Batches::new(mixture, 4096, None, Position::START)?;
//! let (batch, position) = batches.next_batch(0)?;
//! assert_eq!(batch.pairs.len(), 2);
//! assert_eq!(position, Position::START.next_epoch()); // the epoch has one batch
//! # Ok(())
//! # }
//! ```

mod augment;
mod augmenter;
mod batch;
mod batching;
mod cache;
mod clean;
mod compression;
mod config;
mod corpus;
mod dataset;
mod duplicates;
mod error;
mod hash;
mod input;
mod lines;
mod mixture;
mod paths;
mod permutation;
mod progress;
mod random;
mod read;
mod resolve;
mod sampler;
mod source;
mod text_source;
mod tokenizer;

pub use augment::Augment;
pub use augmenter::Augmenter;
pub use batch::Batch;
pub use batching::{Epoch, Lengths, batches_by_length};
pub use cache::{Bytes, Cache, CacheEntry, EntryKind};
pub use clean::{Cleaner, Counts, HeldOut, Reason};
pub use config::{
    AugmentConfig, BadLines, CleanConfig, CorpusConfig, DataConfig, Normalization, SourceKind,
    TokenizerConfig, TokenizerFiles, TokenizerKind,
};
pub use corpus::Corpus;
pub use dataset::Dataset;
pub use duplicates::Duplicates;
pub use error::{Error, Result};
pub use input::{Columns, Input};
pub use lines::{Lines, MAX_LINE_BYTES};
pub use mixture::Mixture;
pub use paths::{Column, FilePair, Format, PathPair, Paths, Patterns, Table};
pub use progress::{Progress, Task};
pub use read::{Pair, Pairs};
pub use sampler::{Batches, Position};
pub use source::SourceReader;
pub use text_source::{Checked, TextSource, name_of};
pub use tokenizer::{EOS, PAD, Sample, Sampling, Tokenizer, Tokenizers, UNK};
