//! A run: the folder that `train` writes, read and verified. Nothing here writes.
//!
//! | file | what it reads |
//! |---|---|
//! | `folder` | the run's folder: its config, checkpoints and links |
//! | `checkpoint` | one `checkpoint-<step>/` |
//! | `state` | `trainer_state.json` |
//! | `provenance` | `provenance.json` |
//! | `event_log` | `metrics.jsonl`, line by line |
//! | `event` | one of its lines |
//! | `lock` | whether a process is training in the folder |
//! | `times` | logs and states without what may differ between equal runs, for comparing them |

mod checkpoint;
mod event;
mod event_log;
mod folder;
mod lock;
mod provenance;
mod state;
mod times;

pub use checkpoint::Checkpoint;
pub use event::{
    Event, Sample, Skipped, Spike, Step, TestScores, TimedEvent, Validation, abbreviated,
};
pub use event_log::{EventLog, Header, Line};
pub use folder::{Content, EVENT_FILE, Link, LinkTarget, RunFolder};
pub use lock::LockState;
pub use provenance::{CorpusProvenance, Provenance};
pub use state::{Best, Health, LogWindow, TrainerState};
