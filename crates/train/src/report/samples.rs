use attend_infer::run::{Sample, Validation};

use super::facts::Facts;
use super::markup::{note, table, text};
use crate::curves::grouped;

/// The most validations whose translations of a sentence are shown.
const MOST: usize = 8;

/// How translations of the same sentences changed.
pub(super) fn write(facts: &Facts) -> String {
    let with_samples = |validation: &&Validation| !validation.samples.is_empty();
    let Some(last) = facts.validations.iter().rev().find(with_samples) else {
        return note(
            "No translations were kept. Validations keep train.samples of the train.translate_sentences sentences \
             that they translate.",
        );
    };
    let mut html = String::new();
    for sample in &last.samples {
        let versions = versions(facts, &sample.source);
        let best = facts.best().map(|best| best.step);
        let rows = spread(&versions, MOST, |(step, _)| Some(*step) == best);
        let rows: Vec<Vec<String>> = rows
            .into_iter()
            .map(|(step, sample)| {
                let mark = if Some(*step) == best { " (best)" } else { "" };
                let step = format!("{}{mark}", grouped(*step as f64));
                let translation = match sample.translation.trim() {
                    "" => "(empty)",
                    translation => translation,
                };
                vec![step, translation.to_string()]
            })
            .collect();
        html += &format!(
            "<article>\n<p dir=\"auto\" class=\"source\">{}</p>\n<p dir=\"auto\" class=\"reference\">{}</p>\n{}</article>\n",
            text(&sample.source),
            text(&sample.reference),
            table(&["step", "translation"], &rows)
        );
    }
    html
}

/// Every translation of a sentence, with its step.
fn versions<'a>(facts: &'a Facts, source: &str) -> Vec<(u64, &'a Sample)> {
    let versions = facts.validations.iter().filter_map(|validation| {
        let sample = validation
            .samples
            .iter()
            .find(|sample| sample.source == source)?;
        Some((validation.step, sample))
    });
    versions.collect()
}

/// At most so many of the items, evenly spread, with the first, the last and the one that must be among them.
fn spread<T>(items: &[T], most: usize, must: impl Fn(&T) -> bool) -> Vec<&T> {
    let last = items.len().saturating_sub(1);
    let chosen = |index: usize| {
        let share = |index: usize| index * (most - 1) / last.max(1);
        items.len() <= most || index == 0 || share(index) != share(index - 1)
    };
    let kept = items.iter().enumerate();
    let kept = kept.filter(|(index, item)| chosen(*index) || must(item));
    kept.map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_validations_are_spread_with_the_first_the_last_and_the_best() {
        let items: Vec<usize> = (0..100).collect();
        let kept = spread(&items, 8, |item| *item == 37);
        assert!(kept.len() <= 9, "{kept:?}");
        for item in [0, 37, 99] {
            assert!(kept.contains(&&item), "{kept:?}");
        }
        assert_eq!(spread(&items[..3], 8, |_| false), [&0, &1, &2]);
        assert_eq!(spread(&items[..9], 8, |_| false).len(), 8);
        assert!(spread(&items[..0], 8, |_| true).is_empty());
    }
}
