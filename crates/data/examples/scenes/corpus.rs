//! Fills the three splits, and keeps them apart.

use std::collections::HashSet;

use crate::colour::COLOURS;
use crate::draw::draw;
use crate::kind::KINDS;
use crate::place::{Rectangle, place};
use crate::random::Random;
use crate::scene::{Group, Layout, OBJECTS, Scene, Size};

const SEED: u64 = 20_150_206;
const TRAIN: usize = 10_000;
const VALID: usize = 300;
const TEST: usize = 500;
/// One in so many pairs of coloured kinds is held out: training never shows the two together.
const HELD_OUT: usize = 4;
/// How often each layout is tried.
const LAYOUTS: [(usize, Layout); 6] = [
    (27, Layout::Beside),
    (22, Layout::Above),
    (17, Layout::Between),
    (12, Layout::PairAbove),
    (12, Layout::AbovePair),
    (10, Layout::Square),
];

/// Which pairs of coloured kinds a split has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pairs {
    Known,
    HeldOut,
}

pub(crate) struct Picture {
    pub(crate) scene: Scene,
    /// Of every object of every group.
    pub(crate) places: Vec<Vec<Rectangle>>,
    pub(crate) svg: String,
}

/// A kind and a colour, as one number.
type Coloured = usize;
/// What a scene has, in no order.
type Content = Vec<(Coloured, Size, usize)>;

pub(crate) fn coloured(group: &Group) -> Coloured {
    group.kind.number * COLOURS.len() + group.colour.number
}

fn content(scene: &Scene) -> Content {
    let group = |group: &Group| (coloured(group), group.size, group.count);
    let mut content: Content = scene.groups.iter().map(group).collect();
    content.sort_unstable();
    content
}

/// Whether training never shows these two in one picture. The same for both orders, and for every size and number.
pub(crate) fn pairs(one: Coloured, other: Coloured) -> Pairs {
    let (first, second) = (one.min(other) as u64, one.max(other) as u64);
    match Random::new(SEED ^ (first << 32 | second)).below(HELD_OUT) {
        0 => Pairs::HeldOut,
        _ => Pairs::Known,
    }
}

/// The name and the pictures of each split. No two pictures have the same content.
pub(crate) fn generate() -> [(&'static str, Vec<Picture>); 3] {
    let mut random = Random::new(SEED);
    let mut seen = HashSet::new();
    [
        ("train", Pairs::Known, TRAIN),
        ("valid", Pairs::HeldOut, VALID),
        ("test", Pairs::HeldOut, TEST),
    ]
    .map(|(name, pairs, count)| {
        let mut pictures = Vec::with_capacity(count);
        while pictures.len() < count {
            pictures.extend(picture(pairs, &mut seen, &mut random));
        }
        (name, pictures)
    })
}

/// None if the chosen layout cannot be filled, or its content is seen already.
fn picture(pairs: Pairs, seen: &mut HashSet<Content>, random: &mut Random) -> Option<Picture> {
    let layout = random.weighted(&LAYOUTS);
    let groups = groups(layout.groups(), pairs, random)?;
    let scene = Scene { layout, groups };
    let places = place(&scene, random)?;
    if !seen.insert(content(&scene)) {
        return None;
    }
    let svg = draw(&scene, &places, random);
    Some(Picture { scene, places, svg })
}

/// Groups of different kinds, every two of which are such a pair.
fn groups(count: usize, wanted: Pairs, random: &mut Random) -> Option<Vec<Group>> {
    let all: Vec<Coloured> = (0..KINDS.len() * COLOURS.len()).collect();
    let mut chosen: Vec<Coloured> = Vec::new();
    for _ in 0..count {
        let fits = |&it: &Coloured| {
            chosen.iter().all(|&other| {
                it / COLOURS.len() != other / COLOURS.len() && pairs(it, other) == wanted
            })
        };
        let fitting: Vec<Coloured> = all.iter().copied().filter(fits).collect();
        if fitting.is_empty() {
            return None;
        }
        chosen.push(random.pick(&fitting));
    }
    let mut left = OBJECTS - count;
    let group = |it: Coloured| {
        // About half of the groups that may have copies have them.
        let copies = if random.chance(50) {
            random.below(left + 1)
        } else {
            0
        };
        left -= copies;
        Group {
            kind: &KINDS[it / COLOURS.len()],
            colour: &COLOURS[it % COLOURS.len()],
            size: match copies {
                0 => random.pick(&[Size::Small, Size::Large]),
                _ => Size::Medium,
            },
            count: 1 + copies,
        }
    };
    let mut groups: Vec<Group> = chosen.into_iter().map(group).collect();
    // The first group would have the most copies.
    if random.chance(50) {
        groups.reverse();
    }
    Some(groups)
}
