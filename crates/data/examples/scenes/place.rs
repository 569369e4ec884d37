//! Where the objects of a scene are drawn: in rows that are clearly apart, in a random place and size.

use std::ops::RangeInclusive;

use crate::random::Random;
use crate::scene::{Group, Layout, Scene, Size};

/// Width and height of a picture, in tenths of a unit of its SVG. All lengths here are tenths.
pub(crate) const EXTENT: i32 = 1280;
/// Kept free at the edges.
const MARGIN: i32 = 20;
/// Between groups, at least.
const GAP: i32 = 40;
/// Groups of one row have a line in common, and so do two that are one above the other. They reach beyond it by this.
const REACH: i32 = 30;
/// Drawings of one scene that are tried before it counts as too large.
const ATTEMPTS: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rectangle {
    pub(crate) left: i32,
    pub(crate) top: i32,
    pub(crate) width: i32,
    pub(crate) height: i32,
}

impl Rectangle {
    pub(crate) fn right(&self) -> i32 {
        self.left + self.width
    }

    pub(crate) fn bottom(&self) -> i32 {
        self.top + self.height
    }
}

/// The copies of a group, and the rectangle around them, whose corner is at 0, 0.
struct Arrangement {
    width: i32,
    height: i32,
    copies: Vec<Rectangle>,
}

/// The rectangle of every object, for each group of the scene. None if they do not fit.
pub(crate) fn place(scene: &Scene, random: &mut Random) -> Option<Vec<Vec<Rectangle>>> {
    (0..ATTEMPTS).find_map(|_| {
        let arranged = scene.groups.iter().map(|group| arrange(group, random));
        let arranged: Vec<Arrangement> = arranged.collect();
        lay_out(scene.layout, arranged, random)
    })
}

/// The longer side of an object.
fn lengths(size: Size) -> RangeInclusive<i32> {
    match size {
        Size::Small => 250..=290,
        Size::Medium => 300..=370,
        Size::Large => 420..=520,
    }
}

fn within(range: RangeInclusive<i32>, random: &mut Random) -> i32 {
    let span = range.end() - range.start() + 1;
    range.start() + random.below(usize::try_from(span).expect("a range that is not empty")) as i32
}

/// One object, two in a row or a column, or three in a row, a column or a triangle.
fn arrange(group: &Group, random: &mut Random) -> Arrangement {
    let shape = &group.kind.shape;
    let scale = f64::from(within(lengths(group.size), random)) / shape.width.max(shape.height);
    let side = |length: f64| (length * scale).ceil() as i32;
    let (width, height) = (side(shape.width), side(shape.height));
    let (right, below) = (
        width + within(20..=50, random),
        height + within(20..=50, random),
    );
    let corners = match group.count {
        1 => vec![(0, 0)],
        2 => random
            .pick(&[[(0, 0), (right, 0)], [(0, 0), (0, below)]])
            .to_vec(),
        _ => random
            .pick(&[
                [(0, 0), (right, 0), (2 * right, 0)],
                [(0, 0), (0, below), (0, 2 * below)],
                [(right / 2, 0), (0, below), (right, below)],
                [(0, 0), (right, 0), (right / 2, below)],
            ])
            .to_vec(),
    };
    let copies = corners.iter().map(|&(left, top)| Rectangle {
        left,
        top,
        width,
        height,
    });
    let copies: Vec<Rectangle> = copies.collect();
    Arrangement {
        width: copies.iter().map(Rectangle::right).max().unwrap_or(0),
        height: copies.iter().map(Rectangle::bottom).max().unwrap_or(0),
        copies,
    }
}

fn lay_out(
    layout: Layout,
    groups: Vec<Arrangement>,
    random: &mut Random,
) -> Option<Vec<Vec<Rectangle>>> {
    let mut rest = &groups[..];
    let mut rows = Vec::new();
    for &count in layout.rows() {
        let (row, others) = rest.split_at(count);
        rows.push(row);
        rest = others;
    }
    let heights = rows.iter().map(|row| row.iter().map(|it| it.height).max());
    let heights: Vec<i32> = heights.map(|height| height.unwrap_or(0)).collect();
    let space = spaces(&heights, random)?;
    // What stands above a group of the row below, or below it, is drawn around one line.
    let line = match layout {
        Layout::Above => within(EXTENT / 4..=EXTENT * 3 / 4, random),
        _ => EXTENT / 2,
    };
    let mut placed = Vec::new();
    let mut y = MARGIN;
    for (index, (row, height)) in rows.iter().zip(heights).enumerate() {
        // Half of the space on each side of a row is left to its groups.
        let (top, bottom) = (
            y + space[index] / 2,
            y + space[index] + height + space[index + 1] / 2,
        );
        let widths: Vec<i32> = row.iter().map(|it| it.width).collect();
        let lefts = match widths[..] {
            [width] => vec![around(line, width, MARGIN, EXTENT - MARGIN, random)],
            _ => {
                let space = spaces(&widths, random)?;
                let mut x = MARGIN;
                let step = |(width, space): (&i32, i32)| {
                    let left = x + space;
                    x = left + width + GAP;
                    left
                };
                widths.iter().zip(space).map(step).collect()
            }
        };
        for (group, left) in row.iter().zip(lefts) {
            let down = around((top + bottom) / 2, group.height, top, bottom, random);
            let moved = group.copies.iter().map(|copy| Rectangle {
                left: copy.left + left,
                top: copy.top + down,
                ..*copy
            });
            placed.push(moved.collect());
        }
        y += space[index] + height + GAP;
    }
    Some(placed)
}

/// Deals what is left of the picture's extent to the spaces before, between and after things of these lengths.
fn spaces(lengths: &[i32], random: &mut Random) -> Option<Vec<i32>> {
    let gaps = GAP * (lengths.len() as i32 - 1);
    let free = EXTENT - 2 * MARGIN - gaps - lengths.iter().sum::<i32>();
    if free < 0 {
        return None;
    }
    let mut cuts: Vec<i32> = lengths.iter().map(|_| within(0..=free, random)).collect();
    cuts.sort_unstable();
    cuts.push(free);
    let mut last = 0;
    let step = |cut: i32| cut - std::mem::replace(&mut last, cut);
    Some(cuts.into_iter().map(step).collect())
}

/// Where something of this length begins, so that it reaches beyond the line on both sides, and stays between the
/// first and the last.
fn around(line: i32, length: i32, first: i32, last: i32, random: &mut Random) -> i32 {
    let earliest = (line + REACH - length).max(first);
    let latest = (line - REACH).min(last - length);
    within(earliest..=latest.max(earliest), random)
}
