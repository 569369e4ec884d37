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
//! | `tokenizer/` | encodes text as token ids, and decodes them: `tokenizer.json` or SentencePiece |
//! | `dataset` | all pairs as token ids; filters and counts pairs that are empty or too long |
//! | `batching` | cuts sequences of different lengths into batches |
//! | `sampler` | the order of the training batches, a pure function of (seed, epoch) |
//! | `batch` | sentence pairs packed for a model |
//!
//! ```
//! use attend_data::{Batches, Corpus, Dataset, Keep, Position, TokenizerConfig, Tokenizers};
//! use std::sync::Arc;
//!
//! # fn main() -> attend_data::Result<()> {
//! let corpus = Corpus::new(
//!     vec!["a dog runs".into(), "a cat sleeps".into()],
//!     vec!["ein Hund rennt".into(), "eine Katze schläft".into()],
//! )?;
//! let config = TokenizerConfig { vocab_size: 100, ..Default::default() };
//! let tokenizers = Tokenizers::train(&config, &corpus, &())?;
//! let keep = Keep::ToTrain { max_length: 256 };
//! let (dataset, report) = Dataset::encode(&corpus, &tokenizers, keep, &())?;
//! assert_eq!(report.kept, 2);
//!
//! let mut batches = Batches::new(Arc::new(dataset), 4096, 1, Position::START)?;
//! let (batch, position) = batches.next_batch();
//! assert_eq!(batch.pairs.len(), 2);
//! assert_eq!(position, Position { epoch: 1, index: 0 }); // the epoch has one batch
//! # Ok(())
//! # }
//! ```

mod batch;
mod batching;
mod compression;
mod config;
mod corpus;
mod dataset;
mod error;
mod input;
mod lines;
mod paths;
mod progress;
mod random;
mod read;
mod resolve;
mod sampler;
mod tokenizer;

pub use batch::Batch;
pub use batching::{Epoch, Lengths, batches_by_length};
pub use config::{
    AugmentConfig, BadLines, CleanConfig, CorpusConfig, DataConfig, Normalization, TokenizerConfig,
    TokenizerFiles, TokenizerKind,
};
pub use corpus::Corpus;
pub use dataset::{Dataset, Keep, Report};
pub use error::{Error, Result};
pub use input::{Columns, Input};
pub use lines::{Lines, MAX_LINE_BYTES};
pub use paths::{Column, FilePair, Format, PathPair, Paths, Patterns, Table};
pub use progress::{Progress, Task};
pub use read::{Pair, Pairs};
pub use sampler::{BatchSampler, Batches, Position};
pub use tokenizer::{EOS, PAD, Tokenizer, Tokenizers, UNK};
