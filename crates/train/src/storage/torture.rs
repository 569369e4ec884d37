//! What becomes of a run when the disk refuses, the process dies or the power goes, at every single
//! thing that saving asks of the disk.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use attend_data::Position;
use attend_ops::random::mix;
use candle_core::{Device, Tensor};

use super::disk::Action;
use super::{Journal, clean, is_temporary, make_folder, write_file};
use crate::{Best, Checkpoints, Config, Content, Health, Provenance, Result, State, Unlogged};

type Watch = Box<dyn FnMut(Action) -> io::Result<()>>;

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Asks whoever watches this thread.
pub(super) fn announce(action: Action) -> io::Result<()> {
    WATCH.with_borrow_mut(|watch| match watch {
        Some(watch) => watch(action),
        None => Ok(()),
    })
}

/// Does some work under someone's eyes.
fn watched<T>(
    watch: impl FnMut(Action) -> io::Result<()> + 'static,
    work: impl FnOnce() -> T,
) -> T {
    WATCH.set(Some(Box::new(watch)));
    let result = catch_unwind(AssertUnwindSafe(work));
    WATCH.set(None);
    result.unwrap_or_else(|killed| resume_unwind(killed))
}

/// A checkpoint of this step, with little in it.
fn save(folder: &Path, step: u64, best: u64) -> Result<()> {
    let text = "out = \"run\"\n[data]\nsource = \"a\"\ntarget = \"b\"\ntrain = \"train\"\n";
    let config: Config = toml::from_str(text).unwrap();
    let state = State {
        step,
        position: Position::START,
        tokens: 0,
        seconds: 0.0,
        best: Some(Best {
            step: best,
            value: 1.0,
        }),
        without_improvement: 0,
        unlogged: Unlogged::default(),
        health: Health::default(),
    };
    let provenance = Provenance {
        program: "test".into(),
        target: "test".into(),
        config: String::new(),
        data: String::new(),
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
    Checkpoints::of(folder).save(content, 1).map(drop)
}

fn newest(folder: &Path) -> Option<u64> {
    let newest = Checkpoints::of(folder).newest();
    newest.ok().map(|checkpoint| checkpoint.state.step)
}

/// How a thing that was asked of the disk goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The process is killed before it.
    Kill,
    /// The process is killed in the middle of it, if it is a write.
    KillHalfway,
    /// It fails, once.
    Error(i32),
    /// Half of it is written, and then there is no room, for this and whatever else wants some.
    Full,
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

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
            (Fault::Full, _) => Ok(()),
        }
    }

    /// Does some work in which this strikes at action number `at`; `None` if it was killed.
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
    let faults = [
        Fault::Kill,
        Fault::KillHalfway,
        Fault::Error(EIO),
        Fault::Error(ENOSPC),
        Fault::Full,
    ];
    let mut tried = 0;
    // The new one is the best, so that the old one is removed; or it is not, so that both stay.
    for (best, fault) in [10, 20].iter().flat_map(|b| faults.map(|f| (*b, f))) {
        for at in 0..=actions_of_a_save(best) {
            let root = tempfile::tempdir().unwrap();
            let folder = root.path();
            save(folder, 10, 10).unwrap();
            let outcome = fault.during(at, || save(folder, 20, best));
            let what = format!("{fault:?} at action {at}, best {best}: {outcome:?}");
            let found = newest(folder);
            match &outcome {
                Some(Ok(())) => assert_eq!(found, Some(20), "{what}"),
                _ => assert!(found == Some(10) || found == Some(20), "{what}: {found:?}"),
            }
            for link in ["last", "best"] {
                assert!(
                    folder.join(link).join("manifest.json").exists(),
                    "{what}: {link}"
                );
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
            // An error in removing what is to be removed leaves it for the next start to clean.
            if matches!(fault, Fault::Full) {
                assert_eq!(left(), 0, "{what}");
            }
            clean(folder).unwrap();
            assert_eq!((left(), newest(folder)), (0, found), "{what}");
            save(folder, 30, 30).unwrap();
            assert_eq!(newest(folder), Some(30), "{what}");
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried} faults were tried");
}

/// How many things a save asks of the disk.
fn actions_of_a_save(best: u64) -> usize {
    let root = tempfile::tempdir().unwrap();
    save(root.path(), 10, 10).unwrap();
    let count = std::rc::Rc::new(std::cell::Cell::new(0));
    let counter = count.clone();
    let watch = move |_: Action| {
        counter.set(counter.get() + 1);
        Ok(())
    };
    watched(watch, || save(root.path(), 20, best)).unwrap();
    count.get()
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
            // Half a line, as a write that fails halfway leaves it.
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

/// A disk as the power leaves it: of what was not synced, any part may be there.
#[derive(Clone, Debug)]
enum Node {
    File {
        content: Vec<u8>,
        synced: Vec<u8>,
    },
    Folder {
        entries: BTreeMap<String, usize>,
        synced: BTreeMap<String, usize>,
        pending: Vec<Change>,
    },
    Link(String),
}

#[derive(Clone, Debug)]
enum Change {
    Set(String, usize),
    Unset(String),
    Move(String, String, usize),
}

#[derive(Clone)]
struct Disk {
    root: PathBuf,
    nodes: Vec<Node>,
}

/// What [`Action`] says, to be gone through later.
#[derive(Clone, Debug)]
enum Recorded {
    MakeFolder(PathBuf),
    Write(PathBuf, Vec<u8>),
    Append(PathBuf, Vec<u8>),
    Truncate(PathBuf, u64),
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
    Link(String, PathBuf),
    Remove(PathBuf),
    /// A checkpoint of this step was reported as saved.
    Saved(u64),
}

impl Recorded {
    fn of(action: Action) -> Self {
        let own = Path::to_path_buf;
        match action {
            Action::MakeFolder(path) => Self::MakeFolder(own(path)),
            Action::Write(path, bytes) => Self::Write(own(path), bytes.to_vec()),
            Action::Append(path, bytes) => Self::Append(own(path), bytes.to_vec()),
            Action::Truncate(path, length) => Self::Truncate(own(path), length),
            Action::Sync(path) => Self::Sync(own(path)),
            Action::Rename(from, to) => Self::Rename(own(from), own(to)),
            Action::Link(name, link) => Self::Link(name.to_string(), own(link)),
            Action::RemoveFile(path) | Action::RemoveFolder(path) => Self::Remove(own(path)),
        }
    }
}

impl Disk {
    fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            nodes: vec![Self::folder()],
        }
    }

    fn folder() -> Node {
        Node::Folder {
            entries: BTreeMap::new(),
            synced: BTreeMap::new(),
            pending: Vec::new(),
        }
    }

    fn find(&self, path: &Path) -> Option<usize> {
        let parts = path.strip_prefix(&self.root).unwrap();
        let mut node = 0;
        for part in parts {
            let Node::Folder { entries, .. } = &self.nodes[node] else {
                panic!("{} is in no folder", path.display());
            };
            node = *entries.get(part.to_str().unwrap())?;
        }
        Some(node)
    }

    fn change(&mut self, path: &Path, change: Change) {
        let parent = self.find(path.parent().unwrap()).unwrap();
        let Node::Folder {
            entries, pending, ..
        } = &mut self.nodes[parent]
        else {
            panic!("{} is in no folder", path.display());
        };
        change.apply(entries);
        pending.push(change);
    }

    fn add(&mut self, path: &Path, node: Node) {
        self.nodes.push(node);
        self.change(path, Change::Set(name(path), self.nodes.len() - 1));
    }

    fn file(&mut self, path: &Path) -> &mut Vec<u8> {
        if self.find(path).is_none() {
            let (content, synced) = (Vec::new(), Vec::new());
            self.add(path, Node::File { content, synced });
        }
        let file = self.find(path).unwrap();
        match &mut self.nodes[file] {
            Node::File { content, .. } => content,
            other => panic!("{}: {other:?}", path.display()),
        }
    }

    fn perform(&mut self, action: &Recorded) {
        match action {
            Recorded::MakeFolder(path) => self.add(path, Self::folder()),
            Recorded::Write(path, bytes) => *self.file(path) = bytes.clone(),
            Recorded::Append(path, bytes) => self.file(path).extend(bytes),
            Recorded::Truncate(path, length) => self.file(path).truncate(*length as usize),
            Recorded::Link(to, path) => self.add(path, Node::Link(to.clone())),
            Recorded::Remove(path) => self.change(path, Change::Unset(name(path))),
            Recorded::Rename(from, to) => {
                let node = self.find(from).unwrap();
                self.change(from, Change::Move(name(from), name(to), node));
            }
            Recorded::Sync(path) => {
                let node = self.find(path).unwrap();
                match &mut self.nodes[node] {
                    Node::File { content, synced } => synced.clone_from(content),
                    Node::Folder {
                        entries,
                        synced,
                        pending,
                    } => {
                        synced.clone_from(entries);
                        pending.clear();
                    }
                    Node::Link(_) => {}
                }
            }
            Recorded::Saved(_) => {}
        }
    }

    /// Writes what is left, as chance has it, into a real folder.
    fn lose_power(&self, node: usize, path: &Path, chance: &mut Chance) {
        match &self.nodes[node] {
            Node::File { content, synced } if content == synced => {
                fs::write(path, content).unwrap()
            }
            Node::File { content, synced } => {
                // What was added may be there or not; what it was added to stays.
                let (kept, tail) = match content.strip_prefix(&synced[..]) {
                    Some(tail) => (&synced[..], tail),
                    None => (&[][..], &content[..]),
                };
                let some = chance.below(tail.len() as u64 + 1) as usize;
                let left = match chance.below(4) {
                    0 => synced.clone(),
                    1 => content.clone(),
                    2 => [kept, &tail[..some]].concat(),
                    _ => [kept, &vec![0; tail.len()]].concat(), // the length without the content
                };
                fs::write(path, left).unwrap();
            }
            Node::Folder {
                synced, pending, ..
            } => {
                let mut entries = synced.clone();
                for change in pending {
                    if chance.yes() {
                        change.apply(&mut entries);
                    }
                }
                fs::create_dir_all(path).unwrap();
                for (name, node) in entries {
                    self.lose_power(node, &path.join(name), chance);
                }
            }
            Node::Link(to) => std::os::unix::fs::symlink(to, path).unwrap(),
        }
    }
}

impl Change {
    fn apply(&self, entries: &mut BTreeMap<String, usize>) {
        match self {
            Change::Set(name, node) => {
                entries.insert(name.clone(), *node);
            }
            Change::Unset(name) => {
                entries.remove(name);
            }
            Change::Move(from, to, node) => {
                if entries.get(from) == Some(node) {
                    entries.remove(from);
                }
                entries.insert(to.clone(), *node);
            }
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_string()
}

/// What is kept of what was not synced: nothing, all, or what the numbers say.
enum Chance {
    Never,
    Always,
    Drawn(u64),
}

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        match self {
            Chance::Never => 0,
            Chance::Always => 1.min(n - 1),
            Chance::Drawn(state) => {
                *state = mix(*state);
                *state % n
            }
        }
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 1
    }
}

/// All that a run of four checkpoints asks of the disk.
fn a_run(root: &Path) -> Vec<Recorded> {
    let folder = root.join("runs/mine");
    let record = std::rc::Rc::new(RefCell::new(Vec::new()));
    let recorder = record.clone();
    let watch = move |action: Action| {
        recorder.borrow_mut().push(Recorded::of(action));
        Ok(())
    };
    watched(watch, || -> Result<()> {
        make_folder(&folder)?;
        write_file(&folder.join("config.toml"), b"out = \"run\"")?;
        let mut log = Journal::open(&folder.join("metrics.jsonl"))?;
        for (step, best) in [(0, 0), (10, 10), (20, 10), (30, 30), (40, 30)] {
            log.append(&format!("step {step}"))?;
            log.sync()?;
            save(&folder, step, best)?;
            record.borrow_mut().push(Recorded::Saved(step));
        }
        Ok(())
    })
    .unwrap();
    record.take()
}

#[test]
fn power_lost_at_any_point_loses_no_checkpoint_that_was_reported_as_saved() {
    let root = tempfile::tempdir().unwrap();
    let actions = a_run(root.path());
    let (mut disk, mut reported, mut states) = (Disk::new(root.path()), None, 0);
    let mut found_at = HashMap::new();
    for (at, action) in actions.iter().enumerate() {
        disk.perform(action);
        if let Recorded::Saved(step) = action {
            reported = Some(*step);
        }
        for draw in 0..10 {
            let mut chance = match draw {
                0 => Chance::Never,
                1 => Chance::Always,
                draw => Chance::Drawn(mix(at as u64) ^ draw),
            };
            let after = tempfile::tempdir().unwrap();
            disk.lose_power(0, after.path(), &mut chance);
            let folder = after.path().join("runs/mine");
            let found = newest(&folder);
            assert!(
                found >= reported,
                "{action:?}: {found:?} after {reported:?}"
            );
            if reported.is_some() {
                let log = fs::read_to_string(folder.join("metrics.jsonl")).unwrap_or_default();
                let line = format!("step {}\n", found.unwrap());
                assert!(log.contains(&line), "{action:?}: the log lacks {line}");
            }
            *found_at.entry(found).or_insert(0) += 1;
            states += 1;
        }
    }
    assert!(states >= 500, "{states} states");
    let all = [None, Some(0), Some(10), Some(20), Some(30), Some(40)];
    assert!(
        all.iter().all(|step| found_at.contains_key(step)),
        "{found_at:?}"
    );
}
