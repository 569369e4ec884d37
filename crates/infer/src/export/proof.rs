use std::path::Path;

use attend_model::Kernels;
use candle_core::Device;

use crate::{Bundle, DecodeConfig, Error, Result, Translator};

/// Tokens of a translation of the sample.
const LONGEST: usize = 64;

/// Reads an export back and translates a sample with it. An error if it has other tokens than the model's own
/// translations. Returns the number of sentences.
pub(super) fn prove(
    model: &Bundle,
    export: &Path,
    decode: &DecodeConfig,
    sample: &[String],
    kernels: Kernels,
) -> Result<usize> {
    let export = Bundle::open(export, &Device::Cpu)?;
    let differs = |message: String| Error::ExportDiffers {
        folder: Default::default(),
        message,
    };
    let decode = DecodeConfig {
        max_length: decode.max_length.min(LONGEST),
        ..decode.clone()
    };
    let translate = |bundle: &Bundle| {
        let translator = Translator::new(&*bundle.model, &bundle.tokenizers, &decode, kernels);
        translator.translate(sample)
    };
    let encode = |bundle: &Bundle| bundle.tokenizers.require_source()?.encode_batch(sample);
    let sources = encode(model)?.into_iter().zip(encode(&export)?);
    for (line, (before, after)) in sample.iter().zip(sources) {
        if before != after {
            let message = format!("\"{line}\" has the tokens {before:?} and {after:?}");
            return Err(differs(message));
        }
    }
    let translations = translate(model)?.into_iter().zip(translate(&export)?);
    for (line, (before, after)) in sample.iter().zip(translations) {
        let [before, after] = [before, after].map(|found| found.hypotheses[0].tokens.clone());
        if before != after {
            let message = format!("\"{line}\" is translated to {before:?} and {after:?}");
            return Err(differs(message));
        }
    }
    Ok(sample.len())
}
