//! Integration tests of the library's public API and of the `infer` binary.

mod attend; // attention maps, and the command that draws them
mod bundle; // reading bundles, complete and damaged
mod command; // the binary's output, error messages and exit codes
mod fixture; // a tiny bundle with random weights
mod hardening;
mod heatmap; // layout, scripts and escaping of labels
mod marian; // what attacks have found
mod torch; // files of torch.save, whole, damaged and hostile
mod translate; // translating and evaluating lines
mod weights; // the weights of a folder, in one file or in shards
