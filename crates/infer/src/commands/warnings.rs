/// Warns of lines that are too long, by their number.
pub(super) struct LengthWarnings {
    /// The longest line that the model was trained on, if that is known.
    trained: Option<usize>,
    /// The longest line that is translated whole.
    limit: usize,
    count: usize,
    /// Lines that were cut off without a warning of their own.
    cut_later: usize,
}

/// How many warnings of a kind are printed. The rest are counted.
const SHOWN: usize = 10;

impl LengthWarnings {
    pub(super) fn new(trained: Option<usize>, limit: usize) -> Self {
        Self {
            trained,
            limit,
            count: 0,
            cut_later: 0,
        }
    }

    /// Looks at the length of a line. Lines are counted from 1.
    pub(super) fn check(&mut self, line: usize, tokens: usize) {
        let limit = self.limit;
        let message = match self.trained {
            _ if tokens > limit => format!(
                "only the first {limit} of its {tokens} tokens are translated; split it into \
                 sentences, or raise --max-source-length"
            ),
            Some(trained) if tokens > trained => format!(
                "it has {tokens} tokens, but the model was trained on at most {trained}; split it \
                 into sentences"
            ),
            _ => return,
        };
        self.count += 1;
        if self.count <= SHOWN {
            tracing::warn!("line {line}: {message}");
        } else if tokens > limit {
            self.cut_later += 1;
        }
    }

    /// Prints how many warnings were not printed.
    pub(super) fn finish(&self) {
        if self.count > SHOWN {
            let more = self.count - SHOWN;
            let cut = self.cut_later;
            tracing::warn!(
                "{more} more lines are longer than those that the model was trained on; {cut} of \
                 them were cut off"
            );
        }
    }
}

/// What can be wrong with the translation of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The line was too long for the model, and was translated in so many pieces.
    Split { pieces: usize, longest: usize },
    /// The translation ended at the limit.
    Cut,
    /// The translation ends in a loop.
    Repeats,
    /// This tag of the line had no end, or no beginning.
    Repaired(String),
    /// The translation does not have these required phrases.
    MissingTerms(Vec<String>),
}

/// Warns of lines by their number, whatever is wrong with them.
#[derive(Default)]
pub(super) struct LineReports {
    split: usize,
    cut: usize,
    repeats: usize,
    missing: usize,
    repaired: usize,
}

const LIMIT: &str = "cut off at decode.max_length or decode.max_length_ratio";

impl LineReports {
    /// Reports a line, counted from 1.
    pub(super) fn add(&mut self, problem: Problem, line: usize) {
        let (count, message) = match problem {
            Problem::Split { pieces, longest } => (
                &mut self.split,
                format!(
                    "it has more than the {longest} tokens of the longest sentences, and is translated in \
                     {pieces} pieces"
                ),
            ),
            Problem::Cut => (&mut self.cut, format!("its translation was {LIMIT}")),
            Problem::Repeats => (
                &mut self.repeats,
                "its translation repeats itself to its end".to_string(),
            ),
            Problem::Repaired(tag) => (
                &mut self.repaired,
                format!(
                    "{tag} has no other half on the line: with --format html, each line is a whole"
                ),
            ),
            Problem::MissingTerms(terms) => (
                &mut self.missing,
                format!("its translation lacks `{}`", terms.join("`, `")),
            ),
        };
        *count += 1;
        if *count <= SHOWN {
            tracing::warn!("line {line}: {message}");
        }
    }

    /// Prints how many lines were not shown.
    pub(super) fn finish(&self) {
        if let Some(more @ 1..) = self.split.checked_sub(SHOWN) {
            tracing::warn!(
                "{more} more lines are longer than the longest sentences, and were split"
            );
        }
        if let Some(more @ 1..) = self.cut.checked_sub(SHOWN) {
            tracing::warn!("{more} more translations were {LIMIT}");
        }
        if let Some(more @ 1..) = self.repeats.checked_sub(SHOWN) {
            tracing::warn!("{more} more translations repeat themselves to their end");
        }
        if let Some(more @ 1..) = self.repaired.checked_sub(SHOWN) {
            tracing::warn!("{more} more lines have tags without their other half");
        }
        if let Some(more @ 1..) = self.missing.checked_sub(SHOWN) {
            tracing::warn!("{more} more translations lack required phrases");
        }
    }
}
