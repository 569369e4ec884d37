//! Bundles, translation and the `infer` command, from outside.

mod attend; // what attends to what: weights, and the command that draws them
mod bundle; // files in a folder to a model, and what may be wrong with them
mod command; // the binary: what it prints, where, and its exit codes
mod fixture; // a tiny bundle of random weights
mod heatmap; // pictures of any labels
mod translate; // lines in, lines out
