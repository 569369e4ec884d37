//! The segmentation with the highest sum of scores.
//!
//! Sums are in `f32`, as in SentencePiece, so that also the segmentations whose sums are nearly equal are the
//! same. A user-defined symbol has the score that version 0.2.3 of that library gives it; earlier versions
//! choose otherwise where two such symbols overlap.

use super::proto::{Kind, Piece};
use super::trie::Trie;
use crate::tokenizer::lattice::Lattice;
use crate::tokenizer::sampling::Dice;

/// How much worse than the worst piece an unknown character is.
const UNKNOWN_PENALTY: f32 = 10.0;

pub(super) struct Unigram {
    pieces: Trie,
    scores: Vec<Score>,
    unknown: f32, // the score of an unknown character
}

#[derive(Clone, Copy)]
enum Score {
    Normal(f32),
    UserDefined,
}

/// The last piece of the best segmentation that ends at a place.
#[derive(Clone, Copy)]
struct Best {
    score: f32,
    begin: usize,
    piece: Option<u32>,
}

impl Unigram {
    pub(super) fn new(pieces: &[Piece]) -> Self {
        let text = |piece: &&(u32, &Piece)| piece.1.kind.is_text() && piece.1.kind != Kind::Unused;
        let numbered: Vec<_> = (0..).zip(pieces).collect();
        let trie = Trie::new(
            numbered
                .iter()
                .filter(text)
                .map(|(id, p)| (p.text.as_bytes(), *id)),
        );
        let normal = || pieces.iter().filter(|piece| piece.kind == Kind::Normal);
        let lowest = normal().fold(f32::MAX, |lowest, piece| lowest.min(piece.score));
        let scores = pieces.iter().map(|piece| match piece.kind {
            Kind::UserDefined => Score::UserDefined,
            _ => Score::Normal(piece.score),
        });
        Self {
            pieces: trie,
            scores: scores.collect(),
            unknown: lowest - UNKNOWN_PENALTY,
        }
    }

    /// The ends of the pieces of a text and their ids; none for an unknown character.
    pub(super) fn segment(&self, text: &str) -> Vec<(usize, Option<u32>)> {
        let mut best: Vec<Option<Best>> = vec![None; text.len() + 1];
        let offer = |best: &mut [Option<Best>], end: usize, score: f32, begin, piece| {
            let place = &mut best[end];
            if place.is_none_or(|best| score > best.score) {
                *place = Some(Best {
                    score,
                    begin,
                    piece,
                });
            }
        };
        for (begin, character) in text.char_indices() {
            let here = best[begin].map_or(0.0, |best| best.score);
            self.pieces_at(text, begin, character, |end, piece, score| {
                offer(&mut best, end, score + here, begin, piece);
            });
        }
        let mut segments = Vec::new();
        let mut end = text.len();
        while let Some(last) = best[end] {
            segments.push((end, last.piece));
            end = last.begin;
        }
        segments.reverse();
        segments
    }

    /// The same, drawn from all segmentations: the probability of each is proportional to its probability to the
    /// power of `alpha`. This is `SampleEncode` of SentencePiece.
    pub(super) fn draw(
        &self,
        text: &str,
        alpha: f64,
        dice: &mut Dice,
    ) -> Vec<(usize, Option<u32>)> {
        let mut lattice = Lattice::default();
        lattice.begin(text.len());
        for (begin, character) in text.char_indices() {
            let total = lattice.total(begin);
            self.pieces_at(text, begin, character, |end, piece, score| {
                lattice.add((begin, end), total, piece, f64::from(score) * alpha);
            });
        }
        let mut segments = Vec::new();
        lattice.draw(dice, |end, piece| segments.push((end, piece)));
        segments.reverse();
        segments
    }

    /// Calls `offer` with the ends, the ids and the scores of all pieces that begin with this character. If it is no
    /// piece, it is offered as unknown.
    fn pieces_at(
        &self,
        text: &str,
        begin: usize,
        character: char,
        mut offer: impl FnMut(usize, Option<u32>, f32),
    ) {
        let next = begin + character.len_utf8();
        let mut is_known = false;
        for (length, id) in self.pieces.prefixes(&text.as_bytes()[begin..]) {
            let score = match self.scores[id as usize] {
                Score::Normal(score) => score,
                // More than that of any other piece, and the more the longer it is.
                Score::UserDefined => (length as f64 * 0.1 - 0.1) as f32,
            };
            offer(begin + length, Some(id), score);
            is_known |= begin + length == next;
        }
        if !is_known {
            offer(next, None, self.unknown);
        }
    }
}
