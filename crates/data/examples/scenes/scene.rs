//! What is in a picture: groups of objects, and how they are laid out.

use crate::colour::Colour;
use crate::kind::Kind;

/// The objects of a picture, at most.
pub(crate) const OBJECTS: usize = 4;

/// Rows of groups, from above to below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    Beside,
    Above,
    Between,
    PairAbove,
    AbovePair,
    Square,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Size {
    Small,
    /// Of objects that are not alone: their size is not said.
    Medium,
    Large,
}

/// Objects that are named together: one, or several of the same kind and colour.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) kind: &'static Kind,
    pub(crate) colour: &'static Colour,
    pub(crate) size: Size,
    pub(crate) count: usize,
}

/// Groups row by row, each row from left to right. No two groups are of the same kind.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) layout: Layout,
    pub(crate) groups: Vec<Group>,
}

impl Layout {
    /// How many groups each row has.
    pub(crate) fn rows(self) -> &'static [usize] {
        match self {
            Self::Beside => &[2],
            Self::Above => &[1, 1],
            Self::Between => &[3],
            Self::PairAbove => &[2, 1],
            Self::AbovePair => &[1, 2],
            Self::Square => &[2, 2],
        }
    }

    pub(crate) fn groups(self) -> usize {
        self.rows().iter().sum()
    }
}

impl Scene {
    /// The groups before and after the verb, in the order in which captions name them.
    pub(crate) fn subject_and_object(&self) -> (Vec<&Group>, Vec<&Group>) {
        let groups: Vec<&Group> = self.groups.iter().collect();
        match (self.layout, &groups[..]) {
            (Layout::Between, &[left, middle, right]) => (vec![middle], vec![left, right]),
            _ => {
                let rows = self.layout.rows();
                let first = if let [row] = rows { row / 2 } else { rows[0] };
                let (subject, object) = groups.split_at(first);
                (subject.to_vec(), object.to_vec())
            }
        }
    }
}
