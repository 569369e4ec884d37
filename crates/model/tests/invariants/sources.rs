//! Sources of every kind.

use attend_batch::{Features, Packed, PictureShape, Pictures, Source, SourceShape};
use attend_model::{ModelConfig, Vocabularies};

pub(super) fn vocabularies(config: &ModelConfig) -> Vocabularies {
    let text = config.source() == SourceShape::Text;
    Vocabularies {
        source: text.then_some(20),
        target: 20,
        joint: text,
    }
}

/// Three sources.
pub(super) fn source(config: &ModelConfig) -> Source {
    match config.source() {
        SourceShape::Text => {
            let sentences = [vec![5, 6, 7, 0], vec![9, 0], vec![4, 8, 11, 12, 3, 2, 0]];
            Packed::of_sentences(sentences).into()
        }
        SourceShape::Pictures(shape) => pictures(shape, 3),
        SourceShape::Features { width } => features(width, &[4, 2, 7]),
    }
}

/// One of them.
pub(super) fn one_source(config: &ModelConfig, index: usize) -> Source {
    source(config).part(index..index + 1)
}

/// One source of so many tokens or rows; a picture, whose size is the model's.
pub(super) fn long_source(config: &ModelConfig, length: u32) -> Source {
    match config.source() {
        SourceShape::Text => {
            let ids = (0..length - 1).map(|i| 1 + i % 6).chain([0]);
            Packed::of_sentences([ids.collect::<Vec<u32>>()]).into()
        }
        SourceShape::Pictures(shape) => pictures(shape, 1),
        SourceShape::Features { width } => features(width, &[length as usize]),
    }
}

/// Sources that the model does not read, and what an error calls them.
pub(super) fn other_source(config: &ModelConfig) -> Vec<(Source, &'static str)> {
    let shape = PictureShape {
        height: 3,
        width: 2,
        channels: 1,
    };
    let all = [
        (pictures(shape, 1), "pictures"),
        (features(41, &[2, 1]), "rows of 41 features"),
        (Packed::of_sentences([[5, 0]]).into(), "token ids"),
    ];
    let mut all = Vec::from(all);
    all.retain(|(source, _)| source.shape() != config.source());
    all
}

fn pictures(shape: PictureShape, count: usize) -> Source {
    let values = noise(count * shape.values());
    Source::Pictures(Pictures::new(values, shape))
}

fn features(width: usize, lengths: &[usize]) -> Source {
    let values = noise(width * lengths.iter().sum::<usize>());
    Source::Features(Features::new(values, width, lengths.iter().copied()))
}

/// Numbers from -1 to 1 without a pattern.
fn noise(count: usize) -> Vec<f32> {
    let number = |i: usize| ((i * i) as f32 * 0.37 + i as f32 * 1.7).sin();
    (0..count).map(number).collect()
}
