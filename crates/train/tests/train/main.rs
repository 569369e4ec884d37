//! The `train` binary, as a user meets it.

mod errors; // what a user can get wrong
mod resume; // stopped, killed and resumed runs end with the same bits
mod tiny; // a corpus, a config and the binary, for the others
mod training; // what training does, end to end
