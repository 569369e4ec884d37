//! Integration tests of the library's public API and of the `infer` binary.

mod attend; // attention maps, and the command that draws them
mod bundle; // reading bundles, complete and damaged
mod command; // the binary's output, error messages and exit codes
mod constraints; // prefixes, and phrases that are forbidden or required
mod fixture; // a tiny bundle with random weights
mod hardening; // what attacks have found
mod heatmap; // layout, scripts and escaping of labels
#[cfg(feature = "hub")]
mod hub; // models on the Hugging Face Hub
mod marian; // models of transformers, read and written
mod search_options; // each option of search, wherever it is set
mod torch; // files of torch.save, whole, damaged and hostile
mod translate; // translating and evaluating lines
mod weights; // the weights of a folder, in one file or in shards
