//! German captions.

use crate::kind::Gender;
use crate::scene::{Group, Layout, Scene, Size};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Case {
    Nominative,
    Dative,
}

/// The form of the noun that a caption has.
fn noun(group: &Group, case: Case) -> String {
    let kind = group.kind;
    match (group.count, case) {
        (1, Case::Nominative) => kind.german.to_owned(),
        (1, Case::Dative) => kind.german_dative.to_owned(),
        (_, Case::Dative) if !kind.german_plural.ends_with(['n', 's']) => {
            format!("{}n", kind.german_plural)
        }
        _ => kind.german_plural.to_owned(),
    }
}

/// A group as a caption names it: with mixed endings after "ein", strong ones after "zwei" and "drei".
pub(crate) fn phrase(group: &Group, case: Case) -> String {
    let (number, ending) = match (group.count, case, group.kind.gender) {
        (1, Case::Nominative, Gender::Masculine) => ("ein", "er"),
        (1, Case::Nominative, Gender::Feminine) => ("eine", "e"),
        (1, Case::Nominative, Gender::Neuter) => ("ein", "es"),
        (1, Case::Dative, Gender::Feminine) => ("einer", "en"),
        (1, Case::Dative, _) => ("einem", "en"),
        (count, case, _) => (
            if count == 2 { "zwei" } else { "drei" },
            if case == Case::Dative { "en" } else { "e" },
        ),
    };
    let size = match group.size {
        Size::Small => format!(" klein{ending}"),
        Size::Medium => String::new(),
        Size::Large => format!(" groß{ending}"),
    };
    let noun = noun(group, case);
    format!("{number}{size} {}{ending} {noun}", group.colour.german)
}

fn joined(groups: &[&Group], case: Case) -> String {
    let phrases: Vec<String> = groups.iter().map(|group| phrase(group, case)).collect();
    phrases.join(" und ")
}

pub(crate) fn caption(scene: &Scene) -> String {
    let (subject, object) = scene.subject_and_object();
    let verb = match subject[..] {
        [group] if group.count == 1 => "ist",
        _ => "sind",
    };
    let relation = match scene.layout {
        Layout::Beside => "links von",
        Layout::Between => "zwischen",
        Layout::Above | Layout::PairAbove | Layout::AbovePair | Layout::Square => "über",
    };
    let subject = joined(&subject, Case::Nominative);
    format!(
        "{subject} {verb} {relation} {}",
        joined(&object, Case::Dative)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colour::COLOURS;
    use crate::kind::KINDS;

    #[test]
    fn phrases_are_right_for_every_kind_in_both_cases_and_numbers() {
        let mut lines = include_str!("phrases.txt")
            .lines()
            .filter(|line| !line.starts_with('#'));
        for kind in KINDS.iter() {
            let colour = &COLOURS[kind.number % COLOURS.len()];
            let group = |size, count| Group {
                kind,
                colour,
                size,
                count,
            };
            let size = [Size::Small, Size::Large][kind.number % 2];
            let (one, more) = (group(size, 1), group(Size::Medium, 2 + kind.number % 2));
            let phrases = [
                phrase(&one, Case::Nominative),
                phrase(&one, Case::Dative),
                phrase(&more, Case::Nominative),
                phrase(&more, Case::Dative),
            ];
            assert_eq!(lines.next(), Some(&*phrases.join(", ")), "{}", kind.english);
        }
        assert_eq!(lines.next(), None);
    }
}
