use std::path::Path;

use attend_infer::{Aligner, Bundle, Error};
use attend_model::{Kernels, Place};

use super::facts::Facts;
use super::markup::note;

/// The most sentences that are drawn, and the most tokens on a side of one.
const MOST: usize = 3;
const MOST_TOKENS: usize = 60;

/// Heatmaps of the model's own translations of the sample sentences.
pub(super) fn write(facts: &Facts, kernels: Kernels) -> String {
    let bundle = match &facts.model {
        Ok(bundle) => bundle,
        Err(problem) => return note(&format!("Nothing is drawn: {problem}.")),
    };
    let samples = facts
        .validations
        .iter()
        .rev()
        .map(|validation| &validation.samples);
    let Some(samples) = samples.into_iter().find(|samples| !samples.is_empty()) else {
        return note("Nothing is drawn: no sentences were kept. See train.samples.");
    };
    let sources = samples.iter().map(|sample| sample.source.as_str());
    let shows = match bundle.model.regions() {
        Some(_) => {
            "On each picture, what the word below attended to is lit up: the mean of all heads of the cross-attention, \
             for the best checkpoint's own captions."
        }
        None => {
            "The mean of all heads of the cross-attention, for the best checkpoint's own translations. Rows are the \
             tokens of the translation and columns those of the source; darker is more."
        }
    };
    match draw(bundle, sources, kernels) {
        Ok(pictures) if pictures.is_empty() => {
            note("Nothing is drawn: the sentences are empty or too long.")
        }
        Ok(pictures) => {
            let pictures = pictures.concat();
            format!(
                "<p>{shows}</p>\n\
                 <div class=\"maps\">\n{pictures}</div>\n"
            )
        }
        Err(error) => note(&format!("Nothing is drawn: {error}.")),
    }
}

fn draw<'a>(
    bundle: &Bundle,
    sources: impl Iterator<Item = &'a str>,
    kernels: Kernels,
) -> attend_infer::Result<Vec<String>> {
    let (model, tokenizers) = (&*bundle.model, &bundle.tokenizers);
    let aligner = Aligner::new(model, tokenizers, &bundle.decode, kernels);
    let mut pictures = Vec::new();
    for source in sources
        .filter(|source| !source.trim().is_empty())
        .take(MOST)
    {
        let alignment = aligner.align(source, None)?;
        let is_picture = alignment.regions.is_some();
        let keys = alignment.source.pieces.len();
        let longest = alignment
            .target
            .tokens
            .len()
            .max(if is_picture { 0 } else { keys });
        let maps = alignment
            .maps
            .iter()
            .filter(|map| map.place == Place::Cross);
        let maps: Vec<_> = maps.collect();
        if maps.is_empty() {
            return Err(Error::NoAttention);
        }
        if longest > MOST_TOKENS {
            continue;
        }
        let id = format!("weight-{}", pictures.len());
        let picture = match is_picture {
            true => {
                let pixels = aligner.pixels(Path::new(source))?;
                alignment.draw_on(pixels, &maps, true)?.to_inline_svg(&id)
            }
            false => alignment.draw_mean(&maps)?.to_inline_svg(&id),
        };
        pictures.push(format!("<figure>{picture}</figure>\n"));
    }
    Ok(pictures)
}
