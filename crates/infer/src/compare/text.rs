use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use super::results::{PValue, SystemResult};
use super::{Comparison, Tests};

/// The whole comparison. Tables have a blank line after them.
pub(super) fn write(comparison: &Comparison) -> String {
    let mut out = String::new();
    scores(comparison, &mut out);
    by_length(comparison, &mut out);
    differences(comparison, &mut out);
    out.trim_end().to_owned()
}

/// The score, and what is known of its variation: `35.80 (35.81 ± 1.20)`.
pub(super) fn score(result: &SystemResult) -> String {
    match (result.mean, result.half_width) {
        (Some(mean), Some(half)) => format!("{:.2} ({mean:.2} ± {half:.2})", result.score),
        _ => format!("{:.2}", result.score),
    }
}

type Test = (&'static str, fn(&SystemResult) -> Option<PValue>);

/// The tests, and how to find their results.
pub(super) const TESTS: [Test; 2] = [
    ("bootstrap", |result| result.bootstrap),
    ("randomization", |result| result.randomization),
];

pub(super) fn p_value(value: PValue) -> String {
    let star = if value.significant { "*" } else { "" };
    format!("p = {:.4}{star}", value.p)
}

/// What the numbers are, in sentences for people.
pub(super) fn notes(comparison: &Comparison) -> Vec<String> {
    let Tests {
        bootstrap_samples,
        randomization_samples,
        ..
    } = comparison.tests;
    let mut notes = Vec::new();
    if let Some(samples) = bootstrap_samples {
        notes.push(format!(
            "x ± y: the mean score of {samples} resampled test sets, and the interval that 95 % of them are in."
        ));
    }
    let bootstrap = bootstrap_samples.map(|n| format!("paired bootstrap resampling ({n} samples)"));
    let trials = |n| format!("approximate randomization ({n} trials)");
    let randomization = randomization_samples.map(trials);
    let tests: Vec<String> = bootstrap.into_iter().chain(randomization).collect();
    if !tests.is_empty() {
        notes.push(format!(
            "p: how likely so great a difference from the baseline is by chance, by {}. * p < 0.05.",
            tests.join(" and by ")
        ));
    }
    if comparison
        .metrics
        .iter()
        .any(|metric| metric.lower_is_better)
    {
        notes.push("TER: lower is better.".into());
    }
    let systems = comparison.systems.iter();
    for system in systems.filter(|system| system.same_as_baseline) {
        notes.push(format!(
            "{}: the same translations as the baseline's, so p means nothing.",
            system.name
        ));
    }
    notes
}

fn scores(comparison: &Comparison, out: &mut String) {
    let head = comparison.metrics.iter().map(|metric| metric.name.into());
    let mut rows = vec![std::iter::once(String::new()).chain(head).collect()];
    for (i, system) in comparison.systems.iter().enumerate() {
        let name = match i {
            0 => format!("{} (baseline)", system.name),
            _ => system.name.clone(),
        };
        let cells = system.results.iter().map(score);
        rows.push(std::iter::once(name).chain(cells).collect());
        for (label, test) in TESTS {
            let cells = system.results.iter().filter_map(test).map(p_value);
            let cells: Vec<String> = cells.collect();
            if !cells.is_empty() {
                rows.push([vec![format!("  {label}")], cells].concat());
            }
        }
    }
    table(&rows, out);
    for note in notes(comparison) {
        line(out, &note);
    }
    line(out, "");
    for metric in &comparison.metrics {
        for signature in &metric.signatures {
            line(out, &format!("{}|{signature}", metric.name));
        }
    }
    line(out, "");
}

fn by_length(comparison: &Comparison, out: &mut String) {
    let by_length = &comparison.by_length;
    for (m, metric) in comparison.metrics.iter().enumerate() {
        line(out, &format!("{} by {}", metric.name, by_length.measure()));
        let mut rows = vec![vec![String::new(), "sentences".into()]];
        rows[0].extend(comparison.systems.iter().map(|system| system.name.clone()));
        for bucket in &by_length.buckets {
            let mut row = vec![bucket.label(), bucket.sentences.to_string()];
            let scores = bucket.scores.iter();
            row.extend(scores.map(|scores| format!("{:.2}", scores[m])));
            rows.push(row);
        }
        table(&rows, out);
    }
}

fn differences(comparison: &Comparison, out: &mut String) {
    let Some(baseline) = comparison.systems.first() else {
        return;
    };
    for differences in &comparison.differences {
        let system = &differences.system;
        line(
            out,
            &format!(
                "{system} against {}, by the chrF2 of each sentence: {} better, {} worse, {} equal",
                baseline.name, differences.better, differences.worse, differences.equal
            ),
        );
        line(out, "");
        for example in &differences.sentences {
            let gain = example.system.chrf - example.baseline.chrf;
            line(out, &format!("line {}, {gain:+.1}", example.line));
            if let Some(source) = &example.source {
                line(out, &format!("  source     {source}"));
            }
            for reference in &example.references {
                line(out, &format!("  reference  {reference}"));
            }
            for (label, scored) in [
                ("baseline ", &example.baseline),
                ("system   ", &example.system),
            ] {
                line(
                    out,
                    &format!("  {label}  {}  ({:.1})", scored.text, scored.chrf),
                );
            }
            line(out, "");
        }
    }
}

/// Columns as wide as their widest cell: the first to the left, numbers to the right.
fn table(rows: &[Vec<String>], out: &mut String) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(move |row| row.get(column))
            .map(|c| c.width())
    };
    let widths: Vec<usize> = (0..columns).map(|i| width(i).max().unwrap_or(0)).collect();
    for row in rows {
        let mut text = String::new();
        for (i, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[i] - cell.width());
            let _ = match i {
                0 => write!(text, "{cell}{padding}"),
                _ => write!(text, "  {padding}{cell}"),
            };
        }
        line(out, text.trim_end());
    }
    line(out, "");
}

/// Control characters could change what a terminal shows.
fn line(out: &mut String, line: &str) {
    out.extend(line.chars().map(|c| if c.is_control() { ' ' } else { c }));
    out.push('\n');
}
