//! BPE-dropout with the models of the `tokenizers` crate: before each merge of a word, every possible merge is left
//! out with the same probability, and the best of the others is done. It ends when none is left.
//!
//! Without dropout, this gives what the library gives.

use super::sampling::Dice;
use super::words::value;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use tokenizers::models::bpe::{BPE, MergeMap};

/// The merges of a model, and what it begins with.
pub(super) struct Merges {
    pairs: MergeMap, // two neighbours: the rank of their merge, and their union
    /// Characters inside a word, at its beginning, at its end, and those that are a word.
    characters: [HashMap<char, u32>; 4],
    bytes: Option<Box<[Option<u32>; 256]>>,
    unk: Option<u32>,
    is_fused: bool, // whether unknown neighbours are one token
    prefix: String, // of what continues a word
    suffix: String, // of what ends a word
    whole: HashMap<String, u32>,
}

impl Merges {
    /// None if the model has no merges.
    pub(super) fn new(bpe: &BPE) -> Option<Self> {
        let vocabulary = bpe.get_vocab();
        let prefix = bpe.continuing_subword_prefix.clone().unwrap_or_default();
        let suffix = bpe.end_of_word_suffix.clone().unwrap_or_default();
        let model = value(bpe);
        let mut pairs = MergeMap::default();
        for (rank, pair) in (0..).zip(model["merges"].as_array()?) {
            let (left, right) = (pair[0].as_str()?, pair[1].as_str()?);
            let union = format!("{left}{}", right.get(prefix.len()..)?);
            let [left, right, union] = [left, right, &union].map(|t| vocabulary.get(t).copied());
            pairs.insert((left?, right?), (rank, union?));
        }
        if pairs.is_empty() {
            return None;
        }
        let form = |is_first: bool, is_last: bool| {
            let prefix = if is_first { "" } else { &*prefix };
            let suffix = if is_last { &*suffix } else { "" };
            let one = |(token, id): (&String, &u32)| {
                let mut inner = token.strip_prefix(prefix)?.strip_suffix(suffix)?.chars();
                let character = inner.next()?;
                inner.next().is_none().then_some((character, *id))
            };
            vocabulary.iter().filter_map(one).collect()
        };
        let forms = [(false, false), (true, false), (false, true), (true, true)];
        let byte = |byte| vocabulary.get(&format!("<0x{byte:02X}>")).copied();
        let mut merges = Self {
            pairs,
            characters: forms.map(|(is_first, is_last)| form(is_first, is_last)),
            bytes: bpe
                .byte_fallback
                .then(|| Box::new(std::array::from_fn(byte))),
            unk: bpe
                .unk_token
                .as_ref()
                .and_then(|unk| vocabulary.get(unk).copied()),
            is_fused: bpe.fuse_unk,
            prefix,
            suffix,
            whole: HashMap::new(),
        };
        if bpe.ignore_merges {
            merges.whole = merges.unmerged(vocabulary);
        }
        Some(merges)
    }

    /// The tokens that no merges lead to, such as words that were added. Where merges are ignored, these are found
    /// nevertheless, and always whole.
    fn unmerged(&self, vocabulary: HashMap<String, u32>) -> HashMap<String, u32> {
        let mut dice = Dice::new(0);
        let mut word = self.word(0.0, &mut dice);
        let mut ids = Vec::new();
        let is_unmerged = |(token, id): &(String, u32)| {
            ids.clear();
            word.segment(token, &mut ids);
            ids != [*id]
        };
        vocabulary.into_iter().filter(is_unmerged).collect()
    }

    /// What splits the words of a line.
    pub(super) fn word<'a>(&'a self, dropout: f64, dice: &'a mut Dice) -> Word<'a> {
        Word {
            merges: self,
            dropout,
            dice,
            symbols: Vec::new(),
            agenda: BinaryHeap::new(),
            skipped: Vec::new(),
        }
    }
}

/// A word, or another part of a text that is split by itself.
pub(super) struct Word<'a> {
    merges: &'a Merges,
    dropout: f64,
    dice: &'a mut Dice,
    symbols: Vec<Symbol>,
    agenda: BinaryHeap<Reverse<(u32, usize)>>, // the rank of each possible merge, and its left symbol
    skipped: Vec<Reverse<(u32, usize)>>,       // merges that are left out this time
}

struct Symbol {
    id: u32,
    previous: usize,           // NONE for the first
    next: usize,               // NONE for the last
    merge: Option<(u32, u32)>, // the rank and the result of the merge with the next one
}

const NONE: usize = usize::MAX;

impl Word<'_> {
    /// Splits a text and appends the ids of its tokens.
    pub(super) fn segment(&mut self, text: &str, ids: &mut Vec<u32>) {
        if let Some(id) = self.merges.whole.get(text) {
            ids.push(*id);
            return;
        }
        self.begin(text);
        self.agenda.clear();
        self.skipped.clear();
        for index in 0..self.symbols.len() {
            self.propose(index);
        }
        self.merge();
        let mut index = if self.symbols.is_empty() { NONE } else { 0 };
        while let Some(symbol) = self.symbols.get(index) {
            ids.push(symbol.id);
            index = symbol.next;
        }
    }

    /// The symbols that merging begins with: the characters of a text.
    fn begin(&mut self, text: &str) {
        let merges = self.merges;
        self.symbols.clear();
        let mut unknown = None; // one that others may be fused with
        for (index, character) in text.char_indices() {
            let is_first = index == 0;
            let is_last = index + character.len_utf8() == text.len();
            let form = usize::from(is_first) + 2 * usize::from(is_last);
            if let Some(id) = merges.characters[form].get(&character) {
                unknown.take().into_iter().for_each(|unk| self.push(unk));
                self.push(*id);
                continue;
            }
            if let Some(bytes) = &merges.bytes {
                let mut buffer = [0; 4];
                let prefix = if is_first { "" } else { &*merges.prefix };
                let suffix = if is_last { &*merges.suffix } else { "" };
                let parts = [prefix, character.encode_utf8(&mut buffer), suffix];
                let all = parts.iter().flat_map(|part| part.bytes());
                let found = all.map(|byte| bytes[usize::from(byte)]);
                if let Some(found) = found.collect::<Option<Vec<u32>>>() {
                    found.into_iter().for_each(|id| self.push(id));
                    continue;
                }
            }
            if let (Some(unk), false) = (unknown, merges.is_fused) {
                self.push(unk);
            }
            unknown = merges.unk;
        }
        unknown.into_iter().for_each(|unk| self.push(unk));
    }

    fn push(&mut self, id: u32) {
        let index = self.symbols.len();
        if let Some(last) = self.symbols.last_mut() {
            last.next = index;
        }
        self.symbols.push(Symbol {
            id,
            previous: index.checked_sub(1).unwrap_or(NONE),
            next: NONE,
            merge: None,
        });
    }

    /// Puts the merge of a symbol with the next one on the agenda, if there is one.
    fn propose(&mut self, index: usize) {
        let Symbol { id, next, .. } = self.symbols[index];
        let right = self.symbols.get(next).map(|right| right.id);
        let merge = right.and_then(|right| self.merges.pairs.get(&(id, right)).copied());
        self.symbols[index].merge = merge;
        if let Some((rank, _)) = merge {
            self.agenda.push(Reverse((rank, index)));
        }
    }

    fn merge(&mut self) {
        while let Some(Reverse((rank, index))) = self.agenda.pop() {
            let union = match self.symbols[index].merge {
                Some((current, union)) if current == rank => union,
                _ => continue, // a neighbour has changed
            };
            if self.dropout > 0.0 && self.dice.unit() < self.dropout {
                self.skipped.push(Reverse((rank, index)));
                continue;
            }
            self.agenda.extend(self.skipped.drain(..));
            let right = self.symbols[index].next;
            let next = self.symbols[right].next;
            self.symbols[right].merge = None;
            if let Some(next) = self.symbols.get_mut(next) {
                next.previous = index;
            }
            let symbol = &mut self.symbols[index];
            (symbol.id, symbol.next) = (union, next);
            let previous = symbol.previous;
            self.propose(index);
            if previous != NONE {
                self.propose(previous);
            }
        }
    }
}
