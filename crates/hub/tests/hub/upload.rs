use std::fs;
use std::path::PathBuf;

use attend_hub::testing::Fault;
use attend_hub::{Error, Hub, Settings, UploadOptions};
use serde_json::Value;

use crate::{World, all, at, message, weights};

struct Uploads {
    world: World,
    hub: Hub,
    files: Vec<(String, PathBuf)>,
}

impl Uploads {
    fn new() -> Self {
        let world = World::new();
        let hub = Hub::new(Settings {
            token: world.server.require_token("hf_write"),
            ..world.settings()
        });
        let folder = world.root.path().join("export");
        fs::create_dir(&folder).unwrap();
        let file = |name: &str, contents: &[u8]| {
            let path = folder.join(name);
            fs::write(&path, contents).unwrap();
            (name.to_string(), path)
        };
        let files = vec![
            file("config.json", b"{}"),
            file("model.safetensors", &weights()),
            file("empty.txt", b""),
        ];
        Self { world, hub, files }
    }

    fn upload(&self, path: &str, private: bool) -> attend_hub::Result<attend_hub::Uploaded> {
        self.hub.upload(&at(path), &self.files, &options(private))
    }

    /// The paths of the requests that change something.
    fn posts(&self) -> Vec<String> {
        let requests = self.world.server.requests().into_iter();
        requests
            .filter(|request| request.method == "POST")
            .map(|request| request.path)
            .collect()
    }
}

fn options(private: bool) -> UploadOptions {
    UploadOptions {
        create: true,
        private,
        message: "Upload a model".into(),
    }
}

#[test]
fn an_upload_creates_the_repository_and_makes_one_commit() {
    let uploads = Uploads::new();
    let uploaded = uploads.upload("hf://me/new", true).unwrap();
    let posts = uploads.posts();
    let commits = posts
        .iter()
        .filter(|path| path.contains("/commit/"))
        .count();
    assert_eq!(
        (posts[0].as_str(), commits),
        ("/api/repos/create", 1),
        "{posts:?}"
    );
    let requests = uploads.world.server.requests();
    let create = requests
        .iter()
        .find(|request| request.path == "/api/repos/create")
        .unwrap();
    let create: Value = serde_json::from_slice(&create.body).unwrap();
    assert_eq!(
        (&create["organization"], &create["private"]),
        (&"me".into(), &true.into())
    );
    let commit = requests
        .iter()
        .find(|request| request.path.contains("/commit/main"))
        .unwrap();
    assert!(String::from_utf8_lossy(&commit.body).contains("Upload a model"));
    assert_eq!(
        uploaded.url,
        format!("{}/me/new", uploads.world.server.endpoint())
    );
    // What was uploaded can be downloaded.
    let snapshot = uploads.hub.snapshot(&at("hf://me/new"), all, &()).unwrap();
    assert_eq!(Some(snapshot.commit), uploaded.commit);
    for (name, file) in &uploads.files {
        assert_eq!(
            fs::read(snapshot.folder.join(name)).unwrap(),
            fs::read(file).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn an_upload_to_an_existing_repository_keeps_its_other_files() {
    let uploads = Uploads::new();
    uploads.upload("hf://owner/model", false).unwrap();
    assert!(
        uploads
            .posts()
            .iter()
            .all(|path| path != "/api/repos/create")
    );
    let contents = |name| uploads.world.server.contents("owner/model", "main", name);
    assert_eq!(contents("config.json").unwrap(), b"{}");
    assert_eq!(contents("deep/er/notes.txt").unwrap(), b"notes");
}

#[test]
fn an_upload_creates_the_branch() {
    let uploads = Uploads::new();
    for path in [
        "hf://owner/model@next%2Fone",
        "hf://me/new@next%2Fone",
        "hf://datasets/me/new@next%2Fone",
    ] {
        let uploaded = uploads.upload(path, false).unwrap();
        assert!(uploaded.url.ends_with("/tree/next/one"), "{uploaded:?}");
        let name = path.trim_start_matches("hf://").split('@').next().unwrap();
        let contents = |branch| uploads.world.server.contents(name, branch, "config.json");
        assert_eq!(contents("next/one").unwrap(), b"{}");
        assert_ne!(contents("main"), contents("next/one"));
    }
}

#[test]
fn a_refused_upload_says_why() {
    // where it fails, the status, a part of the message and of the hint
    let cases = [
        (
            "/",
            401,
            "does not accept the token from HF_TOKEN",
            "HF_TOKEN",
        ),
        ("/api/repos/create", 403, "does not permit", "HF_TOKEN"),
        (
            "/api/repos/create",
            401,
            "does not accept the token",
            "HF_TOKEN",
        ),
        ("/preupload/", 403, "does not permit", "more rights"),
        ("/commit/", 403, "does not permit", "more rights"),
        ("/commit/", 409, "conflict", "try again"),
        ("/commit/", 412, "conflict", "try again"),
        ("/commit/", 500, "status 500", "later"),
    ];
    for (place, status, expected, hint) in cases {
        let uploads = Uploads::new();
        uploads.world.server.fault(place, Fault::Status(status, ""));
        let error = uploads.upload("hf://me/new", false).unwrap_err();
        let text = message(&error);
        assert!(
            text.contains(expected) && text.contains("hf://me/new"),
            "{place} {status}: {text}"
        );
        assert!(
            error.hint().unwrap().contains(hint),
            "{place} {status}: {:?}",
            error.hint()
        );
        assert_eq!(
            uploads
                .world
                .server
                .contents("me/new", "main", "config.json"),
            None
        );
    }
}

#[test]
fn a_missing_repository_is_not_created_unless_asked() {
    let uploads = Uploads::new();
    let options = UploadOptions {
        create: false,
        ..options(false)
    };
    let error = uploads
        .hub
        .upload(&at("hf://me/new"), &uploads.files, &options)
        .unwrap_err();
    assert!(matches!(error, Error::NoRepository(_)), "{error}");
    assert!(uploads.posts().is_empty());
}

#[test]
fn a_wrong_upload_makes_no_request() {
    let mut uploads = Uploads::new();
    let commit = uploads.world.commit.clone();
    for path in ["hf://me/new/folder", &format!("hf://me/new@{commit}")] {
        message(&uploads.upload(path, false).unwrap_err());
    }
    let file = uploads.files[0].1.clone();
    for name in ["../evil", "/evil", "config.json", ""] {
        uploads.files.push((name.into(), file.clone()));
        message(&uploads.upload("hf://me/new", false).unwrap_err());
        uploads.files.pop();
    }
    uploads
        .files
        .push(("gone.txt".into(), file.with_file_name("gone.txt")));
    let error = uploads.upload("hf://me/new", false).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
    uploads.files.clear();
    message(&uploads.upload("hf://me/new", false).unwrap_err());
    let hub = Hub::new(uploads.world.settings());
    let error = hub
        .upload(&at("hf://me/new"), &[("a".into(), file)], &options(false))
        .unwrap_err();
    assert!(message(&error).contains("needs a token"));
    assert!(uploads.world.server.requests().is_empty());
}
