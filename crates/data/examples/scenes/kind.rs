//! The kinds of objects: their words and their looks, read from the tables beside this file.

use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(read);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gender {
    Masculine,
    Feminine,
    Neuter,
}

#[derive(Debug)]
pub(crate) struct Kind {
    /// Its place in the table.
    pub(crate) number: usize,
    pub(crate) english: &'static str,
    pub(crate) english_plural: &'static str,
    pub(crate) gender: Gender,
    pub(crate) german: &'static str,
    pub(crate) german_plural: &'static str,
    /// Singular: "von einem Herzen".
    pub(crate) german_dative: &'static str,
    pub(crate) shape: Shape,
}

/// SVG elements, and the box that they fill.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) elements: &'static str,
}

/// The lines of a table without comments and empty lines.
fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn read() -> Vec<Kind> {
    let mut shapes: HashMap<&str, Shape> = lines(include_str!("shapes.txt")).map(shape).collect();
    let kinds = lines(include_str!("nouns.txt"))
        .enumerate()
        .map(|(number, line)| kind(number, line, &mut shapes))
        .collect();
    assert!(shapes.is_empty(), "shapes without a noun: {shapes:?}");
    kinds
}

fn shape(line: &'static str) -> (&'static str, Shape) {
    let read = || {
        let (head, elements) = line.split_once(" | ")?;
        let (name, bounds) = head.split_once(' ')?;
        let bounds: Vec<f64> = bounds.split(' ').map_while(|it| it.parse().ok()).collect();
        let [left, top, right, bottom] = bounds[..] else {
            return None;
        };
        let shape = Shape {
            left,
            top,
            width: right - left,
            height: bottom - top,
            elements,
        };
        Some((name, shape))
    };
    read().unwrap_or_else(|| panic!("shapes.txt: {line}"))
}

fn kind(number: usize, line: &'static str, shapes: &mut HashMap<&str, Shape>) -> Kind {
    let mut read = || {
        let mut columns = line.split(" | ");
        let (english, english_plural) = columns.next()?.split_once(", ")?;
        let (noun, german_plural) = columns.next()?.split_once(", ")?;
        let (article, german) = noun.split_once(' ')?;
        Some(Kind {
            number,
            english,
            english_plural,
            gender: match article {
                "der" => Gender::Masculine,
                "die" => Gender::Feminine,
                "das" => Gender::Neuter,
                _ => return None,
            },
            german,
            german_plural,
            german_dative: columns.next().unwrap_or(german),
            shape: shapes.remove(english)?,
        })
    };
    read().unwrap_or_else(|| panic!("nouns.txt, or no shape: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_word_names_two_kinds() {
        assert!(KINDS.len() >= 30);
        let english: HashSet<_> = KINDS
            .iter()
            .flat_map(|kind| HashSet::from([kind.english, kind.english_plural]))
            .collect();
        let same = KINDS
            .iter()
            .filter(|kind| kind.english == kind.english_plural)
            .count();
        assert_eq!(english.len() + same, 2 * KINDS.len());
        let german: HashSet<_> = KINDS.iter().map(|kind| kind.german).collect();
        assert_eq!(german.len(), KINDS.len());
    }

    #[test]
    fn shapes_are_drawn_by_elements_that_refer_to_nothing() {
        for kind in KINDS.iter() {
            let elements = kind.shape.elements;
            for forbidden in ["href", "url(", "<text", "<image", "<style", "id="] {
                assert!(
                    !elements.contains(forbidden),
                    "{}: {forbidden}",
                    kind.english
                );
            }
            let longer = kind.shape.width.max(kind.shape.height);
            assert!(
                (90.0..110.0).contains(&longer),
                "{}: {longer}",
                kind.english
            );
        }
    }
}
