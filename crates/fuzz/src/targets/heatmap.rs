use attend_infer::heatmap::{Axes, Panel, Picture};

use super::fixture::text;

/// The largest number of labels on a side.
const MOST: usize = 12;

/// The text of two sentences as the labels of a heatmap, which must be well-formed XML.
pub(super) fn run(bytes: &[u8]) {
    let text = text(bytes);
    let (keys, queries) = text.split_once('\n').unwrap_or((text, ""));
    let words = |line| str::split(line, ' ').take(MOST).collect::<Vec<&str>>();
    let (keys, queries) = (words(keys), words(queries));
    let weight =
        |row: usize, column: usize| bytes[(row * MOST + column) % bytes.len()] as f32 / 255.0;
    let row = |row| (0..keys.len()).map(|column| weight(row, column)).collect();
    if bytes.is_empty() {
        return;
    }
    let panel = Panel::new(text, (0..queries.len()).map(row).collect());
    let picture = Picture::single(Axes::new(&keys, &queries), panel).described(text);
    let svg = picture.to_svg();
    if let Err(error) = roxmltree::Document::parse(&svg) {
        panic!("{error}: {svg}");
    }
}
