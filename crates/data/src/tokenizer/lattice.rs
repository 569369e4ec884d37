//! Drawing from all segmentations of a text: sums over the segmentations that end at each place, from left to right,
//! and then a draw of each piece, from right to left.

use super::sampling::Dice;
use super::sentencepiece::Trie;
use super::words::value;
use tokenizers::Model;
use tokenizers::models::ModelWrapper;
use tokenizers::models::unigram::Unigram;

/// How much worse than the worst piece an unknown character is, as in the library.
const UNKNOWN_PENALTY: f64 = 10.0;

/// The segmentations of a text.
#[derive(Default)]
pub(super) struct Lattice {
    places: Vec<Place>,
    edges: Vec<Edge>,
}

/// A place in the text. `most + ln(sum)` is the logarithm of the sum over all paths to it.
#[derive(Clone, Copy)]
struct Place {
    most: f64,
    sum: f64,
    last: Option<usize>, // of the edges that end here
}

/// A piece.
struct Edge {
    begin: usize,
    piece: Option<u32>,
    weight: f64,             // the logarithm of the sum over all paths that end with it
    previous: Option<usize>, // edge that ends at the same place
}

impl Lattice {
    /// Begins a text of this many bytes.
    pub(super) fn begin(&mut self, length: usize) {
        let empty = Place {
            most: f64::NEG_INFINITY,
            sum: 0.0,
            last: None,
        };
        self.edges.clear();
        self.places.clear();
        self.places.resize(length + 1, empty);
        self.places[0] = Place {
            most: 0.0,
            sum: 1.0,
            last: None,
        };
    }

    /// The logarithm of the sum over all paths to a place. All pieces that end there must have been added.
    pub(super) fn total(&self, place: usize) -> f64 {
        let Place { most, sum, .. } = self.places[place];
        most + sum.ln()
    }

    /// Adds a piece with its score. `total` is that of its beginning.
    pub(super) fn add(
        &mut self,
        (begin, end): (usize, usize),
        total: f64,
        piece: Option<u32>,
        score: f64,
    ) {
        let weight = total + score;
        let place = &mut self.places[end];
        if weight > place.most {
            place.sum = place.sum * (place.most - weight).exp() + 1.0;
            place.most = weight;
        } else {
            place.sum += (weight - place.most).exp();
        }
        let previous = place.last.replace(self.edges.len());
        self.edges.push(Edge {
            begin,
            piece,
            weight,
            previous,
        });
    }

    /// Draws a segmentation: the ends of its pieces, and the pieces, the last one first.
    pub(super) fn draw(&self, dice: &mut Dice, mut emit: impl FnMut(usize, Option<u32>)) {
        let mut end = self.places.len() - 1;
        while let Some(last) = self.places[end].last {
            let total = self.total(end);
            let mut left = dice.unit();
            let mut edge = &self.edges[last];
            // Rounding may leave a little after all of them: then it is the one that was added first.
            while let Some(previous) = edge.previous {
                left -= (edge.weight - total).exp();
                if left < 0.0 {
                    break;
                }
                edge = &self.edges[previous];
            }
            emit(end, edge.piece);
            end = edge.begin;
        }
    }
}

/// The pieces of a unigram model of the library.
pub(super) struct Pieces {
    trie: Trie,
    scores: Vec<f64>,
    unknown: f64, // the score of an unknown character
    unk: u32,
    has_bytes: bool,
}

impl Pieces {
    pub(super) fn new(unigram: &Unigram) -> Self {
        let pieces = || unigram.iter().zip(0..).filter(|((t, _), _)| !t.is_empty());
        Self {
            trie: Trie::new(pieces().map(|((text, _), id)| (text.as_bytes(), id))),
            scores: unigram.iter().map(|(_, score)| *score).collect(),
            unknown: unigram.min_score - UNKNOWN_PENALTY,
            unk: value(unigram)["unk_id"].as_u64().unwrap_or(0) as u32,
            has_bytes: unigram.byte_fallback(),
        }
    }

    /// What draws the pieces of the words of a line.
    pub(super) fn word<'a>(
        &'a self,
        model: &'a ModelWrapper,
        alpha: f64,
        dice: &'a mut Dice,
    ) -> Word<'a> {
        Word {
            pieces: self,
            model,
            alpha,
            dice,
            lattice: Lattice::default(),
            found: Vec::new(),
        }
    }
}

/// A word, or another part of a text that is split by itself.
pub(super) struct Word<'a> {
    pieces: &'a Pieces,
    model: &'a ModelWrapper,
    alpha: f64,
    dice: &'a mut Dice,
    lattice: Lattice,
    found: Vec<(usize, Option<u32>)>,
}

impl Word<'_> {
    /// Draws the pieces of a text and appends their ids.
    pub(super) fn segment(&mut self, text: &str, ids: &mut Vec<u32>) {
        let pieces = self.pieces;
        self.lattice.begin(text.len());
        for (begin, character) in text.char_indices() {
            let total = self.lattice.total(begin);
            let next = begin + character.len_utf8();
            let mut is_known = false;
            for (length, id) in pieces.trie.prefixes(&text.as_bytes()[begin..]) {
                let score = pieces.scores[id as usize] * self.alpha;
                let end = begin + length;
                self.lattice.add((begin, end), total, Some(id), score);
                is_known |= end == next;
            }
            if !is_known {
                let score = pieces.unknown * self.alpha;
                self.lattice.add((begin, next), total, None, score);
            }
        }
        let found = &mut self.found;
        found.clear();
        self.lattice
            .draw(self.dice, |end, id| found.push((end, id)));
        let (mut begin, mut unknown) = (0, 0); // of the piece and of the unknown text before it
        for (end, id) in self.found.drain(..).rev() {
            if let Some(id) = id.filter(|id| *id != pieces.unk) {
                pieces.push_unknown(self.model, &text[unknown..begin], ids);
                ids.push(id);
                unknown = end;
            }
            begin = end;
        }
        pieces.push_unknown(self.model, &text[unknown..], ids);
    }
}

impl Pieces {
    /// Appends the ids of unknown characters, as the library does: they are one token, or bytes.
    fn push_unknown(&self, model: &ModelWrapper, text: &str, ids: &mut Vec<u32>) {
        if text.is_empty() {
            return;
        }
        let byte = |byte: u8| model.token_to_id(&format!("<0x{byte:02X}>"));
        let bytes = || text.bytes().map(byte).collect::<Option<Vec<u32>>>();
        match model.token_to_id(text) {
            Some(id) => ids.push(id),
            None => match self.has_bytes.then(bytes).flatten() {
                Some(bytes) => ids.extend(bytes),
                None => ids.push(self.unk),
            },
        }
    }
}
