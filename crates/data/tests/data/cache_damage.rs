use crate::{Phases, all_ids, cleaner, corpus, text_of, words, write_corpus};
use attend_data::{Batches, Cache, Dataset, Error, Mixture, Position};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tempfile::{TempDir, tempdir};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps the text of warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Visit for Warnings {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata) -> bool {
        *metadata.level() == Level::WARN
    }
    fn new_span(&self, _: &Attributes) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// An entry that is damaged again and again.
struct Entry {
    dir: TempDir,
    cache: Cache,
    place: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Entry {
    fn new() -> Self {
        let dir = tempdir().unwrap();
        let mut corpus = corpus();
        corpus.source[3].clear(); // a pair that is dropped
        write_corpus(dir.path(), "t", &corpus);
        let cache = Cache::new(dir.path().join("cache"));
        let mut entry = Self {
            dir,
            place: cache.folder().into(),
            cache,
            files: Vec::new(),
        };
        assert_eq!(entry.prepare().1, 1);
        let key = entry.cache.entries().unwrap().remove(0).key;
        entry.place = entry.cache.folder().join(key);
        for file in fs::read_dir(&entry.place).unwrap() {
            let path = file.unwrap().path();
            entry.files.push((path.clone(), fs::read(path).unwrap()));
        }
        assert_eq!(entry.files.len(), 14);
        entry
    }

    /// The dataset, and how often it was made.
    fn prepare(&self) -> (Result<Dataset, Error>, usize) {
        let phases = Phases::default();
        let corpus = corpus();
        let cleaner = cleaner(256);
        let input = attend_data::Input::Text(attend_data::FilePair {
            source: self.dir.path().join("t.en"),
            target: self.dir.path().join("t.de"),
        });
        let text = text_of(&[input], &cleaner);
        let dataset = Dataset::prepare(&text, &words(&corpus), true, &self.cache, &phases);
        (dataset, phases.count("encoding"))
    }

    fn restore(&self) {
        for (path, bytes) in &self.files {
            fs::write(path, bytes).unwrap();
        }
    }

    /// Prepares the damaged entry, which must be made again with a warning.
    fn check_made_again(&self, damage: &str) {
        let warnings = Warnings::default();
        let (dataset, made) =
            tracing::subscriber::with_default(warnings.clone(), || self.prepare());
        assert_eq!(made, 1, "{damage}");
        let warnings = warnings.0.lock().unwrap();
        let place = self.place.display();
        let expected = format!("{place}: the cache entry is damaged; it is made again");
        assert!(warnings.contains(&expected), "{damage}: {warnings:?}");
        assert_eq!(dataset.unwrap().len(), 39);
        for (path, bytes) in &self.files {
            assert_eq!(&fs::read(path).unwrap(), bytes, "{damage}");
        }
    }

    fn change_meta(&self, change: impl Fn(&mut Value)) {
        let path = self.place.join("meta.json");
        let mut meta = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut meta);
        fs::write(path, meta.to_string()).unwrap();
    }
}

#[test]
fn a_file_that_is_cut_or_missing_is_found_and_the_entry_is_made_again() {
    let entry = Entry::new();
    for (path, bytes) in &entry.files {
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::remove_file(path).unwrap();
        entry.check_made_again(&format!("{name} is missing"));
        for length in [0, bytes.len() - 1] {
            File::create(path).unwrap().set_len(length as u64).unwrap();
            entry.check_made_again(&format!("{name} has {length} bytes"));
        }
        if name != "meta.json" {
            let mut more = bytes.clone();
            more.push(0);
            fs::write(path, more).unwrap();
            entry.check_made_again(&format!("{name} has a byte more"));
        }
    }
    fs::remove_dir_all(&entry.place).unwrap();
    fs::write(&entry.place, "a file").unwrap();
    assert!(entry.prepare().0.is_err()); // not something that a program of ours wrote: it is left alone
    fs::remove_file(&entry.place).unwrap();
    assert_eq!(entry.prepare().1, 1);
}

#[test]
fn garbage_in_the_description_of_an_entry_is_found() {
    let entry = Entry::new();
    let meta = entry.place.join("meta.json");
    for garbage in [
        "",
        "{",
        "{}",
        "null",
        "[1]",
        "\u{fffd}",
        "{\"kind\": \"corpus\", \"files\": []}",
    ] {
        fs::write(&meta, garbage).unwrap();
        entry.check_made_again(garbage);
    }
    fs::write(&meta, b"\xff\xfe\x00").unwrap();
    entry.check_made_again("bytes");
    for (pointer, value) in [
        ("/version", json!(0)),
        ("/pairs", json!(0)),
        ("/pairs", json!(40)),
        ("/counts/read", json!(41)),
        ("/source/shape/rows", json!(u64::MAX)),
        ("/source/shape/rows", json!(0)),
        ("/target/shape/items", json!(u64::MAX / 2 + 1)),
        ("/target/shape/item", json!(0)),
        ("/target/shape/item", json!(3)),
        ("/target/shape/length", json!(8)),
        ("/text/1/items", json!(1)),
        ("/fingerprint", json!(1)),
    ] {
        entry.change_meta(|meta| *meta.pointer_mut(pointer).unwrap() = value.clone());
        entry.check_made_again(pointer);
    }
}

/// Reads everything that an entry holds. Only a panic is a failure.
fn read_all(dataset: Dataset) {
    for i in 0..dataset.len() {
        let _ = dataset.ids(i);
        let _ = dataset.text(i);
        let _ = dataset.lengths(i);
        let _ = (dataset.ordinal(i), dataset.origin(i));
        let _ = dataset.batch(&[0, i]);
    }
    for n in [0, 1, 39, 40, u64::MAX] {
        let _ = dataset.dropped(n);
    }
    let _ = (dataset.tokens(), dataset.longest(), dataset.unknown());
    let mixture = Arc::new(Mixture::of(dataset, 1));
    let Ok(mut batches) = Batches::new(mixture, 50, None, Position::START) else {
        return;
    };
    for step in 0..batches.epoch_len().min(50) {
        if batches.next_batch(step as u64).is_err() {
            return;
        }
    }
}

#[test]
fn flipped_bytes_are_found_when_ids_are_read_and_never_panic() {
    let entry = Entry::new();
    let good = all_ids(&entry.prepare().0.unwrap());
    let mut found = 0;
    for (path, bytes) in &entry.files {
        let is_meta = path.ends_with("meta.json");
        let step = if is_meta { 7 } else { bytes.len().div_ceil(24) };
        for at in (0..bytes.len()).step_by(step) {
            for flip in [0x01, 0x80, 0xff] {
                let mut other = bytes.clone();
                other[at] ^= flip;
                fs::write(path, other).unwrap();
                let (dataset, made) = entry.prepare();
                let Ok(dataset) = dataset else { continue };
                let ids: Result<Vec<_>, _> = (0..dataset.len()).map(|i| dataset.ids(i)).collect();
                found += usize::from(made > 0 || ids.is_err());
                // Never other ids.
                assert!(is_meta || ids.is_err() || ids.is_ok_and(|ids| ids == good));
                read_all(dataset);
            }
        }
        for fill in [0, 0xff] {
            fs::write(path, vec![fill; bytes.len()]).unwrap();
            entry.prepare().0.map(read_all).unwrap();
        }
        entry.restore();
    }
    assert!(found > 50, "{found}");
}

#[test]
fn no_number_in_the_description_makes_reading_panic() {
    let entry = Entry::new();
    let mut places = Vec::new();
    fn find(value: &Value, place: String, found: &mut Vec<String>) {
        match value {
            Value::Number(_) => found.push(place),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.for_each(|(i, item)| find(item, format!("{place}/{i}"), found));
            }
            Value::Object(fields) => {
                let fields = fields.iter();
                fields.for_each(|(key, item)| find(item, format!("{place}/{key}"), found));
            }
            _ => {}
        }
    }
    let meta = fs::read(entry.place.join("meta.json")).unwrap();
    find(
        &serde_json::from_slice(&meta).unwrap(),
        String::new(),
        &mut places,
    );
    assert!(places.len() > 20, "{places:?}");
    for place in &places {
        for number in [
            json!(0),
            json!(1),
            json!(255),
            json!(u64::MAX),
            json!(-1),
            json!(0.5),
        ] {
            entry.change_meta(|meta| *meta.pointer_mut(place).unwrap() = number.clone());
            read_all(entry.prepare().0.unwrap());
            entry.restore();
        }
    }
}
