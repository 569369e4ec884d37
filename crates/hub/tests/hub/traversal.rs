//! Whatever names a server sends, nothing is written outside of the cache, nor outside of the repository's
//! folder in it.

use std::path::PathBuf;

use attend_hub::Error;
use attend_hub::testing::Fault;

use crate::{MODEL, World, all, at, files, message};

const NAMES: [&str; 12] = [
    "../evil",
    "../../../../evil",
    "a/../../../../evil",
    "/evil",
    "//evil",
    "./evil",
    "a//evil",
    "..",
    "..\\..\\evil",
    "C:\\evil",
    "evil\u{0}x",
    "",
];

/// The files of the cache that are not in the folder of the model or its locks.
fn astray(world: &World) -> Vec<PathBuf> {
    let mut found = files(&world.cache());
    found.retain(|file| {
        !file
            .components()
            .any(|part| part.as_os_str() == "models--owner--model")
    });
    found
}

#[test]
fn names_in_a_listing_cannot_leave_the_folder() {
    for name in NAMES {
        let world = World::new();
        world.server.put("owner/model", "main", name, b"evil");
        let snapshot = world.hub().snapshot(&at(MODEL), all, &()).unwrap();
        assert_eq!(
            snapshot.files,
            ["config.json", "deep/er/notes.txt", "weights.bin"],
            "{name}"
        );
        let insist = |files: &[String]| Ok([files, &[name.to_string()]].concat());
        message(&world.hub().snapshot(&at(MODEL), insist, &()).unwrap_err());
        assert!(
            world.outside().is_empty() && astray(&world).is_empty(),
            "{name}"
        );
    }
}

#[test]
fn headers_cannot_name_a_file_outside() {
    let number = "0123456789abcdef0123456789abcdef01234567";
    let evil = [
        "../evil",
        "/tmp/evil",
        "",
        "main",
        "..",
        &number[1..],
        &number.to_uppercase(),
    ];
    for header in ["X-Repo-Commit", "ETag", "X-Linked-ETag"] {
        for value in evil
            .map(String::from)
            .into_iter()
            .chain([format!("../{number}"), format!("{number}/..")])
        {
            let world = World::new();
            world
                .server
                .fault("resolve", Fault::Header(header, value.clone()));
            let error = world.read("hf://owner/model/config.json").unwrap_err();
            assert!(
                matches!(error, Error::Refused { .. }),
                "{header}: {value}: {error}"
            );
            message(&error);
            assert!(files(world.root.path()).is_empty(), "{header}: {value}");
        }
    }
}

#[test]
fn a_missing_file_with_an_evil_commit_leaves_nothing() {
    let world = World::new();
    world.server.fault(
        "resolve",
        Fault::Header("X-Repo-Commit", "../../evil".into()),
    );
    world.read("hf://owner/model/missing.txt").unwrap_err();
    assert!(files(world.root.path()).is_empty());
}

#[test]
fn a_file_of_another_commit_is_refused() {
    let world = World::new();
    let other = "0123456789abcdef0123456789abcdef01234567";
    world
        .server
        .fault("resolve", Fault::Header("X-Repo-Commit", other.into()));
    let error = world.hub().snapshot(&at(MODEL), all, &()).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[test]
fn names_with_spaces_and_signs_are_files_like_others() {
    let world = World::new();
    for name in [
        "a b.txt",
        "100%.txt",
        "a#b?c.txt",
        "ü/名.txt",
        "a@b+c=d&e.txt",
        "%2e%2e",
    ] {
        world
            .server
            .put("owner/model", "main", name, name.as_bytes());
        let snapshot = world.hub().snapshot(&at(MODEL), all, &()).unwrap();
        assert_eq!(
            std::fs::read(snapshot.folder.join(name)).unwrap(),
            name.as_bytes()
        );
    }
    assert!(world.outside().is_empty());
}
