use attend_data::{Tokenizer, Tokenizers};
use attend_infer::document::{Format, Kind, Layout};
use attend_infer::{Error, Result};

/// What lines are, and what is kept of them.
#[derive(clap::Args)]
#[command(next_help_heading = "Text options")]
pub(super) struct LayoutArgs {
    /// Lines are paragraphs: translate each sentence by itself, and keep the white space between them
    #[arg(long)]
    sentences: bool,

    /// Language of the input, for finding the ends of sentences: a code such as en or de
    #[arg(long, value_name = "CODE", default_value = "en", value_parser = language)]
    lang: String,

    /// Translate a line that has more tokens than the model was trained on as a whole, instead of splitting it at
    /// sentence ends, punctuation or white space
    #[arg(long)]
    no_split: bool,

    /// Keep URLs, e-mail addresses, mentions and numbers as they are, or only these:
    /// --protect=urls,emails,mentions,numbers
    #[arg(
        long,
        value_name = "KINDS",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        default_missing_value = "urls,emails,mentions,numbers",
        value_enum,
        hide_possible_values = true
    )]
    protect: Vec<Kind>,

    /// Show the model this token instead of protected text; it must be in the vocabulary, and the model must have
    /// learnt to copy it
    #[arg(long, value_name = "TOKEN")]
    placeholder: Option<String>,

    /// html: lines have inline tags, which are put back by word alignment; what code, pre and translate="no" contain is
    /// kept. Each line is a whole: an element must end on the line that it begins on
    #[arg(
        long,
        value_name = "text|html",
        value_enum,
        hide_possible_values = true
    )]
    format: Option<Format>,
}

impl LayoutArgs {
    /// The options that say something of text, and whether they are given.
    pub(super) fn of_text(&self) -> [(&'static str, bool); 4] {
        [
            ("--sentences", self.sentences),
            ("--protect", !self.protect.is_empty()),
            ("--placeholder", self.placeholder.is_some()),
            ("--format", self.format.is_some()),
        ]
    }

    /// Whether something is put back by word alignment.
    pub(super) fn needs_links(&self) -> bool {
        let html = self.format == Some(Format::Html);
        html || !self.protect.is_empty() || self.placeholder.is_some()
    }

    pub(super) fn layout<'a>(&self, tokenizers: &Tokenizers) -> Result<Layout<'a>> {
        let format = self.format.unwrap_or_default();
        let mut layout = Layout::default()
            .in_format(format)
            .in_language(&*self.lang)
            .protecting(&self.protect);
        if self.sentences {
            layout = layout.by_sentence();
        }
        if let Some(token) = &self.placeholder {
            if self.protect.is_empty() && format == Format::Text {
                return Err(Error::Usage {
                    message: format!("--placeholder {token}: nothing is protected"),
                    hint: "add --protect".into(),
                });
            }
            for tokenizer in [tokenizers.require_source()?, tokenizers.target()] {
                check_placeholder(token, tokenizer)?;
            }
            layout = layout.with_placeholder(&**token);
        }
        Ok(layout)
    }

    /// Whether long lines are split.
    pub(super) fn splits(&self) -> bool {
        !self.no_split
    }
}

/// An error if a token is not in the vocabulary, with or without the mark of a word's beginning.
fn check_placeholder(token: &str, tokenizer: &Tokenizer) -> Result<()> {
    let is_known = tokenizer
        .id(token)
        .or_else(|| tokenizer.id(&format!("▁{token}")))
        .is_some();
    let is_word = !token.is_empty() && !token.contains(char::is_whitespace);
    if is_known && is_word {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!("--placeholder {token}: not a token of the model's vocabulary"),
        hint: "omit --placeholder: protected text is then found by word alignment".into(),
    })
}

/// The language of a code such as en, de-AT or zh_CN.
fn language(code: &str) -> std::result::Result<String, String> {
    let language = code.split(['-', '_']).next().unwrap_or_default();
    let is_code =
        (2..=3).contains(&language.len()) && language.chars().all(|c| c.is_ascii_alphabetic());
    match is_code {
        true => Ok(language.to_ascii_lowercase()),
        false => Err("expected a code of two or three letters, such as en".into()),
    }
}
