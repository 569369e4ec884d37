//! Tests of all pictures: that captions say what is seen, and that the splits are apart.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use crate::colour::COLOURS;
use crate::corpus::{Pairs, Picture, coloured, generate, pairs};
use crate::files::{differences, files, write};
use crate::kind::KINDS;
use crate::place::{EXTENT, Rectangle};
use crate::scene::{Group, Layout, Scene, Size};
use crate::{FOLDER, english, german};

static SPLITS: LazyLock<[(&str, Vec<Picture>); 3]> = LazyLock::new(generate);

fn every_picture() -> impl Iterator<Item = &'static Picture> {
    SPLITS.iter().flat_map(|(_, pictures)| pictures)
}

fn group(words: &str) -> Group {
    let [number, colour, kind] = words.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{words}");
    };
    let (size, count) = match number {
        "small" => (Size::Small, 1),
        "large" => (Size::Large, 1),
        number => (Size::Medium, number.parse().expect("a number")),
    };
    Group {
        kind: KINDS.iter().find(|it| it.english == kind).expect(kind),
        colour: COLOURS
            .iter()
            .find(|it| it.english == colour)
            .expect(colour),
        size,
        count,
    }
}

/// Checks the captions of a scene of these groups, row by row.
fn check(layout: Layout, groups: &[&str], english: &str, german: &str) {
    let groups: Vec<Group> = groups.iter().map(|words| group(words)).collect();
    assert_eq!(groups.len(), layout.groups());
    let scene = Scene { layout, groups };
    assert_eq!(english::caption(&scene), english);
    assert_eq!(german::caption(&scene), german);
}

#[test]
fn captions_are_right_in_every_layout() {
    check(
        Layout::Beside,
        &["small red boat", "2 green tree"],
        "a small red boat is left of two green trees",
        "ein kleines rotes Boot ist links von zwei grünen Bäumen",
    );
    check(
        Layout::Above,
        &["3 yellow star", "large white fish"],
        "three yellow stars are above a large white fish",
        "drei gelbe Sterne sind über einem großen weißen Fisch",
    );
    check(
        Layout::Between,
        &["2 purple leaf", "large black cat", "small brown heart"],
        "a large black cat is between two purple leaves and a small brown heart",
        "eine große schwarze Katze ist zwischen zwei violetten Blättern und einem kleinen braunen Herzen",
    );
    check(
        Layout::PairAbove,
        &["small blue key", "2 red fish", "large green clock"],
        "a small blue key and two red fish are above a large green clock",
        "ein kleiner blauer Schlüssel und zwei rote Fische sind über einer großen grünen Uhr",
    );
    check(
        Layout::AbovePair,
        &["small white apple", "2 blue car", "small black butterfly"],
        "a small white apple is above two blue cars and a small black butterfly",
        "ein kleiner weißer Apfel ist über zwei blauen Autos und einem kleinen schwarzen Schmetterling",
    );
    check(
        Layout::Square,
        &[
            "large red house",
            "small yellow sun",
            "large brown boot",
            "small purple tent",
        ],
        "a large red house and a small yellow sun are above a large brown boot and a small purple tent",
        "ein großes rotes Haus und eine kleine gelbe Sonne sind über einem großen braunen Stiefel und einem kleinen \
         violetten Zelt",
    );
}

/// The layout as a reader of the picture finds it: rows are groups that share heights.
fn layout_of(boxes: &[Rectangle]) -> Option<Layout> {
    let share = |from: i32, to: i32, other_from: i32, other_to: i32| {
        to.min(other_to) - from.max(other_from)
    };
    let mut rows: Vec<Vec<&Rectangle>> = Vec::new();
    for (index, it) in boxes.iter().enumerate() {
        let beside = |other: &Rectangle| share(it.top, it.bottom(), other.top, other.bottom());
        match rows.last_mut() {
            Some(row) if row.iter().all(|other| beside(other) >= 60) => {
                // Read from left to right.
                let last = row.last().expect("a row is not empty");
                assert!(it.left - last.right() >= 40);
                row.push(it);
            }
            _ => {
                // Read from above to below.
                assert!(
                    boxes[..index]
                        .iter()
                        .all(|other| it.top - other.bottom() >= 40)
                );
                rows.push(vec![it]);
            }
        }
    }
    match rows.iter().map(Vec::len).collect::<Vec<_>>()[..] {
        [2] => Some(Layout::Beside),
        [1, 1] => {
            let [above, below] = [rows[0][0], rows[1][0]];
            let over = share(above.left, above.right(), below.left, below.right());
            (over >= 60).then_some(Layout::Above)
        }
        [3] => Some(Layout::Between),
        [2, 1] => Some(Layout::PairAbove),
        [1, 2] => Some(Layout::AbovePair),
        [2, 2] => Some(Layout::Square),
        _ => None,
    }
}

/// The box around all copies of a group.
fn around(copies: &[Rectangle]) -> Rectangle {
    let (left, top) = (
        copies.iter().map(|it| it.left).min(),
        copies.iter().map(|it| it.top).min(),
    );
    let (left, top) = (left.expect("a copy"), top.expect("a copy"));
    let right = copies.iter().map(Rectangle::right).max().expect("a copy");
    let bottom = copies.iter().map(Rectangle::bottom).max().expect("a copy");
    Rectangle {
        left,
        top,
        width: right - left,
        height: bottom - top,
    }
}

#[test]
fn places_alone_tell_the_layout_and_the_order_of_groups() {
    for picture in every_picture() {
        let boxes: Vec<Rectangle> = picture.places.iter().map(|it| around(it)).collect();
        let caption = english::caption(&picture.scene);
        assert_eq!(
            layout_of(&boxes),
            Some(picture.scene.layout),
            "{caption}: {boxes:?}"
        );
    }
}

#[test]
fn objects_are_inside_the_picture_and_apart_from_each_other() {
    for picture in every_picture() {
        let all: Vec<&Rectangle> = picture.places.iter().flatten().collect();
        assert!((2..=4).contains(&all.len()));
        for (index, it) in all.iter().enumerate() {
            assert!(it.left >= 0 && it.top >= 0 && it.right() <= EXTENT && it.bottom() <= EXTENT);
            for other in &all[..index] {
                let apart = it.left - other.right() >= 10
                    || other.left - it.right() >= 10
                    || it.top - other.bottom() >= 10
                    || other.top - it.bottom() >= 10;
                assert!(apart, "{it:?} {other:?}");
            }
        }
    }
}

#[test]
fn small_and_large_objects_are_clearly_different_on_a_raster_of_64_pixels() {
    for picture in every_picture() {
        for (group, copies) in picture.scene.groups.iter().zip(&picture.places) {
            assert_eq!(copies.len(), group.count);
            for copy in copies {
                let pixels = f64::from(copy.width.max(copy.height)) * 64.0 / f64::from(EXTENT);
                let expected = match group.size {
                    Size::Small => 12.0..15.0,
                    Size::Medium => 15.0..19.0,
                    Size::Large => 20.0..27.0,
                };
                assert!(expected.contains(&pixels), "{group:?}: {pixels}");
                assert_eq!(group.count == 1, group.size != Size::Medium);
            }
        }
    }
}

/// Every two groups of a picture, as coloured kinds.
fn pairs_of(picture: &Picture) -> Vec<[usize; 2]> {
    let groups: Vec<usize> = picture.scene.groups.iter().map(coloured).collect();
    let mut found = Vec::new();
    for (index, &one) in groups.iter().enumerate() {
        for &other in &groups[..index] {
            found.push([one.min(other), one.max(other)]);
        }
    }
    found
}

#[test]
fn no_two_coloured_kinds_of_a_test_picture_are_in_one_training_picture() {
    let [(_, train), (_, valid), (_, test)] = &*SPLITS;
    assert_eq!((train.len(), valid.len(), test.len()), (10_000, 300, 500));
    let known: HashSet<[usize; 2]> = train.iter().flat_map(pairs_of).collect();
    for picture in valid.iter().chain(test) {
        for pair in pairs_of(picture) {
            assert!(
                !known.contains(&pair),
                "{}",
                english::caption(&picture.scene)
            );
            assert_eq!(pairs(pair[1], pair[0]), Pairs::HeldOut);
        }
    }
}

#[test]
fn no_two_pictures_have_the_same_groups_in_any_order() {
    let mut seen = HashSet::new();
    for picture in every_picture() {
        let groups = picture.scene.groups.iter();
        let mut groups: Vec<_> = groups.map(|it| (coloured(it), it.size, it.count)).collect();
        groups.sort_unstable();
        assert!(seen.insert(groups), "{}", english::caption(&picture.scene));
    }
}

#[test]
fn training_shows_every_coloured_kind_and_every_word_often() {
    let [(_, train), rest @ ..] = &*SPLITS;
    let mut kinds = HashMap::<usize, usize>::new();
    for group in train.iter().flat_map(|picture| &picture.scene.groups) {
        *kinds.entry(coloured(group)).or_default() += 1;
    }
    assert_eq!(kinds.len(), KINDS.len() * COLOURS.len());
    assert!(kinds.values().all(|&count| count >= 40), "{kinds:?}");
    for caption in [english::caption, german::caption] {
        let mut words = HashMap::<String, usize>::new();
        for picture in train {
            for word in caption(&picture.scene).split(' ') {
                *words.entry(word.to_owned()).or_default() += 1;
            }
        }
        for picture in rest.iter().flat_map(|(_, pictures)| pictures) {
            for word in caption(&picture.scene).split(' ') {
                assert!(words.get(word).is_some_and(|&count| count >= 20), "{word}");
            }
        }
    }
}

#[test]
fn pictures_are_small_files() {
    let longest = every_picture().map(|picture| picture.svg.len()).max();
    assert!(longest <= Some(1536), "{longest:?}");
}

#[test]
fn lines_of_objects_belong_to_captions_and_have_their_phrases() {
    let files: HashMap<String, String> = files().into_iter().collect();
    for name in ["train", "valid", "test"] {
        let captions = files[&format!("{name}.tsv")].lines().skip(1);
        let objects = files[&format!("{name}.objects.jsonl")].lines();
        assert_eq!(captions.clone().count(), objects.clone().count());
        for (caption, line) in captions.zip(objects) {
            let [picture, english, german] = caption.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{caption}");
            };
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(line["picture"], picture);
            assert!(files.contains_key(picture));
            for object in line["objects"].as_array().expect("a list") {
                for (caption, language) in [(english, "en"), (german, "de")] {
                    let phrase = object[language].as_str().expect("a phrase");
                    let found = format!(" {caption} ")
                        .matches(&format!(" {phrase} "))
                        .count();
                    assert_eq!(found, 1, "{caption}: {phrase}");
                }
                assert!(!object["boxes"].as_array().expect("a list").is_empty());
            }
        }
    }
}

#[test]
fn the_example_of_the_readme_is_what_the_generator_draws() {
    let example: Vec<_> = files()
        .into_iter()
        .filter(|(path, _)| path == "example.svg")
        .collect();
    assert_eq!(example.len(), 1);
    let problems = differences(&example, Path::new(FOLDER));
    assert!(problems.is_empty(), "{problems:?}");
    let readme = fs::read_to_string(Path::new(FOLDER).join("README.md")).expect("a README");
    let scene = &SPLITS[2].1[0].scene;
    for caption in [english::caption(scene), german::caption(scene)] {
        assert!(readme.contains(&format!("> {caption}\n")), "{caption}");
    }
}

#[test]
fn writing_replaces_what_is_broken_and_leaves_other_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |path: &str| (path.to_owned(), format!("text of {path}"));
    let files = [
        file("pictures/test/1.svg"),
        file("pictures/train/1.svg"),
        file("test.tsv"),
    ];
    assert_eq!(differences(&files, folder.path()).len(), 3);
    fs::write(folder.path().join("README.md"), "kept").expect("a file");
    for _ in 0..2 {
        write(&files, folder.path()).expect("files");
        assert!(differences(&files, folder.path()).is_empty());
        fs::write(folder.path().join("pictures/test/1.svg"), "broken").expect("a file");
        fs::write(folder.path().join("pictures/test/2.svg"), "too many").expect("a file");
    }
    write(&files, folder.path()).expect("files");
    assert!(differences(&files, folder.path()).is_empty());
    assert!(!folder.path().join("pictures/test/2.svg").exists());
    let left = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(
        left, 3,
        "README.md, pictures and test.tsv, and nothing of the writing"
    );
}
