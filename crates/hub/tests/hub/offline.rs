use std::fs;
use std::net::TcpListener;

use attend_hub::testing::Fault;
use attend_hub::{Error, Hub, Settings};

use crate::{CONFIG, MODEL, World, all, at, message, weights};

#[test]
fn offline_reads_the_cache_and_makes_no_request() {
    let world = World::new();
    world.hub().snapshot(&at(MODEL), all, &()).unwrap();
    let before = world.server.requests().len();
    let hub = world.offline();
    let file = hub.file(&at("hf://owner/model/weights.bin"), &()).unwrap();
    assert_eq!(fs::read(file).unwrap(), weights());
    let snapshot = hub.snapshot(&at(MODEL), all, &()).unwrap();
    assert_eq!(
        snapshot.files,
        ["config.json", "deep/er/notes.txt", "weights.bin"]
    );
    assert_eq!(
        fs::read(snapshot.folder.join("config.json")).unwrap(),
        CONFIG
    );
    assert_eq!(world.server.requests().len(), before);
}

#[test]
fn offline_without_the_file_says_what_is_missing() {
    let world = World::new();
    let error = world
        .offline()
        .file(&at("hf://owner/model/config.json"), &())
        .unwrap_err();
    assert!(matches!(error, Error::Offline(_)));
    assert!(message(&error).contains("hf://owner/model/config.json is not in the cache"));
    assert!(
        error
            .hint()
            .unwrap()
            .contains("hf download owner/model config.json")
    );
    let error = world.offline().snapshot(&at(MODEL), all, &()).unwrap_err();
    assert!(message(&error).contains("hf://owner/model is not in the cache"));
    assert_eq!(world.server.requests().len(), 0);
}

#[test]
fn offline_with_a_part_of_a_model_names_the_missing_file() {
    let world = World::new();
    world.read("hf://owner/model/config.json").unwrap();
    let choose = |files: &[String]| match files.iter().any(|file| file == "weights.bin") {
        true => Ok(files.to_vec()),
        false => Err("weights.bin".to_string()),
    };
    let error = world
        .offline()
        .snapshot(&at(MODEL), choose, &())
        .unwrap_err();
    assert!(
        message(&error).contains("hf://owner/model/weights.bin is not in the cache"),
        "{error}"
    );
}

#[test]
fn an_interrupted_snapshot_is_not_taken_for_a_whole_one() {
    let world = World::new();
    world.server.fault("weights.bin", Fault::Truncate(10));
    world.hub().snapshot(&at(MODEL), all, &()).unwrap_err();
    let error = world.offline().snapshot(&at(MODEL), all, &()).unwrap_err();
    assert!(matches!(error, Error::Offline(_)), "{error}");
}

#[test]
fn without_a_network_the_cache_is_used() {
    let world = World::new();
    world.hub().snapshot(&at(MODEL), all, &()).unwrap();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap(); // and dropped
    let settings = Settings {
        endpoint: format!("http://{closed}"),
        ..world.settings()
    };
    let hub = Hub::new(settings);
    let file = hub.file(&at("hf://owner/model/config.json"), &()).unwrap();
    assert_eq!(fs::read(file).unwrap(), CONFIG);
    assert_eq!(
        hub.snapshot(&at(MODEL), all, &()).unwrap().commit,
        world.commit
    );
    let error = hub
        .file(&at("hf://owner/model/other.txt"), &())
        .unwrap_err();
    assert!(message(&error).contains("cannot reach the hub"), "{error}");
    let error = hub.snapshot(&at("hf://owner/other"), all, &()).unwrap_err();
    assert!(message(&error).contains("cannot reach the hub"), "{error}");
}

#[test]
fn a_hub_in_trouble_leaves_the_cache_in_use() {
    let world = World::new();
    world.hub().snapshot(&at(MODEL), all, &()).unwrap();
    world.server.fault("/", Fault::Status(502, ""));
    assert_eq!(
        world.read("hf://owner/model/weights.bin").unwrap(),
        weights()
    );
    assert_eq!(
        world.hub().snapshot(&at(MODEL), all, &()).unwrap().commit,
        world.commit
    );
}

#[test]
fn a_file_that_the_hub_no_longer_has_is_not_taken_from_the_cache() {
    let world = World::new();
    world.read("hf://owner/model/config.json").unwrap();
    world.server.fault("/", Fault::Status(404, "RepoNotFound"));
    let error = world.read("hf://owner/model/config.json").unwrap_err();
    assert!(matches!(error, Error::NoRepository(_)), "{error}");
}

#[test]
fn a_commit_in_the_cache_needs_no_request() {
    let world = World::new();
    world.read("hf://owner/model/config.json").unwrap();
    let before = world.server.requests().len();
    world
        .read(&format!("hf://owner/model@{}/config.json", world.commit))
        .unwrap();
    assert_eq!(world.server.requests().len(), before);
}
