use std::fs;
use std::path::{Path, PathBuf};

use attend_infer::heatmap::clean;

/// The last parts of the paths of runs, as many as make each name its own. A path that is given twice gets a number.
pub(super) fn distinct(folders: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<String>> = folders.iter().map(|folder| parts(folder)).collect();
    let mut lengths = vec![1; parts.len()];
    let name = |parts: &[String], length: usize| {
        let start = parts.len().saturating_sub(length);
        parts[start..].join("/")
    };
    loop {
        let names: Vec<String> = parts
            .iter()
            .zip(&lengths)
            .map(|(p, l)| name(p, *l))
            .collect();
        let shared = |index: usize| {
            let mut others = (0..names.len()).filter(|&other| parts[other] != parts[index]);
            let same = others.any(|other| names[other] == names[index]);
            same && lengths[index] < parts[index].len()
        };
        let longer: Vec<usize> = (0..names.len()).filter(|&index| shared(index)).collect();
        if longer.is_empty() {
            return numbered(names);
        }
        longer.into_iter().for_each(|index| lengths[index] += 1);
    }
}

/// The parts of a path's real name.
fn parts(folder: &Path) -> Vec<String> {
    let real = fs::canonicalize(folder);
    let real = real.as_deref().unwrap_or(folder);
    let parts = real.components().filter_map(|part| match part {
        std::path::Component::Normal(part) => Some(clean(&part.to_string_lossy())),
        _ => None,
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        vec!["run".into()]
    } else {
        parts
    }
}

fn numbered(names: Vec<String>) -> Vec<String> {
    let numbered = names.iter().enumerate().map(|(index, name)| {
        match names[..index].iter().filter(|other| *other == name).count() {
            0 => name.clone(),
            before => format!("{name} ({})", before + 1),
        }
    });
    numbered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_short_as_they_can_be_and_distinct() {
        let names = |paths: &[&str]| {
            let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            distinct(&paths)
        };
        assert_eq!(names(&["/x/runs/a", "/x/runs/b/"]), ["a", "b"]);
        assert_eq!(
            names(&["/x/one/base", "/x/two/base", "/x/three"]),
            ["one/base", "two/base", "three"]
        );
        assert_eq!(names(&["/x/a", "/x/a"]), ["a", "a (2)"]);
        assert_eq!(names(&["/a", "/b/a"]), ["a", "b/a"]);
    }
}
