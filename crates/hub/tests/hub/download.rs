use std::cell::RefCell;
use std::fs;
use std::rc::Rc;
use std::sync::Mutex;

use attend_hub::{Error, Progress, Snapshot, Transfer};

use crate::{CONFIG, MODEL, World, all, at, weights};

#[test]
fn a_file_is_downloaded_once() {
    let world = World::new();
    let hub = world.hub();
    let path = at("hf://owner/model/weights.bin");
    let file = hub.file(&path, &()).unwrap();
    assert_eq!(fs::read(&file).unwrap(), weights());
    assert_eq!(world.server.requests().len(), 1);
    assert_eq!(hub.file(&path, &()).unwrap(), file);
    assert_eq!(
        world.server.requests().len(),
        1,
        "within one process, a revision is one commit"
    );
}

#[test]
fn the_cache_has_the_layout_of_python() {
    let world = World::new();
    let file = world
        .hub()
        .file(&at("hf://owner/model/deep/er/notes.txt"), &())
        .unwrap();
    let folder = world.cache().join("models--owner--model");
    let snapshot = folder.join("snapshots").join(&world.commit);
    assert_eq!(file, snapshot.join("deep/er/notes.txt"));
    assert_eq!(
        fs::read_to_string(folder.join("refs/main")).unwrap(),
        world.commit
    );
    // `printf notes | git hash-object --stdin`
    let blob = folder.join("blobs/3041adec9105ce2abb98307afd1f4aeb2e97c504");
    assert_eq!(fs::read(&blob).unwrap(), b"notes");
    #[cfg(unix)]
    assert_eq!(
        fs::canonicalize(&file).unwrap(),
        fs::canonicalize(&blob).unwrap()
    );
    world.read("hf://datasets/owner/data/train.en").unwrap();
    assert!(
        world
            .cache()
            .join("datasets--owner--data/refs/main")
            .is_file()
    );
}

#[test]
fn a_revision_is_a_branch_a_tag_or_a_commit() {
    let world = World::new();
    world.server.put(
        "owner/model",
        "refs/pr/4",
        "config.json",
        b"of the pull request",
    );
    world
        .server
        .put("owner/model", "feature/x", "config.json", b"of the branch");
    let read = |path: &str| world.read(path).unwrap();
    assert_eq!(
        read("hf://owner/model@refs/pr/4/config.json"),
        b"of the pull request"
    );
    assert_eq!(
        read("hf://owner/model@feature%2Fx/config.json"),
        b"of the branch"
    );
    assert_eq!(read("hf://owner/model/config.json"), CONFIG);
    assert_eq!(
        read(&format!("hf://owner/model@{}/config.json", world.commit)),
        CONFIG
    );
}

#[test]
fn a_new_commit_is_seen_by_the_next_process() {
    let world = World::new();
    assert_eq!(world.read("hf://owner/model/config.json").unwrap(), CONFIG);
    world
        .server
        .put("owner/model", "main", "config.json", b"newer");
    assert_eq!(
        world.read("hf://owner/model/config.json").unwrap(),
        b"newer"
    );
}

#[test]
fn files_of_one_process_are_of_one_commit() {
    let world = World::new();
    let hub = world.hub();
    hub.file(&at("hf://owner/model/weights.bin"), &()).unwrap();
    world
        .server
        .put("owner/model", "main", "config.json", b"newer");
    let file = hub.file(&at("hf://owner/model/config.json"), &()).unwrap();
    assert_eq!(fs::read(file).unwrap(), CONFIG);
}

#[test]
fn a_snapshot_has_the_chosen_files() {
    let world = World::new();
    let choose = |files: &[String]| {
        assert_eq!(files, ["config.json", "deep/er/notes.txt", "weights.bin"]);
        Ok(vec!["config.json".into(), "deep/er/notes.txt".into()])
    };
    let Snapshot {
        folder,
        commit,
        files,
    } = world.hub().snapshot(&at(MODEL), choose, &()).unwrap();
    assert_eq!(commit, world.commit);
    assert_eq!(files, ["config.json", "deep/er/notes.txt"]);
    assert_eq!(fs::read(folder.join("config.json")).unwrap(), CONFIG);
    assert_eq!(
        fs::read(folder.join("deep/er/notes.txt")).unwrap(),
        b"notes"
    );
    assert!(!folder.join("weights.bin").exists());
    assert_eq!(
        world.server.requests().len(),
        3,
        "the listing and two files"
    );
    world.hub().snapshot(&at(MODEL), choose, &()).unwrap();
    assert_eq!(world.server.requests().len(), 4, "the listing again");
}

#[test]
fn a_snapshot_can_be_of_a_folder() {
    let world = World::new();
    let snapshot = world
        .hub()
        .snapshot(&at("hf://owner/model/deep"), all, &())
        .unwrap();
    assert_eq!(snapshot.files, ["er/notes.txt"]);
    assert_eq!(
        fs::read(snapshot.folder.join("er/notes.txt")).unwrap(),
        b"notes"
    );
    let error = world
        .hub()
        .snapshot(&at("hf://owner/model/nowhere"), all, &())
        .unwrap_err();
    assert!(matches!(error, Error::NoFile(_)), "{error}");
}

#[test]
fn a_snapshot_without_a_required_file_names_it() {
    let world = World::new();
    let choose = |_: &[String]| Err("vocab.json".to_string());
    let error = world.hub().snapshot(&at(MODEL), choose, &()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "hf://owner/model/vocab.json: there is no such file"
    );
    let choose = |_: &[String]| Ok(vec!["config.json".into(), "unlisted.txt".into()]);
    let error = world.hub().snapshot(&at(MODEL), choose, &()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "hf://owner/model/unlisted.txt: there is no such file"
    );
}

#[test]
fn the_first_existing_file_is_taken() {
    let world = World::new();
    let (plain, gzip) = (
        at("hf://datasets/owner/data/train.en"),
        at("hf://datasets/owner/data/train.en.gz"),
    );
    let file = world.hub().first_of(&[gzip.clone(), plain], &()).unwrap();
    assert_eq!(fs::read(file).unwrap(), b"a dog runs\n");
    let error = world.hub().first_of(&[gzip], &()).unwrap_err();
    assert!(matches!(error, Error::NoFile(_)), "{error}");
}

#[test]
fn progress_counts_every_byte() {
    #[derive(Default)]
    struct Seen(Mutex<Vec<(String, u64)>>);
    thread_local!(static BYTES: Rc<RefCell<u64>> = Rc::default());
    struct Count;
    impl Transfer for Count {
        fn advance(&self, bytes: u64) {
            BYTES.with(|total| *total.borrow_mut() += bytes);
        }
    }
    impl Progress for Seen {
        fn start(&self, name: &str, bytes: u64) -> Box<dyn Transfer> {
            self.0.lock().unwrap().push((name.into(), bytes));
            Box::new(Count)
        }
    }
    let (world, seen) = (World::new(), Seen::default());
    world
        .hub()
        .file(&at("hf://owner/model/weights.bin"), &seen)
        .unwrap();
    assert_eq!(
        *seen.0.lock().unwrap(),
        [("weights.bin".to_string(), 200_000)]
    );
    assert_eq!(BYTES.with(|total| *total.borrow()), 200_000);
}

#[test]
fn a_repository_is_not_a_file() {
    let world = World::new();
    assert!(matches!(
        world.hub().file(&at(MODEL), &()),
        Err(Error::Path { .. })
    ));
    assert_eq!(world.server.requests().len(), 0);
}

#[test]
fn two_threads_download_the_same_file() {
    let world = World::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(
                    world.read("hf://owner/model/weights.bin").unwrap(),
                    weights()
                )
            });
        }
    });
    assert_eq!(world.blobs().len(), 1);
}
