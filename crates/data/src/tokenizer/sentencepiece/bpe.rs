//! Byte-pair encoding: beginning with characters, the neighbours whose union has the highest score are merged.
//! Unused pieces take part, but are taken apart again at the end; an unused character is unknown.

use super::proto::{Kind, Piece};
use super::trie::Trie;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

pub(super) struct Bpe {
    ids: HashMap<String, u32>,
    pieces: Vec<(f32, Kind)>,
    longest: usize, // bytes of a piece
}

/// A part of the text. The first ones are characters and user-defined symbols.
struct Symbol {
    begin: usize,
    end: usize, // its begin if it has become a part of the one before it
    previous: Option<usize>,
    next: Option<usize>,
    is_frozen: bool,
}

/// Two neighbours whose union is a piece.
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    length: usize,
}

impl Bpe {
    /// Without merges, each character is a piece.
    pub(super) fn new(pieces: &[Piece], is_merging: bool) -> Self {
        let numbered = (0..).zip(pieces).filter(|(_, piece)| piece.kind.is_text());
        let lengths = pieces.iter().map(|piece| piece.text.len());
        Self {
            ids: numbered
                .map(|(id, piece)| (piece.text.clone(), id))
                .collect(),
            pieces: pieces
                .iter()
                .map(|piece| (piece.score, piece.kind))
                .collect(),
            longest: if is_merging {
                lengths.max().unwrap_or(0)
            } else {
                0
            },
        }
    }

    /// The ends of the pieces of a text and their ids; none for an unknown character. A merge is left out for good
    /// if `skip` says so when its turn comes: this is the BPE-dropout of SentencePiece.
    pub(super) fn segment(
        &self,
        text: &str,
        user_defined: &Trie,
        skip: impl FnMut() -> bool,
    ) -> Vec<(usize, Option<u32>)> {
        let mut merging = Merging {
            bpe: self,
            text,
            symbols: symbols(text, user_defined),
            agenda: BinaryHeap::new(),
            unused: HashMap::new(),
        };
        for right in 1..merging.symbols.len() {
            merging.propose(right - 1, right);
        }
        merging.run(skip);
        merging.segments()
    }

    fn id(&self, text: &str) -> Option<u32> {
        self.ids.get(text).copied()
    }

    fn is_unused(&self, id: Option<u32>) -> bool {
        id.is_some_and(|id| self.pieces[id as usize].1 == Kind::Unused)
    }
}

fn symbols(text: &str, user_defined: &Trie) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    let mut begin = 0;
    while let Some(character) = text[begin..].chars().next() {
        let found = user_defined.longest(&text.as_bytes()[begin..]);
        let end = begin + found.map_or(character.len_utf8(), |(length, _)| length);
        symbols.push(Symbol {
            begin,
            end,
            previous: symbols.len().checked_sub(1),
            next: (end < text.len()).then_some(symbols.len() + 1),
            is_frozen: found.is_some(),
        });
        begin = end;
    }
    symbols
}

struct Merging<'a> {
    bpe: &'a Bpe,
    text: &'a str,
    symbols: Vec<Symbol>,
    agenda: BinaryHeap<Pair>,
    unused: HashMap<&'a str, usize>, // where the parts of an unused piece meet
}

impl Merging<'_> {
    /// Puts two neighbours on the agenda if their union is a piece.
    fn propose(&mut self, left: usize, right: usize) {
        let (a, b) = (&self.symbols[left], &self.symbols[right]);
        let length = b.end - a.begin;
        if a.is_frozen || b.is_frozen || length > self.bpe.longest {
            return;
        }
        let union = &self.text[a.begin..b.end];
        let Some(id) = self.bpe.id(union) else {
            return;
        };
        if self.bpe.is_unused(Some(id)) {
            self.unused.insert(union, a.end - a.begin);
        }
        let score = self.bpe.pieces[id as usize].0;
        self.agenda.push(Pair {
            score,
            left,
            right,
            length,
        });
    }

    fn run(&mut self, mut skip: impl FnMut() -> bool) {
        while let Some(Pair {
            left,
            right,
            length,
            ..
        }) = self.agenda.pop()
        {
            let (a, b) = (&self.symbols[left], &self.symbols[right]);
            let sizes = (a.end - a.begin, b.end - b.begin);
            if sizes.0 == 0 || sizes.1 == 0 || sizes.0 + sizes.1 != length {
                continue; // one of them was merged with another neighbour
            }
            if skip() {
                continue;
            }
            let (end, next) = (b.end, b.next);
            self.symbols[right].end = self.symbols[right].begin;
            self.symbols[left].end = end;
            self.symbols[left].next = next;
            if let Some(previous) = self.symbols[left].previous {
                self.propose(previous, left);
            }
            if let Some(next) = next {
                self.symbols[next].previous = Some(left);
                self.propose(left, next);
            }
        }
    }

    fn segments(&self) -> Vec<(usize, Option<u32>)> {
        let mut segments = Vec::new();
        let mut next = (!self.symbols.is_empty()).then_some(0);
        while let Some(symbol) = next.map(|index| &self.symbols[index]) {
            next = symbol.next;
            let mut open = vec![(symbol.begin, symbol.end)];
            while let Some((begin, end)) = open.pop() {
                let piece = &self.text[begin..end];
                let id = self.bpe.id(piece);
                match self.unused.get(piece) {
                    Some(length) if self.bpe.is_unused(id) => {
                        open.extend([(begin + length, end), (begin, begin + length)]);
                    }
                    _ => segments.push((end, id.filter(|_| !self.bpe.is_unused(id)))),
                }
            }
        }
        segments
    }
}

impl Ord for Pair {
    /// The highest score first, then the leftmost.
    fn cmp(&self, other: &Self) -> Ordering {
        let score = self
            .score
            .partial_cmp(&other.score)
            .unwrap_or(Ordering::Equal);
        score.then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}
