//! Attention maps of a pair of sentences, or of a picture and its caption.

mod picture;

use attend_batch::Packed;
use attend_data::{Tokenizer, Tokenizers};
use attend_model::{AttentionMap, Kernels, Place, Seq2Seq};
use attend_ops::on_pool;
use candle_core::DType;

use crate::heatmap::{Axes, Panel, Picture};
use crate::pieces::pieces;
use crate::source::LineReader;
use crate::{DecodeConfig, Error, Result, Translator};

/// The decoder's first input. The vocabulary has no text for it, so the usual `<s>` is shown.
const START: &str = "<s>";

/// Computes the attention maps of a sentence pair.
pub struct Aligner<'a> {
    model: &'a dyn Seq2Seq,
    tokenizers: &'a Tokenizers,
    reader: LineReader<'a>,
    config: &'a DecodeConfig,
    translator: Translator<'a>,
    kernels: Kernels,
}

/// One side of a sentence pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The path of the file if the source is not text.
    pub text: String,
    /// Ends in `</s>`. None of a source that is not text.
    pub tokens: Vec<u32>,
    /// The tokens as readable text: of a picture, the row and the column of each region, and of features, the number
    /// of each row, counted from 1.
    pub pieces: Vec<String>,
}

/// A sentence, its translation and the model's attention maps.
#[derive(Clone, Debug)]
pub struct Alignment {
    pub source: Sentence,
    pub target: Sentence,
    /// The rows and columns of the regions of a picture; `None` if the source is none.
    pub regions: Option<(usize, usize)>,
    /// Empty if the model has no attention.
    pub maps: Vec<AttentionMap>,
}

impl<'a> Aligner<'a> {
    pub fn new(
        model: &'a dyn Seq2Seq,
        tokenizers: &'a Tokenizers,
        config: &'a DecodeConfig,
        kernels: Kernels,
    ) -> Self {
        Self {
            model,
            tokenizers,
            reader: LineReader::new(model, tokenizers),
            config,
            translator: Translator::new(model, tokenizers, config, kernels),
            kernels,
        }
    }

    /// Computes the attention maps of `text` and `target`, with teacher forcing. Without `target`, the
    /// model's own translation is used. If the model does not read text, `text` is the path of a file.
    pub fn align(&self, text: &str, target: Option<&str>) -> Result<Alignment> {
        let lines = [text];
        let read = self.reader.read(&lines, self.config.max_source_length)?;
        if text.trim().is_empty() || read.says_nothing(0) {
            return Err(Error::Usage {
                message: "the source sentence is empty".into(),
                hint: "give a sentence with at least one word".into(),
            });
        }
        let source = match self.tokenizers.source() {
            Some(tokenizer) => Sentence::encode(tokenizer, text)?,
            None => Sentence::of_file(text, self.model.regions(), read.length(0)),
        };
        if self.model.regions().is_none() {
            check_length("source", &source)?;
        }
        let target = match target {
            Some(target) => {
                let target = Sentence::encode(self.tokenizers.target(), target)?;
                check_length("target", &target)?;
                target
            }
            None => {
                let best = self.translator.translate(&[text])?.swap_remove(0);
                let best = best.hypotheses.into_iter().next();
                let (text, tokens) = best.map_or_else(Default::default, |h| (h.text, h.tokens));
                Sentence::new(self.tokenizers.target(), text, tokens)
            }
        };
        let batch = read.batch(&[0])?;
        let maps = on_pool(|| {
            let target = Packed::of_sentences([&target.tokens]);
            self.model.attention(&batch, &target, self.kernels)
        })?;
        Ok(Alignment {
            source,
            target,
            regions: self.model.regions(),
            maps,
        })
    }

    pub(crate) fn target_tokenizer(&self) -> &Tokenizer {
        self.tokenizers.target()
    }
}

/// The most tokens of a sentence whose attention is drawn. A picture of more has too many cells to be of use.
const MAX_DRAWN: usize = 512;

fn check_length(side: &str, sentence: &Sentence) -> Result<()> {
    let tokens = sentence.pieces.len();
    if tokens <= MAX_DRAWN {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!(
            "the {side} sentence has {tokens} tokens, but at most {MAX_DRAWN} can be drawn"
        ),
        hint: "give a shorter sentence".into(),
    })
}

impl Sentence {
    fn new(tokenizer: &Tokenizer, text: String, tokens: Vec<u32>) -> Self {
        let pieces = pieces(tokenizer, &tokens);
        Self {
            text,
            tokens,
            pieces,
        }
    }

    /// A picture with these regions, or a file of features with so many rows.
    fn of_file(path: &str, regions: Option<(usize, usize)>, rows: usize) -> Self {
        let pieces = match regions {
            Some((rows, columns)) => {
                let places = (0..rows * columns).map(|i| (i / columns + 1, i % columns + 1));
                places
                    .map(|(row, column)| format!("{row}, {column}"))
                    .collect()
            }
            None => (1..=rows).map(|row| row.to_string()).collect(),
        };
        Self {
            text: path.into(),
            tokens: Vec::new(),
            pieces,
        }
    }

    fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Self> {
        let tokens = tokenizer.encode(text)?;
        Ok(Self::new(tokenizer, text.into(), tokens))
    }
}

impl Alignment {
    /// The text of the queries: the rows of a map.
    pub fn queries(&self, place: Place) -> &[String] {
        match place {
            Place::Encoder => &self.source.pieces,
            Place::Decoder | Place::Cross => &self.target.pieces,
        }
    }

    /// The text of the keys: the columns of a map. The decoder's inputs are the target shifted right
    /// by one token, so the columns of its self-attention are `<s>` and all tokens but the last.
    pub fn keys(&self, place: Place) -> Vec<String> {
        let pieces = match place {
            Place::Encoder | Place::Cross => return self.source.pieces.clone(),
            Place::Decoder => &self.target.pieces,
        };
        let inputs = pieces[..pieces.len().saturating_sub(1)].iter().cloned();
        std::iter::once(START.to_string()).chain(inputs).collect()
    }

    /// Draws maps of one [`Place`] as a grid: rows are layers, columns are heads.
    ///
    /// # Panics
    /// If `maps` is empty.
    pub fn draw(&self, maps: &[&AttentionMap]) -> Result<Picture> {
        let place = maps[0].place;
        let several = self.maps.iter().filter(|map| map.place == place).nth(1);
        let mut panels: Vec<Vec<Panel>> = Vec::new();
        for layer in maps.chunk_by(|a, b| a.layer == b.layer) {
            let row = layer.iter().map(|map| {
                let title = match several {
                    Some(_) => format!("layer {}, head {}", map.layer + 1, map.head + 1),
                    None => "attention".into(),
                };
                Ok(Panel::new(title, weights(map)?))
            });
            panels.push(row.collect::<Result<_>>()?);
        }
        let picture = Picture::grid(self.axes(place), panels);
        Ok(picture.described(self.description(place)))
    }

    /// Draws the mean of maps of one [`Place`].
    ///
    /// # Panics
    /// If `maps` is empty.
    pub fn draw_mean(&self, maps: &[&AttentionMap]) -> Result<Picture> {
        if maps.len() == 1 {
            return self.draw(maps);
        }
        let place = maps[0].place;
        let title = format!("mean of {} heads", maps.len());
        let panel = Panel::new(title, self.mean(maps)?);
        let picture = Picture::single(self.axes(place), panel);
        Ok(picture.described(self.description(place)))
    }

    /// The mean of maps of one [`Place`], a row for each query.
    ///
    /// # Panics
    /// If `maps` is empty.
    pub fn mean(&self, maps: &[&AttentionMap]) -> Result<Vec<Vec<f32>>> {
        let mut mean = weights(maps[0])?;
        for map in &maps[1..] {
            for (sum, row) in mean.iter_mut().zip(weights(map)?) {
                sum.iter_mut().zip(row).for_each(|(sum, w)| *sum += w);
            }
        }
        let count = maps.len() as f32;
        mean.iter_mut().flatten().for_each(|sum| *sum /= count);
        Ok(mean)
    }

    fn axes(&self, place: Place) -> Axes {
        Axes::new(&self.keys(place), self.queries(place))
    }

    pub(crate) fn description(&self, place: Place) -> String {
        let what = match place {
            Place::Encoder => "How the source attends to itself.",
            Place::Decoder => "How the translation attends to itself.",
            Place::Cross => "How the translation attends to the source.",
        };
        let (source, target) = (&self.source.text, &self.target.text);
        format!("{what} Source: {source} Translation: {target}")
    }
}

/// The weights of a map, a row for each query. An error if a weight is not finite.
fn weights(map: &AttentionMap) -> Result<Vec<Vec<f32>>> {
    let weights: Vec<Vec<f32>> = map.weights.to_dtype(DType::F32)?.to_vec2()?;
    if weights.iter().flatten().all(|weight| weight.is_finite()) {
        Ok(weights)
    } else {
        Err(Error::NotANumber)
    }
}
