//! Links by attention: a word of the translation comes from the word of the source that it attends to most.
//!
//! s words of the source, t words of the target.

use attend_batch::{Packed, SourceShape};
use attend_data::{Tokenizer, Tokenizers};
use attend_model::{AttentionMap, Kernels, Place, Train};
use attend_ops::on_pool;
use candle_core::DType;
use rayon::prelude::*;

use super::words::{count_words, words_of_tokens};
use super::{AlignWords, Heads, Link, Pair};
use crate::{Error, Result};

/// Of a longer side only the beginning is aligned: weights grow with the square of the length.
const MAX_TOKENS: usize = 512;

/// Links words by a model's attention to the source, with teacher forcing.
pub struct WordAligner<'a> {
    model: &'a dyn Train,
    tokenizers: &'a Tokenizers,
    kernels: Kernels,
    heads: Heads,
    /// Layer and head of every attention to the source.
    pub(super) places: Vec<(usize, usize)>,
}

/// How one head attends to the words of the source, for every word of the target.
pub(super) struct WordMap {
    /// Layer and head.
    pub(super) place: (usize, usize),
    /// `[t, s]`: summed over the tokens of a source word, and the mean over those of a target word.
    weights: Vec<Vec<f64>>,
}

impl<'a> WordAligner<'a> {
    /// Without `heads`, those of [`Heads::default_of`].
    pub fn new(
        model: &'a dyn Train,
        tokenizers: &'a Tokenizers,
        heads: Option<Heads>,
        kernels: Kernels,
    ) -> Result<Self> {
        if model.source() != SourceShape::Text {
            return Err(Error::Usage {
                message: format!(
                    "words are linked to words, but the model reads {}",
                    model.source()
                ),
                hint: "`infer attend` draws what each word attends to".into(),
            });
        }
        let source = tokenizers.require_source()?;
        // A pair of empty sentences shows what attentions there are.
        let (source, target) = ([source.eos()], [tokenizers.target().eos()]);
        let maps = cross_maps(model, &source, &target, kernels)?;
        let places: Vec<_> = maps.iter().map(|map| (map.layer, map.head)).collect();
        let Some(layers) = places.iter().map(|(layer, _)| layer + 1).max() else {
            return Err(Error::NotAligned);
        };
        let heads = heads.unwrap_or(Heads::default_of(layers));
        if !places.iter().any(|place| heads.has(*place)) {
            let most = places.iter().map(|(_, head)| head + 1).max().unwrap_or(0);
            return Err(Error::Usage {
                message: format!(
                    "{heads}: the model attends to the source in {layers} layers of {most} heads"
                ),
                hint: format!(
                    "give a layer and a head that exist; if they are from {}, choose again: \
                     `infer alignments --choose`",
                    Heads::FILE
                ),
            });
        }
        Ok(Self {
            model,
            tokenizers,
            kernels,
            heads,
            places,
        })
    }

    /// How many layers attend to the source, and how many heads they have.
    pub fn shape(&self) -> (usize, usize) {
        let layers = self.places.iter().map(|(layer, _)| layer + 1).max();
        let heads = self.places.iter().map(|(_, head)| head + 1).max();
        (layers.unwrap_or(0), heads.unwrap_or(0))
    }

    /// Whose attention is used.
    pub fn heads(&self) -> Heads {
        self.heads
    }

    pub(super) fn tokenizers(&self) -> &Tokenizers {
        self.tokenizers
    }

    /// The links of texts that are given on both sides, in order.
    pub fn links_of_texts<S: AsRef<str> + Sync>(
        &self,
        source: &[S],
        target: &[S],
    ) -> Result<Vec<Vec<Link>>> {
        let targets = self.tokenizers.target().encode_batch(target)?;
        self.each(source.len(), |i| {
            self.links_of(source[i].as_ref(), target[i].as_ref(), &targets[i])
        })
    }

    /// Does something for every pair, in parallel. Results are in order.
    pub(super) fn each<T: Send>(
        &self,
        pairs: usize,
        work: impl Fn(usize) -> Result<T> + Sync + Send,
    ) -> Result<Vec<T>> {
        on_pool(|| (0..pairs).into_par_iter().map(work).collect())
    }

    fn links_of(&self, source: &str, target: &str, tokens: &[u32]) -> Result<Vec<Link>> {
        let maps = self.word_maps(source, target, tokens, |place| self.heads.has(place))?;
        Ok(links(maps.iter()))
    }

    /// The attention of some heads between the words of a pair; none if a side has no words.
    pub(super) fn word_maps(
        &self,
        source: &str,
        target: &str,
        tokens: &[u32],
        wanted: impl Fn((usize, usize)) -> bool,
    ) -> Result<Vec<WordMap>> {
        let tokenizer = self.tokenizers.require_source()?;
        let keys = Side::new(tokenizer, source, tokenizer.encode(source)?)?;
        let queries = Side::new(self.tokenizers.target(), target, tokens.to_vec())?;
        if keys.count == 0 || queries.count == 0 || queries.tokens.is_empty() {
            return Ok(Vec::new());
        }
        let maps = cross_maps(self.model, &keys.tokens, &queries.tokens, self.kernels)?;
        let maps = maps.iter().filter(|map| wanted((map.layer, map.head)));
        maps.map(|map| WordMap::new(map, &queries, &keys)).collect()
    }
}

impl AlignWords for WordAligner<'_> {
    fn links(&self, pairs: &[Pair]) -> Result<Vec<Vec<Link>>> {
        self.each(pairs.len(), |i| {
            let Pair { source, target } = pairs[i];
            self.links_of(source, &target.text, &target.tokens)
        })
    }
}

/// Every attention of the target's tokens to those of the source.
fn cross_maps(
    model: &dyn Train,
    source: &[u32],
    target: &[u32],
    kernels: Kernels,
) -> Result<Vec<AttentionMap>> {
    let source = Packed::of_sentences([source]).into();
    let target = Packed::of_sentences([target]);
    let mut maps = model.attention(&source, &target, kernels)?;
    maps.retain(|map| map.place == Place::Cross);
    Ok(maps)
}

/// One side of a pair.
struct Side {
    tokens: Vec<u32>,
    /// The word of each token.
    words: Vec<Option<usize>>,
    /// The number of words, of a long side of its beginning.
    count: usize,
}

impl Side {
    fn new(tokenizer: &Tokenizer, text: &str, mut tokens: Vec<u32>) -> Result<Self> {
        let (words, count) = if tokens.len() > MAX_TOKENS {
            tokens.truncate(MAX_TOKENS - 1);
            let count = count_words(&tokenizer.decode(&tokens)?);
            let beginning: Vec<&str> = text.split_whitespace().take(count).collect();
            let words = words_of_tokens(tokenizer, &tokens, &beginning.join(" "))?;
            tokens.push(tokenizer.eos());
            (words.into_iter().chain([None]).collect(), beginning.len())
        } else {
            let words = words_of_tokens(tokenizer, &tokens, text)?;
            (words, count_words(text))
        };
        Ok(Self {
            tokens,
            words,
            count,
        })
    }
}

impl WordMap {
    fn new(map: &AttentionMap, queries: &Side, keys: &Side) -> Result<Self> {
        let rows: Vec<Vec<f32>> = map.weights.to_dtype(DType::F32)?.to_vec2()?;
        let mut weights = vec![vec![0.0; keys.count]; queries.count];
        let mut tokens = vec![0.0; queries.count];
        // Row j is of the query that predicts token j.
        for (row, word) in rows.iter().zip(&queries.words) {
            let Some(word) = *word else { continue };
            tokens[word] += 1.0;
            for (weight, key) in row.iter().zip(&keys.words) {
                let Some(key) = *key else { continue };
                if !weight.is_finite() {
                    return Err(Error::NotANumber);
                }
                weights[word][key] += f64::from(*weight);
            }
        }
        for (row, tokens) in weights.iter_mut().zip(tokens) {
            row.iter_mut()
                .for_each(|weight| *weight /= f64::max(tokens, 1.0));
        }
        let place = (map.layer, map.head);
        Ok(Self { place, weights })
    }
}

/// The link of every target word to the source word with the highest mean weight, the first of equals; none where
/// all weights are 0. Sorted.
pub(super) fn links<'m>(maps: impl Iterator<Item = &'m WordMap> + Clone) -> Vec<Link> {
    let Some(first) = maps.clone().next() else {
        return Vec::new();
    };
    let mut links = Vec::new();
    for target in 0..first.weights.len() {
        let mut sums = vec![0.0; first.weights[target].len()];
        for map in maps.clone() {
            let row = sums.iter_mut().zip(&map.weights[target]);
            row.for_each(|(sum, weight)| *sum += weight);
        }
        let mut best: Option<(usize, f64)> = None;
        for (source, &sum) in sums.iter().enumerate() {
            if sum > best.map_or(0.0, |(_, highest)| highest) {
                best = Some((source, sum));
            }
        }
        links.extend(best.map(|(source, _)| Link { source, target }));
    }
    links.sort();
    links
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    fn side(words: &[Option<usize>]) -> Side {
        Side {
            tokens: vec![0; words.len()],
            words: words.to_vec(),
            count: words.iter().flatten().max().map_or(0, |last| last + 1),
        }
    }

    fn map<const N: usize>(weights: &[[f32; 4]; N]) -> AttentionMap {
        AttentionMap {
            place: Place::Cross,
            layer: 0,
            head: 0,
            weights: Tensor::new(weights, &Device::Cpu).unwrap(),
        }
    }

    #[test]
    fn the_pieces_of_a_source_word_count_together_and_its_end_does_not_count() {
        // Word 0 is one token, word 1 two; the last token is `</s>`.
        let keys = side(&[Some(0), Some(1), Some(1), None]);
        let queries = side(&[Some(0), Some(1), None]);
        let weights = [
            [0.3, 0.2, 0.2, 0.3],
            [0.1, 0.0, 0.0, 0.9],
            [1.0, 0.0, 0.0, 0.0],
        ];
        let map = WordMap::new(&map(&weights), &queries, &keys).unwrap();
        let found = links([map].iter());
        let link = |source, target| Link { source, target };
        assert_eq!(found, [link(0, 1), link(1, 0)]);
        assert_eq!(
            found.iter().map(Link::to_string).collect::<Vec<_>>(),
            ["0-1", "1-0"]
        );
    }

    #[test]
    fn the_tokens_of_a_target_word_vote_together_and_so_do_heads() {
        let keys = side(&[Some(0), Some(1), Some(2), None]);
        let queries = side(&[Some(0), Some(0), None]);
        let one = [[0.5, 0.4, 0.1, 0.0], [0.0, 0.4, 0.6, 0.0], [0.0; 4]];
        let other = [[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0; 4]];
        let [one, other] = [one, other].map(|it| WordMap::new(&map(&it), &queries, &keys).unwrap());
        assert_eq!(links([&one].into_iter())[0].source, 1);
        assert_eq!(links([&one, &other].into_iter())[0].source, 0);
    }

    #[test]
    fn a_word_that_attends_to_no_word_has_no_link() {
        let keys = side(&[Some(0), Some(1), None, None]);
        let queries = side(&[Some(0), None]);
        let weights = [[0.0, 0.0, 0.5, 0.5], [1.0, 0.0, 0.0, 0.0]];
        let map = WordMap::new(&map(&weights), &queries, &keys).unwrap();
        assert_eq!(links([map].iter()), []);
        let nan = [[f32::NAN, 0.0, 0.0, 0.0], [0.0; 4]];
        let broken = WordMap::new(&self::map(&nan), &queries, &keys);
        assert!(matches!(broken, Err(Error::NotANumber)));
    }
}
