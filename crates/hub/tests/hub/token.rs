use attend_hub::testing::{Fault, TestHub};
use attend_hub::{Error, Hub, Settings};

use crate::{MODEL, World, all, at, message, weights};

const TOKEN: &str = "hf_verysecret";

/// A hub that wants the token, and settings with it.
fn private() -> (World, Settings) {
    let world = World::new();
    let settings = Settings {
        token: world.server.require_token(TOKEN),
        ..world.settings()
    };
    (world, settings)
}

/// The server to which the hub redirects, with the same files.
fn storage() -> TestHub {
    World::new().server
}

#[test]
fn the_token_opens_a_private_repository() {
    let (world, settings) = private();
    let error = world.read("hf://owner/model/weights.bin").unwrap_err();
    assert!(
        matches!(error, Error::Unauthorized { token: None, .. }),
        "{error}"
    );
    let hub = Hub::new(settings);
    hub.file(&at("hf://owner/model/weights.bin"), &()).unwrap();
    hub.snapshot(&at(MODEL), all, &()).unwrap();
}

#[test]
fn without_a_token_none_is_sent() {
    let world = World::new();
    world.hub().snapshot(&at(MODEL), all, &()).unwrap();
    assert!(
        world
            .server
            .requests()
            .iter()
            .all(|request| request.header("authorization").is_none())
    );
}

#[test]
fn a_refused_token_is_named_by_its_origin_only() {
    let (world, mut settings) = private();
    settings.token = attend_hub::Token::new("hf_wrong", "HF_TOKEN").unwrap();
    let hub = Hub::new(settings);
    let of_file = hub
        .file(&at("hf://owner/model/weights.bin"), &())
        .unwrap_err();
    let of_model = hub.snapshot(&at(MODEL), all, &()).unwrap_err();
    for error in [of_file, of_model] {
        assert_eq!(
            message(&error),
            "hf://owner/model: the hub does not accept the token from HF_TOKEN"
        );
        assert!(!format!("{error:?}").contains("hf_wrong"));
    }
    drop(world);
}

#[test]
fn a_token_that_a_server_repeats_is_not_printed() {
    let (world, settings) = private();
    world.server.fault("/", Fault::Status(403, TOKEN));
    let hub = Hub::new(settings);
    let of_file = hub
        .file(&at("hf://owner/model/weights.bin"), &())
        .unwrap_err();
    let of_model = hub.snapshot(&at(MODEL), all, &()).unwrap_err();
    for error in [of_file, of_model] {
        assert!(!format!("{error:?} {error} {:?}", error.hint()).contains("verysecret"));
    }
}

#[test]
fn the_token_does_not_follow_a_redirect_to_another_host() {
    let (world, settings) = private();
    let storage = storage();
    world
        .server
        .fault("weights.bin", Fault::Redirect(storage.endpoint()));
    let file = Hub::new(settings)
        .file(&at("hf://owner/model/weights.bin"), &())
        .unwrap();
    assert_eq!(std::fs::read(file).unwrap(), weights());
    let requests = storage.requests();
    assert_eq!(requests.len(), 1);
    assert!(
        requests[0]
            .headers
            .iter()
            .all(|(_, value)| !value.contains(TOKEN)),
        "{requests:?}"
    );
}

#[test]
fn the_token_does_not_follow_a_disguised_redirect() {
    // Addresses that look relative, but are not: to a URL parser, `\` is `/`.
    let storage = storage();
    let host = storage.endpoint().replace("http:", "");
    for address in [
        host.clone(),
        host.replace("//", "/\\"),
        host.replace("//", "\\\\"),
    ] {
        let (world, settings) = private();
        world
            .server
            .fault("weights.bin", Fault::Redirect(address.clone()));
        let file = Hub::new(settings).file(&at("hf://owner/model/weights.bin"), &());
        assert_eq!(
            std::fs::read(file.unwrap()).unwrap(),
            weights(),
            "{address}"
        );
    }
    let requests = storage.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests
            .iter()
            .all(|request| request.header("authorization").is_none())
    );
}

#[test]
fn the_token_does_not_follow_a_redirect_of_a_listing() {
    let (world, settings) = private();
    let storage = storage();
    world
        .server
        .fault("/api/", Fault::Redirect(storage.endpoint()));
    let error = Hub::new(settings)
        .snapshot(&at(MODEL), all, &())
        .unwrap_err();
    message(&error);
    assert!(storage.requests().is_empty());
}

#[test]
fn a_damaged_file_of_another_host_is_refused() {
    let (world, settings) = private();
    let storage = storage();
    world
        .server
        .fault("weights.bin", Fault::Redirect(storage.endpoint()));
    let hub = Hub::new(settings);
    for fault in [
        Fault::Corrupt,
        Fault::Truncate(5),
        Fault::Status(403, ""),
        Fault::Redirect("nowhere:".into()),
    ] {
        storage.fault("weights.bin", fault);
        message(
            &hub.file(&at("hf://owner/model/weights.bin"), &())
                .unwrap_err(),
        );
        assert_eq!(world.blobs().len(), 0);
    }
}

#[test]
fn a_redirect_on_the_hub_itself_is_followed_with_the_token() {
    let (world, settings) = private();
    world.server.put("new/model", "main", "a.txt", b"renamed");
    world.server.fault(
        "/old/",
        Fault::Moved("/new/model/resolve/main/a.txt".into()),
    );
    let file = Hub::new(settings)
        .file(&at("hf://old/model/a.txt"), &())
        .unwrap();
    assert_eq!(std::fs::read(file).unwrap(), b"renamed");
}

#[test]
fn a_redirect_in_circles_ends() {
    let (world, settings) = private();
    world.server.fault(
        "/old/",
        Fault::Moved("/old/model/resolve/main/a.txt".into()),
    );
    let error = Hub::new(settings)
        .file(&at("hf://old/model/a.txt"), &())
        .unwrap_err();
    message(&error);
    assert!(world.server.requests().len() < 20);
}
