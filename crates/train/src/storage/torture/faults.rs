use std::cell::Cell;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use attend_comm::Solo;
use attend_data::Paths;
use attend_infer::run::{LockState, RunFolder};
use attend_model::Kernels;
use candle_core::Device;

use super::super::disk::Action;
use super::super::{Journal, Lock, clean_up, is_temporary, leftovers};
use super::{newest, save, watched};
use crate::config::TrainConfig;
use crate::log::Log;
use crate::tensorboard::tests::{file, read, step};
use crate::{Compute, Config, OnSaveError, Result, Run, Start, Stop, train};

/// How a file operation goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The process is killed before it.
    Kill,
    /// The process is killed in the middle of it, if it is a write.
    KillHalfway,
    /// It fails, once.
    Error(i32),
    /// Half of it is written, then the disk is full for this and all later writes.
    Full,
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

const FAULTS: [Fault; 5] = [
    Fault::Kill,
    Fault::KillHalfway,
    Fault::Error(EIO),
    Fault::Error(ENOSPC),
    Fault::Full,
];

impl Fault {
    fn strike(self, action: Action) -> io::Result<()> {
        let half = |path: &Path, bytes: &[u8]| fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        match (self, action) {
            (Fault::Kill, _) => resume_unwind(Box::new("killed")),
            (Fault::KillHalfway, action) => {
                if let Action::Write(path, bytes) = action {
                    half(path, bytes);
                }
                resume_unwind(Box::new("killed"))
            }
            (Fault::Error(code), _) => Err(io::Error::from_raw_os_error(code)),
            (Fault::Full, Action::Write(path, bytes)) => {
                half(path, bytes);
                Err(io::Error::from_raw_os_error(ENOSPC))
            }
            (Fault::Full, Action::MakeFolder(_) | Action::Append(..) | Action::Link(..)) => {
                Err(io::Error::from_raw_os_error(ENOSPC))
            }
            (Fault::Full, Action::Open(path)) if !path.exists() => {
                Err(io::Error::from_raw_os_error(ENOSPC))
            }
            (Fault::Full, _) => Ok(()),
        }
    }

    /// Does some work in which operation number `at` fails. `None` if it was killed.
    fn during<T>(self, at: usize, work: impl FnOnce() -> T) -> Option<T> {
        let mut count = 0;
        let watch = move |action: Action| {
            count += 1;
            let now = count - 1 == at || (self == Fault::Full && count > at);
            if now { self.strike(action) } else { Ok(()) }
        };
        catch_unwind(AssertUnwindSafe(|| watched(watch, work))).ok()
    }
}

#[test]
fn a_fault_at_any_point_of_a_save_leaves_the_old_checkpoint_or_the_new_one_whole() {
    let mut tried = 0;
    // The new checkpoint is the best, so that the old one is removed; or it is not, so that both stay; or it
    // replaces one of the same step.
    let cases = [(10, false), (20, false), (20, true)];
    for ((best, again), fault) in cases.iter().flat_map(|case| FAULTS.map(|f| (*case, f))) {
        for at in 0..=actions_of_a_save(best, again) {
            let root = tempfile::tempdir().unwrap();
            let folder = root.path();
            save(folder, 10, 10).unwrap();
            if again {
                save(folder, 20, 10).unwrap();
            }
            let outcome = fault.during(at, || save(folder, 20, best));
            let what = format!("{fault:?} at {at}, best {best}, again {again}: {outcome:?}");
            let found = newest(folder);
            match &outcome {
                Some(Ok(())) => assert_eq!(found, Some(20), "{what}"),
                _ => assert!(found == Some(10) || found == Some(20), "{what}: {found:?}"),
            }
            let names = || {
                fs::read_dir(folder)
                    .unwrap()
                    .map(|e| e.unwrap().file_name())
            };
            let left = || {
                names()
                    .filter(|n| is_temporary(&n.to_string_lossy()))
                    .count()
            };
            // A process that was not killed cleans up, unless the removal is what fails.
            let removes =
                matches!(&outcome, Some(Err(error)) if error.to_string().contains("checkpoint-10"));
            if outcome.is_some() && !removes {
                assert_eq!(left(), 0, "{what}");
            }
            clean_up(folder).unwrap();
            let found = if again { Some(20) } else { found };
            assert_eq!((left(), newest(folder)), (0, found), "{what}");
            for link in ["last", "best"] {
                assert!(
                    folder.join(link).join("manifest.json").exists(),
                    "{what}: {link}"
                );
            }
            save(folder, 30, 30).unwrap();
            assert_eq!(newest(folder), Some(30), "{what}");
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried} faults were tried");
}

/// The number of file operations of a save.
fn actions_of_a_save(best: u64, again: bool) -> usize {
    let root = tempfile::tempdir().unwrap();
    save(root.path(), 10, 10).unwrap();
    if again {
        save(root.path(), 20, 10).unwrap();
    }
    count_actions(|| save(root.path(), 20, best).unwrap())
}

fn count_actions(work: impl FnOnce()) -> usize {
    let count = Rc::new(Cell::new(0));
    let counter = count.clone();
    let watch = move |_: Action| {
        counter.set(counter.get() + 1);
        Ok(())
    };
    watched(watch, work);
    count.get()
}

#[test]
fn a_fault_while_a_run_is_opened_loses_no_line_and_leaves_no_lock() {
    let open = |run: &RunFolder, line: &str| -> Result<()> {
        let _lock = Lock::acquire(run)?;
        Journal::open(&run.log_path())?.append(line)
    };
    let root = tempfile::tempdir().unwrap();
    let run = RunFolder::new(root.path());
    let actions = count_actions(|| open(&run, "line").unwrap());
    let mut refused = String::new();
    for (fault, at) in FAULTS
        .iter()
        .flat_map(|f| (0..actions).map(move |at| (f, at)))
    {
        let root = tempfile::tempdir().unwrap();
        let run = RunFolder::new(root.path());
        open(&run, "before").unwrap();
        let outcome = fault.during(at, || open(&run, "during"));
        let what = format!("{fault:?} at {at}: {outcome:?}");
        assert_eq!(run.lock(), LockState::Free, "{what}");
        open(&run, "after").unwrap_or_else(|error| panic!("{what}: {error}"));
        let log = fs::read_to_string(run.log_path()).unwrap();
        match outcome {
            Some(Ok(())) => assert_eq!(log, "before\nduring\nafter\n", "{what}"),
            Some(Err(error)) => refused += &format!("{error}\n"),
            None => {}
        }
        assert!(
            log.starts_with("before\n") && log.ends_with("after\n"),
            "{what}: {log}"
        );
    }
    for name in [".lock", "metrics.jsonl"] {
        assert!(refused.contains(&format!("{name}: ")), "{name}: {refused}");
    }
}

#[test]
fn a_log_keeps_every_line_once_whatever_the_disk_refuses() {
    for fault in [Fault::Error(EIO), Fault::Error(ENOSPC), Fault::Full] {
        for at in 0..8 {
            let root = tempfile::tempdir().unwrap();
            let path = root.path().join("metrics.jsonl");
            let mut journal = Journal::open(&path).unwrap();
            fault.during(at, || {
                for line in 0..4 {
                    let _ = journal.append(&format!("line {line}"));
                    let _ = journal.sync();
                }
            });
            // Half a line, as a failed write leaves it.
            let whole = fs::read(&path).unwrap();
            fs::write(&path, [&whole[..], b"lin"].concat()).unwrap();
            journal.append("line 4").unwrap();
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(
                text, "line 0\nline 1\nline 2\nline 3\nline 4\n",
                "{fault:?} {at}"
            );
        }
    }
}

#[test]
fn tensorboard_has_every_step_once_whatever_the_disk_refuses() {
    let config = TrainConfig {
        on_save_error: OnSaveError::Warn,
        ..TrainConfig::default()
    };
    let event = |number: u64| serde_json::from_str(&step(number)).unwrap();
    let mut refused = 0;
    for fault in [Fault::Error(EIO), Fault::Error(ENOSPC), Fault::Full] {
        for at in 0..16 {
            let root = tempfile::tempdir().unwrap();
            let run = RunFolder::new(root.path());
            let mut log = Log::open(&run, 0, 10, &config).unwrap();
            log.event(&event(1)).unwrap();
            drop(log);
            let resumed = fault.during(at, || {
                let mut log = Log::open(&run, 1, 10, &config)?;
                (2..5).try_for_each(|number| log.event(&event(number)))?;
                Ok::<_, crate::Error>(log)
            });
            // The log itself could not be opened.
            let Some(Ok(mut log)) = resumed else {
                refused += 1;
                continue;
            };
            log.event(&event(5)).unwrap();
            let found = read(&file(&run));
            let losses = found.iter().filter(|(_, tag, _)| tag == "train/loss");
            let steps: Vec<i64> = losses.map(|(step, ..)| *step).collect();
            assert_eq!(steps, [1, 2, 3, 4, 5], "{fault:?} at {at}");
        }
    }
    assert!(refused <= 3, "{refused}");
}

/// A corpus and the config of a training of 30 steps that saves every 10 steps.
fn config(folder: &Path) -> Config {
    for side in ["a", "b"] {
        let lines: String = (0..40).map(|i| format!("one two {i}\n")).collect();
        fs::write(folder.join(format!("train.{side}")), lines).unwrap();
    }
    let text = format!(
        "out = {:?}\n[data]\nsource = \"a\"\ntarget = \"b\"\ntrain = {:?}\nvalid = {:?}\nbatch_tokens = 50\n\
         [model.transformer]\nencoder_layers = 1\ndecoder_layers = 1\nd_model = 8\nheads = 1\nd_ff = 8\n\
         [train]\nsteps = 30\nsave_every = 10\nkeep = 10\nlog_every = 1\n\
         validate_every = 20\ntranslate_sentences = 0\n",
        folder.join("run"),
        folder.join("train"),
        folder.join("train"),
    );
    toml::from_str(&text).unwrap()
}

fn start(config: Config) -> Result<Run> {
    let compute = Compute {
        memory: None,
        device: Device::Cpu,
        kernels: Kernels::Fused,
        comm: Arc::new(Solo),
    };
    Run::start(config, Start::New, compute)
}

#[test]
fn a_start_with_unreadable_data_writes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let good = config(root.path());
    fs::write(root.path().join("bad.a"), "one\n").unwrap();
    fs::write(root.path().join("bad.b"), "one\ntwo\n").unwrap();
    type Change = fn(&mut Config, Paths);
    let changes: [(&str, Change); 3] = [
        ("train", |config, paths| config.data.train = Some(paths)),
        ("valid", |config, paths| config.data.valid = Some(paths)),
        ("test", |config, paths| config.data.test = Some(paths)),
    ];
    for (name, change) in changes {
        for corpus in ["missing", "bad"] {
            let mut config = good.clone();
            change(&mut config, root.path().join(corpus).into());
            let out = config.out.clone();
            let actions = count_actions(|| assert!(start(config).is_err()));
            // A pair of files is read when the folder is known to be writable, by a file that is removed again.
            assert!(
                actions <= if corpus == "missing" { 0 } else { 3 },
                "{corpus} {name}"
            );
            assert!(!out.exists(), "{corpus} {name}");
        }
    }
    assert!(count_actions(|| drop(start(good).unwrap())) > 0);
}

/// A training for which the disk is full at checkpoint 20 and two lines of the log.
fn train_on_a_full_disk(folder: &Path, on_save_error: OnSaveError) -> Result<Run> {
    let mut config = config(folder);
    config.train.on_save_error = on_save_error;
    let mut run = start(config)?;
    let watch = move |action: Action| match action {
        Action::Write(path, _) if path.to_string_lossy().contains("checkpoint-20") => {
            Fault::Full.strike(action)
        }
        Action::Append(_, lines) => {
            let lines = String::from_utf8_lossy(lines);
            let refused = lines.contains("\"step\":15,") && !lines.contains("\"step\":17,");
            if refused && on_save_error == OnSaveError::Warn {
                Fault::Full.strike(action)
            } else {
                Ok(())
            }
        }
        _ => Ok(()),
    };
    watched(watch, || train(&mut run, &Stop::default()))?;
    Ok(run)
}

#[test]
fn a_disk_that_is_full_for_a_while_costs_one_checkpoint_or_stops_the_run_as_the_config_says() {
    let root = tempfile::tempdir().unwrap();
    let run = train_on_a_full_disk(root.path(), OnSaveError::Warn).unwrap();
    let folder = root.path().join("run");
    let steps = || RunFolder::new(&folder).steps().unwrap();
    assert_eq!((run.state.step, steps()), (30, vec![0, 10, 30]));
    // The best model, of step 20, could not be saved, so `best` does not name it.
    let best = run.state.best.map(|best| best.step);
    assert!(best == Some(30) && folder.join("best/manifest.json").exists());
    let log = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let lines = log
        .lines()
        .filter(|line| line.contains("\"event\":\"step\""));
    assert_eq!(lines.count(), 30, "every line is there, once");
    drop(run);

    let root = tempfile::tempdir().unwrap();
    let Err(error) = train_on_a_full_disk(root.path(), OnSaveError::Stop) else {
        panic!("it should have stopped");
    };
    let folder = root.path().join("run");
    let text = error.to_string();
    assert!(
        text.contains("cannot write") && text.contains("checkpoint-20"),
        "{text}"
    );
    assert_eq!(newest(&folder), Some(10));
    assert!(leftovers(&folder).unwrap().is_empty());
}
