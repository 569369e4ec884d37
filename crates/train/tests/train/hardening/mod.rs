//! What attacks on the command line have found. Every test fails with the binary of commit cfc49ae; to see that, set
//! `ATTEND_TRAIN` to its path.

mod folders;
mod input;
mod screen;
mod signals;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::errors::refuses;
use crate::tiny::{Tiny, signal, wait_for_step};

const RUN: [&str; 2] = ["run", "config.toml"];

/// Waits for a process that must end in time.
fn finish_within(seconds: u64, mut child: Child) -> Output {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(seconds) {
            child.kill().unwrap();
            let talk = text(&child.wait_with_output().unwrap().stderr);
            panic!("still running after {seconds} seconds: {talk}");
        }
        sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must end in time; returns what it said.
fn talk_of(tiny: &Tiny, seconds: u64, arguments: &[&str]) -> String {
    let child = tiny.command(arguments).spawn().unwrap();
    text(&finish_within(seconds, child).stderr)
}

/// Makes a line of `words` words the last of both sides of a corpus.
fn add_line(tiny: &Tiny, corpus: &str, words: usize) {
    for (side, word) in [("a", "one "), ("b", "eins ")] {
        let name = format!("{corpus}.{side}");
        let lines = text(&tiny.read(&name));
        tiny.write(&name, lines + &word.repeat(words) + "\n");
    }
}
