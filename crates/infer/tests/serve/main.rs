//! Integration tests of `infer serve`: the real program, spoken to over sockets.
#![cfg(all(feature = "serve", unix))]

mod abuse; // what clients should not do
mod access; // keys, hosts and origins
mod client; // requests and answers as bytes
mod endpoints; // every path, as it should be used
#[allow(dead_code)] // shared with other tests, which use more of it
#[path = "../infer/fixture.rs"]
mod fixture; // a tiny bundle with random weights
mod libretranslate; // LibreTranslate's paths, answers and errors
mod server; // a running server
mod shutdown; // signals, kills and restarts
