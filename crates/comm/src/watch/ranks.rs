use std::fmt;

/// All ranks of the job, and which of them this is.
pub(crate) struct Ranks {
    pub(crate) me: usize,
    hosts: Vec<String>,
}

impl Ranks {
    /// Ranks on these machines.
    pub(crate) fn new(me: usize, hosts: Vec<String>) -> Self {
        Self { me, hosts }
    }

    pub(crate) fn size(&self) -> usize {
        self.hosts.len()
    }

    /// Those that exchange heartbeats with this one.
    pub(crate) fn peers(&self) -> impl Iterator<Item = usize> + use<> {
        match self.me {
            0 => 1..self.size(),
            _ => 0..1,
        }
    }

    /// For people: `rank 2 of 4 (HOST)`.
    pub(crate) fn name(&self, rank: usize) -> impl fmt::Display {
        let (size, host) = (self.size(), &self.hosts[rank]);
        format!("rank {rank} of {size} ({host})")
    }
}
