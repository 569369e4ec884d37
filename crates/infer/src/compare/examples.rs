use serde::Serialize;

use super::{System, TestSet};
use crate::metrics::Tally;

/// How the sentences of a system differ from the baseline's, by the chrF2 of each sentence.
#[derive(Clone, Debug, Serialize)]
pub struct Differences {
    pub system: String,
    /// Sentences with a better, a worse and the same chrF2 as the baseline's.
    pub better: usize,
    pub worse: usize,
    pub equal: usize,
    /// Those that differ most, the greatest difference first.
    pub sentences: Vec<Example>,
}

/// A sentence that two systems translate differently.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    /// From 1.
    pub line: usize,
    pub source: Option<String>,
    pub references: Vec<String>,
    pub baseline: ScoredLine,
    pub system: ScoredLine,
}

#[derive(Clone, Debug, Serialize)]
pub struct ScoredLine {
    pub text: String,
    /// chrF2 of the sentence.
    pub chrf: f64,
}

/// For each system but the first.
pub(super) fn differences(
    systems: &[System],
    test_set: &TestSet,
    tallies: &[Tally],
    shown: usize,
) -> Vec<Differences> {
    let scores = tallies.iter().map(|tally| {
        let lines = 0..tally.len();
        lines.map(|line| tally.score_of([line])).collect()
    });
    let scores: Vec<Vec<f64>> = scores.collect();
    let others = (1..systems.len()).map(|i| {
        let gain = |line: usize| scores[i][line] - scores[0][line];
        let mut lines: Vec<usize> = (0..scores[i].len()).collect();
        let better = lines.iter().filter(|line| gain(**line) > 0.0).count();
        let worse = lines.iter().filter(|line| gain(**line) < 0.0).count();
        let equal = lines.len() - better - worse;
        lines.retain(|line| gain(*line) != 0.0);
        // Stable: equal differences stay in the order of the lines.
        lines.sort_by(|a, b| gain(*b).abs().total_cmp(&gain(*a).abs()));
        lines.truncate(shown);
        let scored = |system: usize, line: usize| ScoredLine {
            text: systems[system].lines[line].clone(),
            chrf: scores[system][line],
        };
        let example = |&line: &usize| Example {
            line: line + 1,
            source: test_set.source.as_ref().map(|source| source[line].clone()),
            references: test_set
                .references
                .iter()
                .map(|it| it[line].clone())
                .collect(),
            baseline: scored(0, line),
            system: scored(i, line),
        };
        Differences {
            system: systems[i].name.clone(),
            better,
            worse,
            equal,
            sentences: lines.iter().map(example).collect(),
        }
    });
    others.collect()
}
