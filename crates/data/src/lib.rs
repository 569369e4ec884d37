//! Parallel text to packed batches, in a reproducible order.
//!
//! The files follow the way of a sentence:
//!
//! | file | what it does |
//! |---|---|
//! | `config` | the `[data]` section |
//! | `paths` | names in the config to files on disk |
//! | `lines` | bytes to lines: gzip, UTF-8, line ends |
//! | `corpus` | two files to sentence pairs |
//! | `tokenizer/` | text to token ids and back |
//! | `dataset` | every pair as ids, what cannot be trained on left out and counted |
//! | `order` | which pairs make a batch, and when: a pure function of (seed, epoch) |
//! | `batch` | pairs laid end to end |
//!
//! ```
//! use attend_data::{Batches, Corpus, Dataset, Position, TokenizerConfig, Tokenizers};
//! use std::sync::Arc;
//!
//! # fn main() -> attend_data::Result<()> {
//! let corpus = Corpus::new(
//!     vec!["a dog runs".into(), "a cat sleeps".into()],
//!     vec!["ein Hund rennt".into(), "eine Katze schläft".into()],
//! )?;
//! let config = TokenizerConfig { vocab_size: 100, ..Default::default() };
//! let tokenizers = Tokenizers::train(&config, &corpus)?;
//! let (dataset, report) = Dataset::encode(&corpus, &tokenizers, Some(256))?;
//! assert_eq!(report.kept, 2);
//!
//! let mut batches = Batches::new(Arc::new(dataset), 4096, 1, Position::START)?;
//! let (batch, position) = batches.next_batch();
//! assert_eq!(batch.pairs.len(), 2);
//! assert_eq!(position, Position { epoch: 1, index: 0 }); // one batch made the whole epoch
//! # Ok(())
//! # }
//! ```

mod batch;
mod config;
mod corpus;
mod dataset;
mod error;
mod lines;
mod order;
mod paths;
mod tokenizer;

pub use batch::{Batch, Sentences};
pub use config::{DataConfig, TokenizerConfig, TokenizerFiles, TokenizerKind};
pub use corpus::Corpus;
pub use dataset::{Dataset, Report};
pub use error::{Error, Result};
pub use lines::{Lines, MAX_LINE_BYTES, read_lines};
pub use order::{Batches, Epoch, Lengths, Order, Position};
pub use paths::{FilePair, PathPair, Paths};
pub use tokenizer::{EOS, PAD, Tokenizer, Tokenizers, UNK};
