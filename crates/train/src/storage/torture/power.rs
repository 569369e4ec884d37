use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use attend_infer::run::RunFolder;
use attend_ops::random::mix;

use super::super::disk::Action;
use super::super::{Journal, Lock, make_folder, write_file};
use super::{newest, save, watched};
use crate::Result;

/// A disk after a loss of power: any part of what was not synced may be there.
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

/// An [`Action`] with its own data, to be replayed later.
#[derive(Clone, Debug)]
enum Recorded {
    MakeFolder(PathBuf),
    Write(PathBuf, Vec<u8>),
    Open(PathBuf),
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
            Action::Open(path) => Self::Open(own(path)),
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
            Recorded::Open(path) => drop(self.file(path)),
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

    /// Writes what is left, chosen at random, into a real folder.
    fn lose_power(&self, node: usize, path: &Path, chance: &mut Chance) {
        match &self.nodes[node] {
            Node::File { content, synced } if content == synced => {
                fs::write(path, content).unwrap()
            }
            Node::File { content, synced } => {
                // The appended bytes may be there or not. The bytes before them are.
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

/// How much is kept of what was not synced: nothing, everything, or a random part.
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

/// All file operations of a run of four checkpoints.
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
        let _lock = Lock::acquire(&RunFolder::new(&folder))?;
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
