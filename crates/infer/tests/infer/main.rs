//! Integration tests of the library's public API and of the `infer` binary.

mod alignments; // which words come from which
mod attend; // attention maps, and the command that draws them
mod bundle; // reading bundles, complete and damaged
#[cfg(feature = "pictures")]
mod captions; // models whose sources are pictures
mod columns; // columns of tables as input
mod command; // the binary's output, error messages and exit codes
mod compare; // systems on one test set, and their differences
mod constraints; // prefixes, and phrases that are forbidden or required
mod document; // sentences, long lines, markup and protected text with the binary
mod ensemble; // several models as one
mod evaluate; // scores of models and of files
mod fixture; // a tiny bundle with random weights
mod hardening; // what attacks have found
mod heatmap; // layout, scripts and escaping of labels
#[cfg(feature = "hub")]
mod hub; // models on the Hugging Face Hub
mod marian; // models of transformers, read and written
mod pipes; // what comes in through pipes, however long, slow or broken
mod quantize; // bundles in 8 bits
mod score; // the log-probabilities of given translations
mod search_options; // each option of search, wherever it is set
#[cfg(feature = "serve")]
mod served; // what a server asks of models
mod torch; // files of torch.save, whole, damaged and hostile
mod translate; // translating and evaluating lines
mod tune; // search settings that are chosen on validation data
mod weights; // the weights of a folder, in one file or in shards
mod words; // sentences with their words shaded by attention
