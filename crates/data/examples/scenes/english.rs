//! English captions.

use crate::scene::{Group, Layout, Scene, Size};

/// The form of the noun that a caption has.
fn noun(group: &Group) -> &'static str {
    match group.count {
        1 => group.kind.english,
        _ => group.kind.english_plural,
    }
}

/// A group as a caption names it.
pub(crate) fn phrase(group: &Group) -> String {
    let number = match group.count {
        1 => "a",
        2 => "two",
        _ => "three",
    };
    let size = match group.size {
        Size::Small => " small",
        Size::Medium => "",
        Size::Large => " large",
    };
    format!("{number}{size} {} {}", group.colour.english, noun(group))
}

fn joined(groups: &[&Group]) -> String {
    let phrases: Vec<String> = groups.iter().map(|group| phrase(group)).collect();
    phrases.join(" and ")
}

pub(crate) fn caption(scene: &Scene) -> String {
    let (subject, object) = scene.subject_and_object();
    let verb = match subject[..] {
        [group] if group.count == 1 => "is",
        _ => "are",
    };
    let relation = match scene.layout {
        Layout::Beside => "left of",
        Layout::Between => "between",
        Layout::Above | Layout::PairAbove | Layout::AbovePair | Layout::Square => "above",
    };
    format!("{} {verb} {relation} {}", joined(&subject), joined(&object))
}
