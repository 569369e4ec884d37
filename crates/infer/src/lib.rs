//! A trained bundle made useful: search, translate, evaluate, draw.
//!
//! | file | what it does |
//! |---|---|
//! | `bundle/` | the files that translating needs, read and written |
//! | `decode` | the `[decode]` section |
//! | `search/` | a source to its likeliest translations, as tokens |
//! | `translate` | lines in, lines out |
//! | `evaluate` | how good those lines are |
//! | `metrics/` | BLEU and chrF |
//! | `align` | a sentence pair to what attends to what |
//! | `pieces` | tokens to be looked at one by one |
//! | `heatmap/` | attention as a picture |
//! | `cli` | what the command lines of `train` and `infer` share |
//!
//! ```no_run
//! use attend_infer::{Bundle, Translator};
//! use attend_model::Path;
//! use candle_core::Device;
//!
//! # fn main() -> attend_infer::Result<()> {
//! let bundle = Bundle::open("runs/quickstart".as_ref(), &Device::Cpu)?;
//! let path = Path::of(&Device::Cpu);
//! let translator = Translator::new(&*bundle.model, &bundle.tokenizers, &bundle.decode, path);
//! let translations = translator.translate(&["a dog runs", ""])?;
//! assert_eq!(translations.len(), 2); // one for every line, in order
//! assert_eq!(translations[1].text(), "");
//! # Ok(())
//! # }
//! ```

mod align;
mod bundle;
pub mod cli;
mod decode;
mod error;
mod evaluate;
pub mod heatmap;
pub mod metrics;
mod pieces;
mod search;
mod translate;

pub use align::{Aligner, Alignment, Sentence};
pub use bundle::{Bundle, BundleConfig, Entry, Manifest, sha256};
pub use decode::{DecodeConfig, LengthMeasure};
pub use error::{Error, Result};
pub use evaluate::{Evaluation, evaluate};
pub use translate::{Hypothesis, Translation, Translator};
