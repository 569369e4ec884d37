use std::fs;
use std::time::{Duration, Instant};

use attend_hub::Error;
use attend_hub::testing::Fault;

use crate::{MODEL, World, all, at, message, weights};

/// Fails with a fault, leaves nothing behind, and works as soon as the fault is gone.
fn fails(fault: Fault) -> Error {
    let world = World::new();
    world.server.fault("resolve", fault);
    let started = Instant::now();
    let error = world.read("hf://owner/model/weights.bin").unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(20), "{error}");
    message(&error);
    assert_eq!(world.blobs(), [] as [std::path::PathBuf; 0], "{error}");
    world.server.heal();
    assert_eq!(
        world.read("hf://owner/model/weights.bin").unwrap(),
        weights()
    );
    error
}

#[test]
fn a_truncated_body_is_an_error_and_no_file() {
    for bytes in [0, 1, 100_000, 199_999] {
        let error = fails(Fault::Truncate(bytes));
        assert!(
            matches!(error, Error::Network { .. } | Error::Damaged { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("of 200000 bytes"), "{error}");
    }
}

#[test]
fn a_wrong_hash_is_an_error_and_no_file() {
    let error = fails(Fault::Corrupt);
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("its hash is"), "{error}");
}

#[test]
fn a_wrong_hash_of_a_small_file_is_an_error_and_no_file() {
    let world = World::new();
    world.server.fault("config.json", Fault::Corrupt);
    let error = world.read("hf://owner/model/config.json").unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert_eq!(world.blobs().len(), 0);
}

#[test]
fn a_body_of_another_size_is_an_error_and_no_file() {
    for size in [1, 199_999, 200_001, 1_u64 << 60] {
        let error = fails(Fault::Header("X-Linked-Size", format!("{size}")));
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
}

#[test]
fn a_stalled_body_ends_in_time() {
    for bytes in [0, 100_000] {
        let error = fails(Fault::Stall(bytes));
        assert!(matches!(error, Error::Network { .. }), "{error}");
    }
}

#[test]
fn a_slow_body_ends_in_time() {
    let error = fails(Fault::Trickle(10, Duration::from_millis(50)));
    assert!(
        error.to_string().contains("less than 1 KiB per second"),
        "{error}"
    );
}

#[test]
fn a_body_in_parts_is_no_error() {
    let world = World::new();
    world.server.fault(
        "resolve",
        Fault::Trickle(20_000, Duration::from_millis(100)),
    );
    assert_eq!(
        world.read("hf://owner/model/weights.bin").unwrap(),
        weights()
    );
}

#[test]
fn an_error_page_is_not_the_file() {
    let error = fails(Fault::Body(b"<html>please log in</html>".to_vec()));
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[test]
fn what_is_missing_is_told_apart() {
    let world = World::new();
    let of = |path: &str| message(&world.read(path).unwrap_err());
    assert_eq!(
        of("hf://owner/model/x.txt"),
        "hf://owner/model/x.txt: there is no such file"
    );
    assert_eq!(
        of("hf://owner/model@v9/x.txt"),
        "hf://owner/model: there is no revision `v9`"
    );
    let repository = "hf://owner/none: there is no such repository, or it is private";
    assert_eq!(of("hf://owner/none/x.txt"), repository);
    let of = |path: &str| message(&world.hub().snapshot(&at(path), all, &()).unwrap_err());
    assert_eq!(
        of("hf://owner/model@v9"),
        "hf://owner/model: there is no revision `v9`"
    );
    assert_eq!(of("hf://owner/none"), repository);
    assert_eq!(world.blobs().len(), 0);
}

#[test]
fn statuses_of_the_server_are_explained() {
    // the status, its code, a part of the message and of the hint
    let cases = [
        (
            401,
            "RepoNotFound",
            "private, or there is no such repository",
            "HF_TOKEN",
        ),
        (401, "GatedRepo", "accepted its terms", "HF_TOKEN"),
        (
            403,
            "GatedRepo",
            "accepted its terms",
            "huggingface.co/owner/model",
        ),
        (403, "", "does not permit", "HF_TOKEN"),
        (404, "", "no such", "spelling"),
        (429, "", "status 429", "HF_TOKEN"),
        (418, "", "status 418", "HF_ENDPOINT"),
        (500, "", "status 500", "later"),
        (503, "", "status 503", "later"),
    ];
    for (status, code, expected, hint) in cases {
        let world = World::new();
        world.server.fault("/", Fault::Status(status, code));
        let of_file = world.read("hf://owner/model/weights.bin").unwrap_err();
        let of_model = world.hub().snapshot(&at(MODEL), all, &()).unwrap_err();
        for error in [of_file, of_model] {
            assert!(
                message(&error).contains(expected),
                "{status} {code}: {error}"
            );
            assert!(
                error.hint().unwrap().contains(hint),
                "{status} {code}: {:?}",
                error.hint()
            );
        }
        assert!(crate::files(&world.cache()).is_empty());
    }
}

#[test]
fn an_answer_that_is_no_listing_is_refused() {
    for body in [
        "",
        "[]",
        "{}",
        "<html>",
        "{\"id\": \"x\", \"sha\": \"main\", \"siblings\": []}",
    ] {
        let world = World::new();
        world.server.fault("/api/", Fault::Body(body.into()));
        let error = world.hub().snapshot(&at(MODEL), all, &()).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{body}: {error}");
        message(&error);
    }
}

#[test]
fn a_temporary_error_is_tried_again() {
    let world = World::new();
    world.server.fault("resolve", Fault::Status(503, ""));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(150));
            world.server.heal();
        });
        assert_eq!(
            world.read("hf://owner/model/weights.bin").unwrap(),
            weights()
        );
    });
}

#[test]
fn contents_of_a_wrong_size_in_the_cache_are_replaced() {
    let world = World::new();
    world.read("hf://owner/model/weights.bin").unwrap();
    fs::write(&world.blobs()[0], b"damaged").unwrap();
    assert_eq!(
        world.read("hf://owner/model/weights.bin").unwrap(),
        weights()
    );
}
