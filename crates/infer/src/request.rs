/// A line to translate, and what is asked of its translation alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub text: String,
    /// The line's number: random draws depend on it and on the piece, and on nothing else of the input.
    pub number: u64,
    /// Which piece of the line it is, if the line was taken apart.
    pub piece: u64,
    /// What the translation begins with: whole words, as they are written, without white space around them. What
    /// follows is the model's, and may be more letters. It is an error if the maximum length has no room for it.
    pub prefix: Option<String>,
    /// Phrases that the translation must have as whole words. They are searched for with a beam: of at least four
    /// hypotheses, and of more for terms of many tokens.
    pub terms: Vec<String>,
    /// If not 0: instead of the best translations, those with so many different next tokens after the prefix, each
    /// continued greedily. Their scores are the log-probabilities of these tokens.
    pub branches: usize,
}

impl Request {
    pub fn new(number: u64, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            number,
            ..Self::default()
        }
    }
}

/// What a line was translated to.
#[derive(Clone, Debug, PartialEq)]
pub struct Translation {
    /// Best first, never empty.
    pub hypotheses: Vec<Hypothesis>,
    /// Whether the best ended because of `decode.max_length` or `max_length_ratio`, not by itself.
    pub cut: bool,
    /// Whether the best ends in a loop: the same few tokens, again and again.
    pub repeats: bool,
    /// Those of [`Request::terms`] that the best does not have: what the vocabulary cannot write, and what could not
    /// be placed before the maximum length.
    pub missing_terms: Vec<String>,
    /// Tokens of the source line, `</s>` included. If these are more than `decode.max_source_length`,
    /// only so many were translated. 1 for a line that names a file.
    pub source_tokens: usize,
}

/// One translation of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// One line, without a line break.
    pub text: String,
    /// As the model gave them, `</s>` included; none for an empty line.
    pub tokens: Vec<u32>,
    /// Log-probability, divided as `decode.length_measure` and `decode.length_penalty` say.
    pub score: f32,
}

impl Translation {
    /// The best translation.
    pub fn text(&self) -> &str {
        &self.hypotheses[0].text
    }

    /// Of a line with nothing to translate.
    pub(crate) fn empty() -> Self {
        Self {
            hypotheses: vec![Hypothesis {
                text: String::new(),
                tokens: Vec::new(),
                score: 0.0,
            }],
            cut: false,
            repeats: false,
            missing_terms: Vec::new(),
            source_tokens: 1,
        }
    }
}
