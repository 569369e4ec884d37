//! Pointing: whether the words that name something attend to where it is in the picture.
//!
//! At the steps that predict the words of a mention, the attention to each region of the picture is spread evenly over
//! the region. The share of it within the boxes of what is named is compared with the share of the picture that the
//! boxes cover, which is what attention that is the same everywhere has. The last word, the noun, is also measured
//! alone: a recurrent decoder often reads the kind of an object at the word before, together with its colour.

use std::ops::Range;

use attend_model::Place;
use serde::{Deserialize, Serialize};

use crate::links::words_of_tokens;
use crate::{Aligner, Error, Result};

/// Left, top, right and bottom, as shares of the picture's width and height.
pub type Area = [f64; 4];

/// Words of a caption, and where in the picture what they name is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Mention {
    /// As it stands in the caption, such as "a small boat"; the last word is its noun.
    pub phrase: String,
    pub boxes: Vec<Area>,
}

/// The step of one word, measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pointed {
    /// The share of the attention within the boxes.
    pub within: f64,
    /// The share of the picture that the boxes cover.
    pub area: f64,
    /// Whether the middle of the region with the most attention is in a box.
    pub hits: bool,
}

/// The words of a mention, measured: at least one, the noun last.
#[derive(Clone, Debug, PartialEq)]
pub struct PointedWords(Vec<Pointed>);

impl PointedWords {
    pub fn words(&self) -> &[Pointed] {
        &self.0
    }

    pub fn noun(&self) -> Pointed {
        self.0[self.0.len() - 1]
    }
}

/// The scores of many mentions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PointingScore {
    pub mentions: usize,
    /// Mentions that their captions do not have.
    pub missing: usize,
    /// Of all words of the mentions; those of one mention weigh as much as those of another.
    pub words: PointingMeans,
    /// Of their nouns alone.
    pub nouns: PointingMeans,
}

/// Means over mentions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PointingMeans {
    pub within: f64,
    pub area: f64,
    /// `within` divided by `area`.
    pub ratio: f64,
    pub hits: f64,
}

impl Pointed {
    /// Of attention to regions in so many rows and columns, row by row. It need not sum to 1.
    ///
    /// # Panics
    /// If there is not a weight for each region.
    pub fn new(weights: &[f32], (rows, columns): (usize, usize), boxes: &[Area]) -> Self {
        assert_eq!(weights.len(), rows * columns, "a weight for each region");
        let region = |i: usize| {
            let (row, column) = ((i / columns) as f64, (i % columns) as f64);
            let (w, h) = (1.0 / columns as f64, 1.0 / rows as f64);
            [column * w, row * h, (column + 1.0) * w, (row + 1.0) * h]
        };
        let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
        let size = 1.0 / weights.len() as f64;
        let within = weights
            .iter()
            .enumerate()
            .map(|(i, &weight)| f64::from(weight) * covered(region(i), boxes) / size);
        let within: f64 = within.sum();
        let most = (0..weights.len()).max_by(|&a, &b| weights[a].total_cmp(&weights[b]));
        let hits = most.is_some_and(|i| {
            let [left, top, right, bottom] = region(i);
            let (x, y) = ((left + right) / 2.0, (top + bottom) / 2.0);
            let has =
                |area: &Area| (area[0]..=area[2]).contains(&x) && (area[1]..=area[3]).contains(&y);
            boxes.iter().any(has)
        });
        Self {
            within: if sum > 0.0 { within / sum } else { 0.0 },
            area: covered([0.0, 0.0, 1.0, 1.0], boxes),
            hits,
        }
    }
}

impl PointingScore {
    pub fn of(all: &[PointedWords], missing: usize) -> Self {
        Self {
            mentions: all.len(),
            missing,
            words: PointingMeans::of(all.iter().map(|it| it.words().to_vec())),
            nouns: PointingMeans::of(all.iter().map(|it| vec![it.noun()])),
        }
    }
}

impl PointingMeans {
    /// Of the words of each mention.
    fn of(mentions: impl Iterator<Item = Vec<Pointed>> + Clone) -> Self {
        let count = mentions.clone().count().max(1) as f64;
        let mean = |of: &dyn Fn(&Pointed) -> f64| {
            let each = |words: Vec<Pointed>| words.iter().map(of).sum::<f64>() / words.len() as f64;
            mentions.clone().map(each).sum::<f64>() / count
        };
        let (within, area) = (mean(&|it| it.within), mean(&|it| it.area));
        Self {
            within,
            area,
            ratio: if area > 0.0 { within / area } else { 0.0 },
            hits: mean(&|it| f64::from(u8::from(it.hits))),
        }
    }
}

impl Aligner<'_> {
    /// Measures the mentions of a caption, in order, with teacher forcing and the mean of all heads of the
    /// cross-attention. `None` for a mention that the caption does not have. The n-th mention of a phrase is where
    /// the caption has it for the n-th time.
    pub fn point(
        &self,
        picture: &str,
        caption: &str,
        mentions: &[Mention],
    ) -> Result<Vec<Option<PointedWords>>> {
        let alignment = self.align(picture, Some(caption))?;
        let Some(regions) = alignment.regions else {
            return Err(Error::Usage {
                message: format!("{picture}: the model does not read pictures"),
                hint: "give a model of captions".into(),
            });
        };
        let cross = alignment.maps.iter();
        let cross: Vec<_> = cross.filter(|map| map.place == Place::Cross).collect();
        if cross.is_empty() {
            return Err(Error::NoAttention);
        }
        let weights = alignment.mean(&cross)?;
        let tokens = &alignment.target.tokens;
        let words = words_of_tokens(self.target_tokenizer(), tokens, caption)?;
        let mut seen: Vec<&str> = Vec::new();
        let pointed = mentions.iter().map(|mention| {
            let phrase = mention.phrase.as_str();
            let before = seen.iter().filter(|other| **other == phrase).count();
            seen.push(phrase);
            let named = place(caption, phrase, before)?;
            let word = |number: usize| {
                // Of a word of several tokens, the last.
                let token = words.iter().rposition(|word| *word == Some(number))?;
                Some(Pointed::new(weights.get(token)?, regions, &mention.boxes))
            };
            Some(PointedWords(named.map(word).collect::<Option<_>>()?))
        });
        Ok(pointed.collect())
    }
}

/// Which words of a caption are a phrase, where the caption has it after `before` other times. At least one.
fn place(caption: &str, phrase: &str, before: usize) -> Option<Range<usize>> {
    let bare = |word: &'_ str| -> String {
        let is_punctuation = |c: char| !c.is_alphanumeric();
        word.trim_matches(is_punctuation).into()
    };
    let words: Vec<String> = caption.split_whitespace().map(bare).collect();
    let phrase: Vec<String> = phrase.split_whitespace().map(bare).collect();
    if phrase.is_empty() {
        return None;
    }
    let places = words.windows(phrase.len()).enumerate();
    let mut places = places.filter(|(_, window)| *window == phrase);
    let (first, _) = places.nth(before)?;
    Some(first..first + phrase.len())
}

/// How much of an area the boxes cover together.
fn covered(area: Area, boxes: &[Area]) -> f64 {
    let clip = |it: &Area| {
        let [left, top, right, bottom] = area;
        let clipped = [
            it[0].max(left),
            it[1].max(top),
            it[2].min(right),
            it[3].min(bottom),
        ];
        (clipped[0] < clipped[2] && clipped[1] < clipped[3]).then_some(clipped)
    };
    let boxes: Vec<Area> = boxes.iter().filter_map(clip).collect();
    // Between two edges next to each other, every box is there or not.
    let edges = |low: usize, high: usize| {
        let mut edges: Vec<f64> = boxes.iter().flat_map(|it| [it[low], it[high]]).collect();
        edges.sort_by(f64::total_cmp);
        edges
    };
    let (across, down) = (edges(0, 2), edges(1, 3));
    let mut sum = 0.0;
    for x in across.windows(2) {
        for y in down.windows(2) {
            let has = |it: &Area| it[0] <= x[0] && x[1] <= it[2] && it[1] <= y[0] && y[1] <= it[3];
            if boxes.iter().any(has) {
                sum += (x[1] - x[0]) * (y[1] - y[0]);
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attention_within_the_boxes_is_the_part_of_each_region_that_they_cover() {
        // Two rows and two columns; the box is the right half of the picture's left half, from top to bottom.
        let boxes = [[0.25, 0.0, 0.5, 1.0]];
        let pointed = Pointed::new(&[0.6, 0.1, 0.2, 0.1], (2, 2), &boxes);
        assert!((pointed.within - 0.4).abs() < 1e-6, "{pointed:?}"); // half of 0.6 and of 0.2
        assert!((pointed.area - 0.25).abs() < 1e-9, "{pointed:?}");
        assert!(pointed.hits); // the middle of the first region is on the edge of the box
        let elsewhere = Pointed::new(&[0.1, 0.6, 0.1, 0.2], (2, 2), &boxes);
        assert!((elsewhere.within - 0.1).abs() < 1e-6 && !elsewhere.hits);
    }

    #[test]
    fn equal_attention_has_the_share_that_the_boxes_cover() {
        let boxes = [[0.1, 0.2, 0.55, 0.7], [0.3, 0.4, 0.9, 0.95]];
        for regions in [(1, 1), (3, 5), (8, 8)] {
            let weights = vec![1.0 / (regions.0 * regions.1) as f32; regions.0 * regions.1];
            let pointed = Pointed::new(&weights, regions, &boxes);
            assert!((pointed.within - pointed.area).abs() < 1e-6, "{pointed:?}");
        }
    }

    #[test]
    fn what_two_boxes_share_counts_once_and_what_is_outside_not_at_all() {
        let whole = [0.0, 0.0, 1.0, 1.0];
        let two = [[0.0, 0.0, 0.5, 0.5], [0.25, 0.25, 0.75, 0.75]];
        assert!((covered(whole, &two) - (0.25 + 0.25 - 0.0625)).abs() < 1e-9);
        assert!((covered(whole, &[[-1.0, -1.0, 0.5, 2.0]]) - 0.5).abs() < 1e-9);
        assert_eq!(
            covered(whole, &[[0.5, 0.5, 0.5, 0.9], [0.9, 0.9, 0.1, 0.1]]),
            0.0
        );
    }

    #[test]
    fn a_mention_is_found_where_the_caption_has_it_for_the_same_time() {
        let caption = "a red boat, left of two traffic lights and a boat.";
        for (phrase, before, expected) in [
            ("boat", 0, Some(2..3)),
            ("boat", 1, Some(10..11)),
            ("boat", 2, None),
            ("two traffic lights", 0, Some(5..8)),
            ("light", 0, None),
            ("", 0, None),
        ] {
            assert_eq!(place(caption, phrase, before), expected, "{phrase}");
        }
    }

    #[test]
    fn a_score_is_the_mean_over_mentions() {
        let one = |within, area, hits| Pointed { within, area, hits };
        let first = PointedWords(vec![one(0.5, 0.1, false), one(0.9, 0.1, true)]);
        let second = PointedWords(vec![one(0.3, 0.2, false)]);
        let score = PointingScore::of(&[first, second], 1);
        assert_eq!((score.mentions, score.missing), (2, 1));
        assert!((score.nouns.ratio - 4.0).abs() < 1e-9, "{score:?}");
        assert!((score.words.within - 0.5).abs() < 1e-9, "{score:?}");
        assert_eq!((score.nouns.hits, score.words.hits), (0.5, 0.25));
        assert_eq!(PointingScore::of(&[], 0).words.ratio, 0.0);
    }
}
