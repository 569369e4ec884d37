//! Files of the Hugging Face Hub: downloads into the cache that Python's `huggingface_hub` uses too, and
//! uploads. This is the only crate that opens network connections.
//!
//! | file | contents |
//! |---|---|
//! | `path` | `hf://[datasets/]OWNER/NAME[@REVISION][/PATH]` |
//! | `settings` | the environment variables, and the token |
//! | `hub` | one file, or files of one commit: from the cache or downloaded |
//! | `upload` | one commit with files |
//! | `cache` | the folders and links of the cache |
//! | `download` | a body to a file, if its size, hash and speed are right |
//! | `digest` | the two kinds of hashes that the hub uses |
//! | `endpoint` | the hub's address, and what is the same host |
//! | `http` | requests for files |
//! | `api` | requests through `hf-hub`: listings and commits |
//! | `progress` | who shows a transfer |
//! | `testing` | a hub on loopback, with faults, for tests |
//!
//! ```no_run
//! use attend_hub::{Hub, HubPath};
//!
//! # fn main() -> attend_hub::Result<()> {
//! let hub = Hub::from_env()?;
//! if let Some(path) = HubPath::parse("hf://datasets/owner/name/train.en")? {
//!     let file = hub.file(&path, &())?;
//!     assert!(file.is_file());
//! }
//! # Ok(())
//! # }
//! ```

mod api;
mod cache;
mod digest;
mod download;
mod endpoint;
mod error;
mod http;
mod hub;
mod path;
mod progress;
mod settings;
#[cfg(feature = "testing")]
pub mod testing;
mod upload;

pub use error::{Error, Result};
pub use hub::{Hub, Snapshot};
pub use path::{HubPath, Kind, SCHEME};
pub use progress::{Progress, Transfer};
pub use settings::{Settings, Token};
pub use upload::{UploadOptions, Uploaded};
