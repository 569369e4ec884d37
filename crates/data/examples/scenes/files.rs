//! The files of the data, and writing them as a whole.

use std::io;
use std::path::Path;
use std::{fs, process};

use serde::Serialize;

use crate::corpus::{Picture, generate};
use crate::german::Case;
use crate::place::{EXTENT, Rectangle};
use crate::scene::Group;
use crate::{english, german};

/// Of the README: the first picture of the test set.
const EXAMPLE: &str = "example.svg";
const PICTURES: &str = "pictures";

/// A path in the folder, and its content.
pub(crate) type File = (String, String);

/// One line of `objects.jsonl`.
#[derive(Serialize)]
struct Line<'a> {
    picture: &'a str,
    objects: Vec<Object>,
}

/// What a caption names: with which words in each language, and where its objects are.
#[derive(Serialize)]
struct Object {
    en: String,
    de: String,
    boxes: Vec<[f64; 4]>,
}

/// Every file, the tables after the pictures that they name.
pub(crate) fn files() -> Vec<File> {
    let (mut pictures, mut tables) = (Vec::new(), Vec::new());
    for (name, split) in generate() {
        let mut captions = String::from("picture\ten\tde\n");
        let mut objects = String::new();
        for (index, picture) in split.iter().enumerate() {
            let path = format!("{PICTURES}/{name}/{:05}.svg", index + 1);
            let (english, german) = (
                english::caption(&picture.scene),
                german::caption(&picture.scene),
            );
            captions.push_str(&format!("{path}\t{english}\t{german}\n"));
            objects.push_str(&line(&path, picture));
            if (name, index) == ("test", 0) {
                tables.push((EXAMPLE.to_owned(), picture.svg.clone()));
            }
            pictures.push((path, picture.svg.clone()));
        }
        tables.push((format!("{name}.objects.jsonl"), objects));
        tables.push((format!("{name}.tsv"), captions));
    }
    pictures.extend(tables);
    pictures
}

fn line(path: &str, picture: &Picture) -> String {
    let places = |group: &Group| {
        let groups = picture.scene.groups.iter().zip(&picture.places);
        let mut same = groups.filter(|(it, _)| it.kind.number == group.kind.number);
        same.next().map_or(&[][..], |(_, places)| places)
    };
    let named = |group: &Group, case| Object {
        en: english::phrase(group),
        de: german::phrase(group, case),
        boxes: places(group).iter().map(shares).collect(),
    };
    let (subject, object) = picture.scene.subject_and_object();
    let subject = subject.iter().map(|group| named(group, Case::Nominative));
    let object = object.iter().map(|group| named(group, Case::Dative));
    let line = Line {
        picture: path,
        objects: subject.chain(object).collect(),
    };
    serde_json::to_string(&line).expect("only numbers and strings") + "\n"
}

/// Left, top, right and bottom as shares of the picture's width and height.
fn shares(place: &Rectangle) -> [f64; 4] {
    [place.left, place.top, place.right(), place.bottom()]
        .map(|tenths| (f64::from(tenths) * 1e4 / f64::from(EXTENT)).round() / 1e4)
}

/// What is wrong with the files in the folder.
pub(crate) fn differences(files: &[File], folder: &Path) -> Vec<String> {
    let problem = |(path, text): &File| {
        let path = folder.join(path);
        let problem = match fs::read(&path) {
            Ok(found) if found == text.as_bytes() => return None,
            Ok(_) => "differs from what the generator writes".to_owned(),
            Err(error) => error.to_string(),
        };
        Some(format!("{}: {problem}", path.display()))
    };
    files.iter().filter_map(problem).collect()
}

/// Writes beside the files that are there, and moves everything in its place at the end. The tables leave first and
/// come last, so that a table never names pictures that are not those it was written with.
pub(crate) fn write(files: &[File], folder: &Path) -> io::Result<()> {
    let aside = folder.join(format!(".new-{}", process::id()));
    let written = write_all(files, &aside).and_then(|()| replace(files, &aside, folder));
    let removed = fs::remove_dir_all(&aside);
    written.and(removed)
}

fn write_all(files: &[File], folder: &Path) -> io::Result<()> {
    let mut made = None;
    for (path, text) in files {
        let path = folder.join(path);
        let parent = path.parent();
        if parent != made.as_deref() {
            parent.map_or(Ok(()), fs::create_dir_all)?;
            made = parent.map(Path::to_owned);
        }
        fs::write(&path, text)?;
    }
    Ok(())
}

fn replace(files: &[File], from: &Path, to: &Path) -> io::Result<()> {
    let absent = |result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    let tables = || files.iter().filter(|(path, _)| !path.contains('/'));
    for (path, _) in tables() {
        absent(fs::remove_file(to.join(path)))?;
    }
    let pictures = to.join(PICTURES);
    absent(fs::remove_dir_all(&pictures))?;
    fs::rename(from.join(PICTURES), &pictures)?;
    for (path, _) in tables() {
        fs::rename(from.join(path), to.join(path))?;
    }
    Ok(())
}
