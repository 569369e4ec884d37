use attend_data::Tokenizer;

use crate::Result;

/// What a translation begins with.
pub(crate) struct Prefix {
    /// Without white space around it.
    text: String,
    /// Without `</s>`.
    pub(crate) tokens: Vec<u32>,
    /// What the tokens are decoded to: another text, if the vocabulary does not have all of it.
    decoded: String,
}

impl Prefix {
    /// Nothing if the text is blank.
    pub(crate) fn new(text: &str, tokenizer: &Tokenizer) -> Result<Option<Self>> {
        let text = text.trim().to_string();
        let mut tokens = tokenizer.encode(&text)?;
        tokens.pop(); // `</s>`
        let decoded = tokenizer.decode(&tokens)?;
        let empty = text.is_empty() || tokens.is_empty();
        Ok((!empty).then_some(Self {
            text,
            tokens,
            decoded,
        }))
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text of tokens that begin with those of the prefix, with the prefix as it was given.
    pub(crate) fn restore(&self, tokens: &[u32], tokenizer: &Tokenizer) -> Result<String> {
        let whole = tokenizer.decode(tokens)?;
        if let Some(rest) = whole.strip_prefix(&self.decoded) {
            return Ok(format!("{}{rest}", self.text));
        }
        // A decoder for which a text is not the sum of its parts.
        let rest = tokenizer.decode(&tokens[self.tokens.len().min(tokens.len())..])?;
        Ok(format!("{} {}", self.text, rest.trim_start())
            .trim_end()
            .to_string())
    }
}
