//! Inference with a trained bundle: translation, scores, evaluation, word alignments and attention heatmaps.
//!
//! | file | contents |
//! |---|---|
//! | `weights/` | reads the tensors of safetensors files and of files of `torch.save` |
//! | `bundle/` | reads and writes the files of a bundle; opens folders, whoever wrote them |
//! | `huggingface/` | reads and writes folders of transformers |
//! | `ctranslate2/` | writes and reads the files of CTranslate2 |
//! | `run/` | reads and verifies the folder of a run |
//! | `decode` | the `[decode]` section of the config |
//! | `early_stopping` | when a beam search ends |
//! | `serve/` | models for many who ask at once: the server, and the page |
//! | `search/` | searches over tokens: one loop, the rules that change scores, the strategies that choose |
//! | `engine/` | one model that translates for many who ask at once |
//! | `ensemble` | several models that translate together |
//! | `score` | the log-probabilities of given translations |
//! | `links/` | which words of a translation come from which words of its source |
//! | `document/` | lines of text, long, marked up or of several sentences, to requests for a translator and back |
//! | `request` | a line, what is asked of its translation, and the translation |
//! | `glossary` | finds the terms of a line and their translations |
//! | `plan` | the search of a line, from the config and its request |
//! | `prefix` | what a translation begins with |
//! | `repeats` | finds translations that end in a loop |
//! | `words` | whole words in text |
//! | `source` | turns lines into what a model reads: sentences, or the files that the lines name |
//! | `observer` | watches or cancels translations in progress |
//! | `translate` | translates lines of text |
//! | `hub` | makes paths on the Hugging Face Hub local |
//! | `local` | does so with the paths of a config |
//! | `file` | opens regular files, and nothing else |
//! | `evaluate` | translates a test set and scores the translations |
//! | `tune` | finds the search settings with the best translations |
//! | `metrics/` | BLEU, chrF and TER, confidence intervals and significance tests |
//! | `compare/` | several systems on one test set, as text, JSON and HTML |
//! | `align/` | computes the attention maps of a sentence pair, or of a picture and its caption |
//! | `pieces` | the readable text of single tokens |
//! | `export/` | a model for other programs, proved, with its card |
//! | `staging` | a folder that appears whole or not at all |
//! | `heatmap/` | draws attention weights as SVG or PNG |
//! | `pointing` | whether the words of a caption attend to what they name |
//!
//! ```no_run
//! use attend_infer::{Bundle, Translator};
//! use attend_model::{Kernels, Packing};
//! use candle_core::Device;
//!
//! # fn main() -> attend_infer::Result<()> {
//! let (run, device) = ("runs/quickstart".as_ref(), Device::Cpu);
//! let kernels = Kernels::of(&device);
//! let bundle = Bundle::open_to_translate(run, &device, kernels, Packing::Float)?;
//! let translator = Translator::new(&*bundle.model, &bundle.tokenizers, &bundle.decode, kernels);
//! let translations = translator.translate(&["a dog runs", ""])?;
//! assert_eq!(translations.len(), 2); // one for each line, in order
//! assert_eq!(translations[1].text(), "");
//! # Ok(())
//! # }
//! ```

mod align;
mod align_words;
mod bundle;
pub mod compare;
pub mod ctranslate2;
mod decode;
pub mod document;
mod early_stopping;
mod engine;
mod ensemble;
mod error;
mod evaluate;
pub mod export;
mod file;
mod glossary;
pub mod heatmap;
pub mod hub;
mod huggingface;
mod links;
pub mod local;
pub mod metrics;
mod observer;
mod pieces;
mod plan;
pub mod pointing;
mod prefix;
mod repeats;
mod request;
pub mod run;
mod score;
mod search;
#[cfg(feature = "serve")]
pub mod serve;
mod source;
mod staging;
mod translate;
mod tune;
mod weights;
mod words;

pub use align::{Aligner, Alignment, Sentence};
pub use bundle::{
    Bundle, BundleConfig, Contents, Entry, Format, GenerationConfig, Manifest, Quantization,
    sha256, vocabularies,
};
pub use decode::{DecodeConfig, LengthMeasure};
pub use early_stopping::EarlyStopping;
pub use engine::Engine;
pub use ensemble::{Ensemble, Models};
pub use error::{Error, Result};
pub use evaluate::{Evaluation, Hypotheses, evaluate};
pub use glossary::Glossary;
pub use huggingface::parse_hub_config;
pub use links::{AlignWords, Heads, Judged, Link, Pair, WordAligner, lexical_links};
pub use observer::Observer;
pub use request::{Hypothesis, Request, Translation};
pub use score::{Scored, Scorer};
pub use translate::Translator;
pub use tune::{Trial, best_trial, tune};
pub use weights::{
    TensorSource, TorchFile, WeightsFile, WeightsIndex, open_weights, parse_tensors,
};
