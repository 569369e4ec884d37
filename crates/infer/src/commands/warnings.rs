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

/// How many warnings are printed. The rest are counted.
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
