//! The page of `infer serve` in a real browser: Chromium, driven by chromedriver. Where these are not installed, the
//! tests say so and pass, unless the environment variable `ATTEND_BROWSER` is `require`.
#![cfg(feature = "serve")]

#[path = "../infer/fixture.rs"]
#[allow(dead_code)] // the other tests use all of it
mod fixture; // a tiny bundle with random weights

mod attention; // pointing at words
mod browser; // a session of Chromium
mod errors; // what the server refuses, and a server that is gone
mod files; // files, line by line
mod http; // requests to chromedriver and to the server
mod menu; // other words, with the keyboard
mod modules; // the page's modules by themselves
mod server; // `infer serve` with tiny models
mod translation; // typing, choosing and comparing models
