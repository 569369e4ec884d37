//! The `train` binary, as a user meets it.

mod alignment; // what a trained attention looks at
mod curves; // curves, reports and files for TensorBoard
mod data; // corpora: checked, prepared, mixed and changed
mod defence; // numbers that are not finite, batches that are too large
mod errors; // what a user can get wrong
mod hardening; // what attacks have found
mod history; // every system of configs/history
#[cfg(feature = "hub")]
mod hub; // data and models on the Hugging Face Hub
mod init; // training that starts from another model, and frozen weights
mod isa; // versions of the kernels, and which give the same bits
mod keys; // keys without effect, and keys with old names
mod pictures; // sources that are pictures
mod ranges; // the range of every number in a config
mod ranks;
mod regularizers; // what small corpora need // several processes that train together
mod resume; // stopped, killed and resumed runs end with the same bits
mod sequences; // random sequences of kills, resumptions, changes and damage
mod synthetic; // training data that a model writes
mod tiny; // a corpus, a config and the binary, for the others
mod tools; // doctor, diff, verify-resume, and damage of every kind
mod training; // what training does, end to end
