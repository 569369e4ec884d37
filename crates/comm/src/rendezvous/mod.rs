//! Ranks that find each other, and watch each other, by files in a folder that all of them see. For clusters whose
//! launcher starts processes, but without an MPI library.

mod files;
mod heart;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::watch::{Ranks, Timeout};
use crate::{Error, Result};
use files::Files;
use heart::Heart;

const TICK: Duration = Duration::from_millis(50);
/// How long ranks wait for each other at the start.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Ranks that have found each other. A heartbeat ends the process if another one is lost, until [`Meeting::finish`].
pub struct Meeting {
    token: Vec<u8>,
    heart: Heart,
}

impl Meeting {
    /// Waits until `size` ranks have come to the folder, for at most `patience`. The first one brings a token, which
    /// all of them get. What an earlier job has left in the folder does no harm.
    pub fn new(
        folder: &Path,
        rank: usize,
        size: usize,
        patience: Duration,
        token: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let timeout = Timeout::of(|name| std::env::var(name).ok())?;
        let files = Files::new(folder, rank, size)?;
        let end = Instant::now() + patience;
        let (token, hosts) = match rank {
            0 => files.invite(&token()?, end)?,
            _ => files.accept(end)?,
        };
        let heart = Heart::start(files, Ranks::new(rank, hosts), timeout)?;
        Ok(Self { token, heart })
    }

    /// What the first rank has brought.
    pub fn token(&self) -> &[u8] {
        &self.token
    }

    /// Stops the heartbeat. The other ranks are told that this one has ended in good order.
    pub fn finish(self) {
        self.heart.finish();
    }
}

impl Files {
    /// Offers the token to the others, until all of them have taken it.
    fn invite(&self, token: &[u8], end: Instant) -> Result<(Vec<u8>, Vec<String>)> {
        let mut offered = String::new();
        loop {
            let hellos = (1..self.size).map(|rank| self.read("hello", rank));
            let hellos: Vec<Option<String>> = hellos.collect();
            if hellos.iter().all(Option::is_some) {
                let all =
                    std::iter::once(self.name.clone()).chain(hellos.iter().flatten().cloned());
                let all: Vec<String> = all.collect();
                let offer = format!("{}\n{}", hex(token), all.join("\n"));
                if offer != offered {
                    self.write("offer", 0, &offer)?;
                    offered = offer;
                }
                if (1..self.size).all(|rank| self.read("taken", rank).as_ref() == Some(&offered)) {
                    return Ok((token.to_vec(), hosts(&all)));
                }
            }
            let missing = || {
                let come = hellos.iter().filter(|hello| hello.is_some()).count();
                format!("{} of {} ranks have come", come + 1, self.size)
            };
            self.wait(end, missing)?;
        }
    }

    /// Takes the token that is offered to this rank.
    fn accept(&self, end: Instant) -> Result<(Vec<u8>, Vec<String>)> {
        self.write("hello", self.rank, &self.name)?;
        loop {
            if let Some(offer) = self.read("offer", 0) {
                let mut lines = offer.lines();
                let token = lines.next().and_then(from_hex);
                let all: Vec<String> = lines.map(String::from).collect();
                // An offer of an earlier job has another name for this rank.
                if let (Some(token), Some(name)) = (token, all.get(self.rank))
                    && *name == self.name
                    && all.len() == self.size
                {
                    self.write("taken", self.rank, &offer)?;
                    return Ok((token, hosts(&all)));
                }
            }
            self.wait(end, || "the first rank has not come".into())?;
        }
    }

    fn wait(&self, end: Instant, problem: impl FnOnce() -> String) -> Result<()> {
        if Instant::now() < end {
            thread::sleep(TICK);
            return Ok(());
        }
        Err(Error::Rendezvous {
            folder: self.folder().into(),
            problem: problem(),
        })
    }
}

/// The machines in the names of ranks.
fn hosts(names: &[String]) -> Vec<String> {
    let host = |name: &String| name.split(' ').next().unwrap_or_default().to_string();
    names.iter().map(host).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = |i: usize| u8::from_str_radix(text.get(i..i + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(digits).collect()
}
