//! Byte fallback: characters that are not in the vocabulary of a BPE tokenizer are split into bytes.

use super::UNK;
use super::words::value;
use tokenizers::decoders::DecoderWrapper;
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::sequence::Sequence;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::pre_tokenizers::metaspace::Metaspace;

/// Number of tokens that are bytes.
pub(super) const COUNT: usize = 256;

/// A model with the tokens `<0x00>` to `<0xFF>` after `</s>` and `<unk>`. No other token has these names: text is split
/// around every `<`.
pub(super) fn add(model: &BPE) -> tokenizers::Result<BPE> {
    let mut tokens: Vec<(String, u32)> = model.get_vocab().into_iter().collect();
    tokens.sort_unstable_by_key(|(_, id)| *id);
    let mut tokens: Vec<String> = tokens.into_iter().map(|(token, _)| token).collect();
    let bytes = (0..COUNT).map(|byte| format!("<0x{byte:02X}>"));
    tokens.splice(2..2, bytes);
    let merges = serde_json::from_value(value(model)["merges"].take())?;
    BPE::builder()
        .vocab_and_merges(tokens.into_iter().zip(0..).collect::<Vocab>(), merges)
        .unk_token(UNK.into())
        .byte_fallback(true)
        .build()
}

/// Puts characters together, and then replaces `▁`. With `Fuse` between the two, all text would be in the first token,
/// where each `▁` is removed.
pub(super) fn decoder() -> DecoderWrapper {
    let steps: Vec<DecoderWrapper> = vec![ByteFallback::new().into(), Metaspace::default().into()];
    Sequence::new(steps).into()
}
