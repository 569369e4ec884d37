//! Tests of a run in which an operation fails, the process is killed or the power is lost, at every file operation
//! of a save.

mod faults; // operations that fail, and kills
mod power; // loss of what was not synced

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use attend_infer::run::{Best, Provenance, RunFolder, TrainerState};
use candle_core::{Device, Tensor};

use super::disk::Action;
use crate::checkpoint::{Checkpoints, Content};
use crate::{Config, Result};

type Watch = Box<dyn FnMut(Action) -> io::Result<()>>;

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Tells the observer of this thread, which may make the operation fail.
pub(super) fn announce(action: Action) -> io::Result<()> {
    WATCH.with_borrow_mut(|watch| match watch {
        Some(watch) => watch(action),
        None => Ok(()),
    })
}

/// Does some work with an observer.
fn watched<T>(
    watch: impl FnMut(Action) -> io::Result<()> + 'static,
    work: impl FnOnce() -> T,
) -> T {
    WATCH.set(Some(Box::new(watch)));
    let result = catch_unwind(AssertUnwindSafe(work));
    WATCH.set(None);
    result.unwrap_or_else(|killed| resume_unwind(killed))
}

/// A small checkpoint of this step.
fn save(folder: &Path, step: u64, best: u64) -> Result<()> {
    let text = "out = \"run\"\n[data]\nsource = \"a\"\ntarget = \"b\"\ntrain = \"train\"\n";
    let config: Config = toml::from_str(text).unwrap();
    let state = TrainerState {
        step,
        best: Some(Best {
            step: best,
            value: 1.0,
        }),
        ..TrainerState::default()
    };
    let provenance = Provenance {
        program: "test".into(),
        target: "test".into(),
        computed: "test".into(),
        isa: "test".into(),
        ranks: 1,
        config: String::new(),
        data: String::new(),
        corpora: Vec::new(),
        validation: None,
        tokenizers: BTreeMap::new(),
    };
    let tensor = Tensor::new(&[step as f32; 50], &Device::Cpu)?;
    let content = Content {
        state: &state,
        provenance: &provenance,
        config: &config,
        bundle: vec![("model.safetensors".into(), vec![step as u8; 700])],
        optimizer: &BTreeMap::from([("m".to_string(), tensor)]),
    };
    let checkpoints = Checkpoints::of(&RunFolder::new(folder));
    checkpoints.write(content)?;
    checkpoints.update_links(&state)?;
    checkpoints.remove_old(&state, 1)
}

fn newest(folder: &Path) -> Option<u64> {
    let newest = RunFolder::new(folder).newest();
    newest.ok().map(|checkpoint| checkpoint.state.step)
}
