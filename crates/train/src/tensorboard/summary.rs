//! An event of a run as a record of TensorBoard.

use attend_infer::run::{Event, Sample};

use super::message::{Metadata, Plugin, Record, Shape, Summary, Tensor, Value};

/// The record of an event.
pub(super) fn record(event: &Event, time: f64) -> Record {
    let (step, mut values) = match event {
        Event::Step(step) => (
            step.step,
            numbers(&[
                ("train/loss", Some(step.loss)),
                ("train/divergence", step.divergence),
                ("train/learning_rate", Some(step.learning_rate)),
                ("train/gradient_norm", Some(step.gradient_norm)),
                ("train/tokens_per_second", Some(step.tokens_per_second)),
            ]),
        ),
        Event::Skipped(skipped) => (
            skipped.step,
            numbers(&[("train/skipped_in_a_row", Some(skipped.in_a_row as f64))]),
        ),
        Event::Spike(spike) => (
            spike.step,
            numbers(&[("train/spike_loss", Some(spike.loss))]),
        ),
        Event::Validation(validation) => (
            validation.step,
            numbers(&[
                ("valid/loss", Some(validation.loss)),
                ("valid/perplexity", Some(validation.perplexity)),
                ("valid/accuracy", Some(validation.accuracy)),
                ("valid/bleu", validation.bleu),
                ("valid/chrf", validation.chrf),
            ]),
        ),
        Event::Test(scores) => (
            scores.step,
            numbers(&[
                ("test/bleu", Some(scores.bleu)),
                ("test/chrf", Some(scores.chrf)),
            ]),
        ),
    };
    if let Event::Validation(validation) = event
        && !validation.samples.is_empty()
    {
        values.push(text("valid/samples", table(&validation.samples)));
    }
    Record {
        wall_time: time,
        step: i64::try_from(step).unwrap_or(i64::MAX),
        summary: Some(Summary { values }),
        ..Record::default()
    }
}

fn numbers(values: &[(&str, Option<f64>)]) -> Vec<Value> {
    let present = values.iter().filter_map(|(tag, number)| {
        // The log has `null` for all that is not finite.
        let number = (*number)?;
        let number = if number.is_finite() { number } else { f64::NAN };
        Some(Value {
            tag: tag.to_string(),
            number: Some(number as f32),
            ..Value::default()
        })
    });
    present.collect()
}

fn text(tag: &str, markdown: String) -> Value {
    Value {
        tag: tag.into(),
        tensor: Some(Tensor {
            dtype: Tensor::STRING,
            shape: Some(Shape {}),
            strings: vec![markdown.into_bytes()],
        }),
        metadata: Some(Metadata {
            plugin: Some(Plugin {
                name: "text".into(),
            }),
            data_class: Metadata::TENSOR,
        }),
        ..Value::default()
    }
}

/// Samples as a table in Markdown.
fn table(samples: &[Sample]) -> String {
    let mut table = "| source | reference | translation |\n|---|---|---|\n".to_string();
    for sample in samples {
        let cells = [&sample.source, &sample.reference, &sample.translation];
        let cells = cells.map(|cell| escape(cell));
        table += &format!("| {} |\n", cells.join(" | "));
    }
    table
}

/// Text that Markdown shows as it is, on one line.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '|' => escaped.push_str("&#124;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_one_line_per_sample_whatever_is_in_its_text() {
        let sample = Sample {
            source: "a | b\n<b>&".into(),
            reference: "*x*".into(),
            translation: "`y`".into(),
        };
        let table = table(&[sample]);
        assert_eq!(table.lines().count(), 3);
        assert_eq!(
            table.lines().last(),
            Some("| a &#124; b &lt;b&gt;&amp; | \\*x\\* | \\`y\\` |")
        );
    }
}
