use std::path::PathBuf;

use attend_data::Lines;
use attend_infer::Result;

/// What translations must not have.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Constraints")]
pub(super) struct ConstraintArgs {
    /// Have no translation with this word or phrase, as whole words and in this upper and lower case; may be given
    /// several times
    #[arg(long, value_name = "PHRASE")]
    forbid: Vec<String>,

    /// The same for every line of this file
    #[arg(long, value_name = "FILE")]
    forbid_file: Option<PathBuf>,
}

impl ConstraintArgs {
    /// The phrases for [`attend_infer::Translator::forbidding`]; blank lines are none.
    pub(super) fn forbidden(&self) -> Result<Vec<String>> {
        let mut phrases = self.forbid.clone();
        if let Some(path) = &self.forbid_file {
            for line in Lines::open(path)? {
                phrases.push(line?);
            }
        }
        phrases.retain(|phrase| !phrase.trim().is_empty());
        Ok(phrases)
    }
}
