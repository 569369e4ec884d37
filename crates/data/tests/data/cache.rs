use crate::{Phases, all_ids, clean, cleaner, corpus, numbered, text_of, words, write_corpus};
use attend_data::{
    BadLines, Cache, CleanConfig, Dataset, EntryKind, Error, FilePair, HeldOut, Input, Progress,
    Task, TextSource, TokenizerConfig, Tokenizers,
};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use tempfile::{TempDir, tempdir};

/// The files of a small corpus, and an empty cache beside them.
fn files() -> (TempDir, Input, Cache) {
    let dir = tempdir().unwrap();
    let input = write_corpus(dir.path(), "t", &corpus());
    let cache = Cache::new(dir.path().join("cache"));
    (dir, input, cache)
}

fn keys(cache: &Cache) -> Vec<String> {
    let entries = cache.entries().unwrap();
    entries.into_iter().map(|entry| entry.key).collect()
}

/// Everything in a cache folder, whether it is an entry or not.
fn names(cache: &Cache) -> Vec<String> {
    let files = fs::read_dir(cache.folder()).unwrap();
    let name = |file: fs::DirEntry| file.file_name().into_string().unwrap();
    let mut names: Vec<_> = files.map(|file| name(file.unwrap())).collect();
    names.retain(|name| name != "files"); // the hashes of files
    names.sort();
    names
}

#[test]
fn a_corpus_that_has_not_changed_is_encoded_once() {
    let (_dir, input, cache) = files();
    let tokenizers = words(&corpus());
    let cleaner = cleaner(256);
    let prepare = || {
        let phases = Phases::default();
        let text = text_of(std::slice::from_ref(&input), &cleaner);
        let dataset = Dataset::prepare(&text, &tokenizers, false, &cache, &phases).unwrap();
        (dataset, phases.count("encoding"))
    };
    let (first, made) = prepare();
    assert_eq!(made, 1);
    let stamp = || {
        let metadata = fs::metadata(cache.folder().join(&keys(&cache)[0])).unwrap();
        (metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
    };
    let before = stamp();
    let (second, made) = prepare();
    assert_eq!((made, stamp()), (0, before));
    assert_eq!(all_ids(&first), all_ids(&second));
    assert_eq!(first.fingerprint(), second.fingerprint());
    assert_eq!(names(&cache), keys(&cache)); // nothing else is left
}

#[test]
fn everything_that_decides_about_the_ids_makes_another_entry() {
    let (dir, input, _) = files();
    let tokenizers = words(&corpus());
    let other = write_corpus(dir.path(), "u", &numbered(40, 5));
    let both = [input.clone(), other.clone()];
    let default = cleaner(256);
    let key = |text: &TextSource, tokenizers: &Tokenizers, with_text: bool| {
        let cache = tempdir().unwrap();
        let cache = Cache::new(cache.path());
        Dataset::prepare(text, tokenizers, with_text, &cache, &()).unwrap();
        keys(&cache).remove(0)
    };
    let text = || text_of(&both, &default);
    let mut found = vec![
        key(&text(), &tokenizers, false),
        key(&text(), &tokenizers, true),
        key(&text(), &words(&numbered(40, 5)), false),
        key(
            &text_of(&[other.clone(), input.clone()], &default),
            &tokenizers,
            false,
        ),
        key(
            &text_of(std::slice::from_ref(&input), &default),
            &tokenizers,
            false,
        ),
    ];
    for tag in ["the", "dog"] {
        let tag = Some(tag.into());
        found.push(key(&TextSource { tag, ..text() }, &tokenizers, false));
    }
    let bad_lines = BadLines::Skip;
    found.push(key(
        &TextSource {
            bad_lines,
            ..text()
        },
        &tokenizers,
        false,
    ));
    let filters = [
        r#"{"min_tokens": 1}"#,
        r#"{"max_chars": 9999}"#,
        r#"{"max_ratio": 99}"#,
        r#"{"duplicates": true}"#,
        r#"{"same": true}"#,
        r#"{"min_letters": 0.001}"#,
        r#"{"source_scripts": ["Latin"]}"#,
        r#"{"target_scripts": ["Latin"]}"#,
        r#"{"overlap": true}"#,
        r#"{"normalize": "nfc"}"#,
        r#"{"normalize": "nfkc"}"#,
    ];
    for filter in filters {
        let config: CleanConfig = serde_json::from_str(filter).unwrap();
        let cleaner = clean(&config, 256);
        found.push(key(&text_of(&both, &cleaner), &tokenizers, false));
    }
    let mut held_out = HeldOut::new();
    held_out.insert("a sentence", "ein Satz");
    let config = serde_json::from_str(r#"{"overlap": true}"#).unwrap();
    let overlap = attend_data::Cleaner::new(&config, "en", "de", 256, held_out).unwrap();
    found.push(key(&text_of(&both, &overlap), &tokenizers, false));
    let longer = cleaner(257);
    found.push(key(&text_of(&both, &longer), &tokenizers, false));
    let swapped = match &input {
        Input::Text(FilePair { source, target }) => Input::Text(FilePair {
            source: target.clone(),
            target: source.clone(),
        }),
        input => input.clone(),
    };
    found.push(key(
        &text_of(&[swapped, other], &default),
        &tokenizers,
        false,
    ));

    let all = found.len();
    found.sort();
    found.dedup();
    assert_eq!(found.len(), all);
    assert!(found.contains(&key(&text(), &tokenizers, false)));
}

/// Replaces a byte of a file in its place, and puts back the time of its last change.
fn change_byte(path: &Path) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let mut bytes = fs::read(path).unwrap();
    let letter = bytes.iter_mut().find(|byte| **byte == b'o').unwrap();
    *letter = b'q';
    fs::write(path, bytes).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(modified).unwrap();
}

#[test]
fn a_changed_byte_is_noticed_even_if_size_and_time_stay_the_same() {
    let (dir, input, cache) = files();
    let tokenizers = words(&corpus());
    let cleaner = cleaner(256);
    let prepare = || {
        let text = text_of(std::slice::from_ref(&input), &cleaner);
        Dataset::prepare(&text, &tokenizers, false, &cache, &()).unwrap()
    };
    let before = prepare().fingerprint().to_string();
    change_byte(&dir.path().join("t.en")); // just after it was written
    let after = prepare().fingerprint().to_string();
    assert_ne!(before, after);
    assert_eq!(keys(&cache).len(), 2);
    let notes = cache.folder().join("files");

    thread::sleep(Duration::from_millis(3100));
    assert_eq!(prepare().fingerprint(), after);
    assert_eq!(fs::read_dir(&notes).unwrap().count(), 2);
    assert_eq!(prepare().fingerprint(), after);
    assert_eq!(keys(&cache).len(), 2);
    change_byte(&dir.path().join("t.de"));
    assert_ne!(prepare().fingerprint(), after);
    assert_eq!(keys(&cache).len(), 3);

    for note in fs::read_dir(&notes).unwrap() {
        fs::write(note.unwrap().path(), "{").unwrap();
    }
    prepare(); // notes that cannot be read are not used
    assert_eq!(keys(&cache).len(), 3);
}

#[test]
fn the_same_content_in_other_files_is_the_same_entry() {
    let (dir, input, cache) = files();
    let tokenizers = words(&corpus());
    let cleaner = cleaner(256);
    let text = text_of(&[input], &cleaner);
    let dataset = Dataset::prepare(&text, &tokenizers, false, &cache, &()).unwrap();
    fs::create_dir(dir.path().join("elsewhere")).unwrap();
    let copy = write_corpus(&dir.path().join("elsewhere"), "other", &corpus());
    let phases = Phases::default();
    let text = text_of(&[copy], &cleaner);
    let again = Dataset::prepare(&text, &tokenizers, false, &cache, &phases).unwrap();
    assert_eq!(phases.count("encoding"), 0);
    assert_eq!(all_ids(&again), all_ids(&dataset));
}

#[test]
fn of_several_that_want_an_entry_at_once_one_makes_it() {
    const THREADS: usize = 6;
    let dir = tempdir().unwrap();
    let corpus = numbered(20_000, 9);
    let input = write_corpus(dir.path(), "t", &corpus);
    let tokenizers = words(&corpus);
    let cleaner = cleaner(256);
    let barrier = Barrier::new(THREADS);
    for round in 0..3 {
        let folder = dir.path().join(format!("cache{round}"));
        let phases: Vec<Phases> = (0..THREADS).map(|_| Phases::default()).collect();
        let prepare = |phases| {
            let text = text_of(std::slice::from_ref(&input), &cleaner);
            let cache = Cache::new(&folder);
            barrier.wait();
            let dataset = Dataset::prepare(&text, &tokenizers, false, &cache, phases).unwrap();
            assert_eq!(dataset.len(), 20_000);
            dataset.fingerprint().to_string()
        };
        let prepare = &prepare;
        let prints: Vec<String> = thread::scope(|scope| {
            let threads: Vec<_> = phases
                .iter()
                .map(|p| scope.spawn(move || prepare(p)))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let made: usize = phases.iter().map(|phases| phases.count("encoding")).sum();
        assert_eq!(made, 1);
        assert!(prints.iter().all(|print| *print == prints[0]));
        let cache = Cache::new(&folder);
        assert_eq!(names(&cache), keys(&cache)); // neither locks nor parts
    }
}

#[test]
fn entries_are_made_and_removed_at_once_without_errors_of_either() {
    let (_dir, input, cache) = files();
    let tokenizers = words(&corpus());
    let cleaner = cleaner(256);
    let expected = Dataset::encode(&corpus(), &tokenizers, &cleaner).unwrap();
    let expected = expected.fingerprint();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..30 {
                    let text = text_of(std::slice::from_ref(&input), &cleaner);
                    let dataset = Dataset::prepare(&text, &tokenizers, false, &cache, &());
                    assert_eq!(dataset.unwrap().fingerprint(), expected);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..200 {
                let keys = cache
                    .entries()
                    .map(|entries| entries.into_iter().map(|e| e.key));
                for key in keys.into_iter().flatten() {
                    match cache.remove(&key) {
                        Ok(_) | Err(Error::NoEntry { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
    });
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let (dir, input, _) = files();
    let cleaner = cleaner(256);
    let text = text_of(&[input], &cleaner);
    fs::write(dir.path().join("file"), "").unwrap();
    let place = dir.path().join("file").join("cache");
    let cache = Cache::new(&place);
    let error = Dataset::prepare(&text, &words(&corpus()), false, &cache, &())
        .err()
        .unwrap();
    assert!(matches!(error, Error::Write { .. }));
    let start = format!("cannot write {}: ", place.display());
    assert!(error.to_string().starts_with(&start), "{error}");
}

#[test]
fn what_a_killed_process_left_behind_is_replaced() {
    let (_dir, input, cache) = files();
    let tokenizers = words(&corpus());
    let cleaner = cleaner(256);
    let text = text_of(&[input], &cleaner);
    let prepare = || Dataset::prepare(&text, &tokenizers, false, &cache, &()).unwrap();
    prepare();
    let key = keys(&cache).remove(0);
    let listed = |folder: &Path| {
        let files = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let place = cache.folder().join(&key);
    let before = listed(&place);
    let partial = cache.folder().join(format!("{key}.partial"));
    fs::rename(&place, &partial).unwrap();
    fs::write(partial.join("rest"), "of another version").unwrap();
    fs::create_dir(partial.join("folder")).unwrap();
    fs::write(cache.folder().join(format!("{key}.lock")), "").unwrap();
    assert_eq!(cache.entries().unwrap()[0].kind, EntryKind::Partial);
    prepare();
    assert_eq!(listed(&place), before);
    assert_eq!(names(&cache), [key]);
}

#[test]
fn entries_say_what_they_are() {
    let (dir, input, cache) = files();
    assert!(cache.entries().is_err()); // there is no such folder yet
    let cleaner = cleaner(256);
    let text = text_of(&[input], &cleaner);
    let dataset = Dataset::prepare(&text, &words(&corpus()), true, &cache, &()).unwrap();
    fs::create_dir(cache.folder().join("another-folder")).unwrap();
    fs::write(cache.folder().join("0".repeat(32)), "a file, not an entry").unwrap();
    fs::create_dir(cache.folder().join("f".repeat(32))).unwrap();
    let entries = cache.entries().unwrap();
    assert_eq!(entries.len(), 2);
    let [entry, damaged] = &entries[..] else {
        panic!()
    };
    assert_eq!(
        (entry.kind, entry.pairs),
        (EntryKind::Corpus, Some(dataset.len() as u64))
    );
    let files: [PathBuf; 2] = ["t.en", "t.de"].map(|name| dir.path().join(name));
    assert_eq!(entry.files, files);
    let content = fs::read_dir(cache.folder().join(&entry.key)).unwrap();
    let bytes = content.map(|file| file.unwrap().metadata().unwrap().len());
    assert_eq!(entry.bytes, bytes.sum::<u64>());
    assert!(entry.made.elapsed().unwrap() < Duration::from_secs(600));
    assert_eq!((damaged.kind, damaged.pairs), (EntryKind::Damaged, None));
}

#[test]
fn an_entry_is_removed_by_its_key_and_nothing_else_is() {
    let (dir, input, cache) = files();
    let cleaner = cleaner(256);
    let text = text_of(&[input], &cleaner);
    let dataset = Dataset::prepare(&text, &words(&corpus()), true, &cache, &()).unwrap();
    let key = keys(&cache).remove(0);
    let stranger = dir.path().join("0".repeat(32));
    fs::create_dir(&stranger).unwrap();
    fs::create_dir(cache.folder().join("notes")).unwrap();
    let outside = format!("../{}", "0".repeat(32));
    let absolute = stranger.to_str().unwrap();
    let (slash, inside) = (format!("{key}/"), format!("./{key}"));
    let missing = "1".repeat(32);
    for other in [
        "", ".", "..", "notes", "/", absolute, &outside, &slash, &inside, &missing,
    ] {
        let error = cache.remove(other).unwrap_err();
        assert!(matches!(error, Error::NoEntry { .. }), "{other}: {error}");
        assert!(error.hint().unwrap().contains("train cache"));
    }
    assert!(stranger.exists() && cache.folder().join("notes").exists());
    let before = all_ids(&dataset);
    assert!(cache.remove(&key).unwrap());
    assert_eq!(names(&cache), ["notes"]);
    assert_eq!(all_ids(&dataset), before); // whoever uses it is not disturbed
    assert!(cache.remove(&key).is_err());
}

/// Does something when a phase begins.
struct When<F>(&'static str, F);

impl<F: Fn()> Progress for When<F> {
    fn start(&self, what: &str, _: Option<u64>) -> Box<dyn Task> {
        if what.starts_with(self.0) {
            (self.1)();
        }
        Box::new(())
    }
}

#[test]
fn an_entry_that_is_being_made_is_not_removed() {
    let (_dir, input, cache) = files();
    let cleaner = cleaner(256);
    let text = text_of(&[input], &cleaner);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let progress = When("encoding", || {
        let cache = Cache::new(cache.folder()); // that of another process
        for entry in cache.entries().unwrap() {
            let removed = cache.remove(&entry.key).unwrap();
            seen.lock().unwrap().push((entry.kind, removed));
        }
    });
    let dataset = Dataset::prepare(&text, &words(&corpus()), false, &cache, &progress).unwrap();
    assert_eq!(*seen.lock().unwrap(), [(EntryKind::Partial, false)]);
    assert_eq!(all_ids(&dataset).len(), 40);
}

#[test]
fn an_entry_is_used_by_whoever_may_only_read_the_folder() {
    let (_dir, input, cache) = files();
    let tokenizers = Tokenizers::train(&TokenizerConfig::default(), &corpus(), &()).unwrap();
    let cleaner = cleaner(256);
    let text = text_of(&[input], &cleaner);
    let prepare = || Dataset::prepare(&text, &tokenizers, false, &cache, &()).unwrap();
    let before = all_ids(&prepare());
    let set_mode = |mode| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(cache.folder(), permissions).unwrap();
    };
    set_mode(0o555);
    let after = all_ids(&prepare());
    set_mode(0o755);
    assert_eq!(before, after);
}

#[test]
fn folders_of_other_programs_are_neither_listed_nor_removed() {
    let dir = tempdir().unwrap();
    let cache = Cache::new(dir.path());
    let key = |digit: &str| digit.repeat(32);
    for (digit, file) in [
        ("a", "photo.jpg"),
        ("b", "source/notes"),
        ("c", "tokenizer.json"),
    ] {
        let path = dir.path().join(key(digit)).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    let entries = cache.entries().unwrap();
    let found: Vec<_> = entries.iter().map(|entry| entry.key.clone()).collect();
    assert_eq!(found, [key("c")]); // what is left of an entry
    for other in ["a", "b"] {
        let error = cache.remove(&key(other)).unwrap_err();
        assert!(matches!(error, Error::NoEntry { .. }));
        assert!(dir.path().join(key(other)).exists());
    }
    assert!(cache.remove(&key("c")).unwrap());
    let error = Cache::new(dir.path().join("no")).entries().unwrap_err();
    assert!(error.to_string().ends_with("no: no such folder"), "{error}");
}
