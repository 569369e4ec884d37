//! Folders of Hugging Face's transformers: MarianMT (post-norm) and Pegasus (pre-norm) models, read and written.
//!
//! | file | contents |
//! |---|---|
//! | `family` | the two models |
//! | `config` | `config.json` |
//! | `generation` | the settings of `generate` |
//! | `tensors` | names and shapes of tensors |
//! | `read` | a folder as a model of Attend's |
//! | `write` | the files of an export |

mod config;
mod family;
mod generation;
mod read;
mod tensors;
mod write;

pub(crate) use family::Family;
pub(crate) use generation::expressible;
pub(crate) use read::open;
pub use read::parse_hub_config;
pub(crate) use write::files;
