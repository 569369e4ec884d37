use attend_hub::{HubPath, Kind};

use crate::{at, message};

#[test]
fn paths_are_read_and_printed_again() {
    // the path, its kind, id, revision and path
    let cases = [
        ("hf://o/n", Kind::Model, "o/n", "main", ""),
        (
            "hf://Helsinki-NLP/opus-mt-en-de",
            Kind::Model,
            "Helsinki-NLP/opus-mt-en-de",
            "main",
            "",
        ),
        (
            "hf://datasets/o/n/train.en",
            Kind::Dataset,
            "o/n",
            "main",
            "train.en",
        ),
        (
            "hf://o/n@v1.0/a/b.txt",
            Kind::Model,
            "o/n",
            "v1.0",
            "a/b.txt",
        ),
        (
            "hf://o/n@feature%2Fx/f",
            Kind::Model,
            "o/n",
            "feature/x",
            "f",
        ),
        ("hf://o/n@refs/pr/4", Kind::Model, "o/n", "refs/pr/4", ""),
        ("hf://o/n@refs/pr/4/f", Kind::Model, "o/n", "refs/pr/4", "f"),
        (
            "hf://datasets/o/n@refs/convert/parquet/a/b",
            Kind::Dataset,
            "o/n",
            "refs/convert/parquet",
            "a/b",
        ),
        ("hf://o/n/a@b/c", Kind::Model, "o/n", "main", "a@b/c"),
        ("hf://o/n/f%20g", Kind::Model, "o/n", "main", "f%20g"),
        (
            "hf://datasets/datasets/n",
            Kind::Dataset,
            "datasets/n",
            "main",
            "",
        ),
    ];
    for (text, kind, id, revision, inside) in cases {
        let path = at(text);
        let parts = (path.kind(), path.id(), path.revision(), path.path());
        assert_eq!(parts, (kind, id.to_string(), revision, inside), "{text}");
        assert_eq!(path.to_string(), text);
        assert_eq!(at(&path.to_string()), path);
    }
}

#[test]
fn an_encoded_revision_is_the_known_form() {
    assert_eq!(at("hf://o/n@refs%2Fpr%2F4/f"), at("hf://o/n@refs/pr/4/f"));
    assert_eq!(at("hf://o/n/folder/"), at("hf://o/n/folder"));
}

#[test]
fn other_paths_are_not_of_the_hub() {
    for text in [
        "",
        "runs/quickstart",
        "hf:/o/n",
        "HF://o/n",
        "/hf://o/n",
        "https://huggingface.co/o/n",
    ] {
        assert_eq!(HubPath::parse(text).unwrap(), None, "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_path_is_said() {
    let long = "x".repeat(97);
    let deep = "y/".repeat(600) + "z";
    let cases = [
        ("hf://", "owner is missing"),
        ("hf://gpt2", "name is missing"),
        ("hf://o/", "name is missing"),
        ("hf:///n", "owner is missing"),
        ("hf://datasets/o", "name is missing"),
        ("hf://o//f", "name is missing"),
        ("hf://o/n//f", "empty part"),
        ("hf://o/n/a//f", "empty part"),
        ("hf://o/n@", "revision is missing"),
        ("hf://o/n@/f", "revision is missing"),
        ("hf://../n", "cannot begin or end"),
        ("hf://o/..", "cannot begin or end"),
        ("hf://o/a--b", "cannot begin or end"),
        ("hf://o/n/../x", "`.` or `..`"),
        ("hf://o/n/./x", "`.` or `..`"),
        ("hf://o/n/x/..", "`.` or `..`"),
        ("hf://o/n@../x", "git does not allow"),
        ("hf://o/n@a%2F..%2Fb", "git does not allow"),
        ("hf://o/n@%2Fetc", "empty part"),
        ("hf://o/n@a%5Cb", "git does not allow"),
        ("hf://o/n@a%00b", "git does not allow"),
        ("hf://o/n@%FF", "not UTF-8"),
        ("hf://o/n/a\\b", "backslash"),
        ("hf://o/n/a\tb", "control character"),
        ("hf://o/n/a\nb", "control character"),
        ("hf://o/n/a b", "space"),
        ("hf://o o/n", "letters, digits"),
        ("hf://o/n?x", "letters, digits"),
        ("hf://spaces/o/n", "spaces are not supported"),
        ("hf://buckets/o/n", "buckets are not supported"),
        (&format!("hf://o/{long}"), "longer than 96"),
        (&format!("hf://o/n@{}", "r".repeat(256)), "longer than 255"),
        (&format!("hf://o/n/{deep}"), "too long"),
        (&format!("hf://o/n/{}", "p".repeat(300)), "too long"),
    ];
    for (text, expected) in cases {
        let error = HubPath::parse(text).unwrap_err();
        let message = message(&error);
        assert!(message.contains(expected), "{text}: {message}");
        assert!(message.len() < 400, "{message}");
    }
}

#[test]
fn any_text_is_a_path_that_prints_itself_or_an_error() {
    let pieces = [
        "hf://",
        "datasets/",
        "spaces",
        "refs/pr/",
        "refs/convert/",
        "main",
        "owner",
        "/",
        "/",
        "/",
        "@",
        "@",
        "%2F",
        "%",
        "%00",
        "..",
        ".",
        "-",
        "\\",
        " ",
        "\n",
        "\u{0}",
        "名",
        "4",
        "~",
        "\u{202e}",
    ];
    let mut state = 1_u32;
    let mut next = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    let (mut paths, mut errors) = (0, 0);
    for _ in 0..100_000 {
        let length = next(9);
        let text: String = (0..length).map(|_| pieces[next(pieces.len())]).collect();
        match HubPath::parse(&format!("hf://{text}")) {
            Ok(path) => {
                let path = path.unwrap();
                assert_eq!(at(&path.to_string()), path, "{text:?}");
                let part = |part: &str| part == ".." || part == "." || part.is_empty();
                assert!(!path.revision().split('/').any(part), "{text:?}");
                assert!(
                    path.path().is_empty() || !path.path().split('/').any(part),
                    "{text:?}"
                );
                paths += 1;
            }
            Err(error) => {
                message(&error);
                errors += 1;
            }
        }
    }
    assert!(
        paths > 100 && errors > 100,
        "{paths} paths, {errors} errors"
    );
}
