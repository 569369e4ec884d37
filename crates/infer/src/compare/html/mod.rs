//! The comparison as one page: no scripts, and nothing from elsewhere.

mod diff;

use std::fmt::{self, Write};

use super::Comparison;
use super::examples::{Example, ScoredLine};
use super::results::SystemResult;
use super::text::{TESTS, notes, p_value};
use crate::heatmap;
use diff::Part;

/// The greys and blues of the heatmaps, and darker ones for a dark screen.
const STYLE: &str = include_str!("page.css");

pub(super) fn write(comparison: &Comparison) -> String {
    let mut page = Page(String::new());
    page.line(format_args!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Comparison of {} systems</title>\n<style>\n{STYLE}</style>\n</head>\n<body>",
        comparison.systems.len()
    ));
    page.scores(comparison);
    page.by_length(comparison);
    page.differences(comparison);
    page.line(format_args!("</body>\n</html>"));
    page.0
}

/// Text in which nothing is markup. Control characters, which HTML does not allow, become a sign of their own.
fn escape(text: &str) -> String {
    let shown = text.chars().map(|c| match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    });
    heatmap::escape(&shown.collect::<String>())
}

/// The document written so far.
struct Page(String);

impl Page {
    fn line(&mut self, line: fmt::Arguments) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
    }

    fn scores(&mut self, comparison: &Comparison) {
        let (sentences, references) = (comparison.sentences, comparison.references);
        self.line(format_args!(
            "<h1>Comparison of {} systems</h1>\n<p>{sentences} sentences, {references} reference{} each</p>\n\
             <div class=\"scroll\"><table>\n<tr><th>system</th>",
            comparison.systems.len(),
            if references == 1 { "" } else { "s" },
        ));
        for metric in &comparison.metrics {
            let arrow = if metric.lower_is_better { " ↓" } else { "" };
            self.line(format_args!("<th>{}{arrow}</th>", metric.name));
        }
        self.line(format_args!("</tr>"));
        for (i, system) in comparison.systems.iter().enumerate() {
            let baseline = if i == 0 {
                "<small>baseline</small>"
            } else {
                ""
            };
            self.line(format_args!(
                "<tr><td><bdi>{}</bdi>{baseline}</td>",
                escape(&system.name)
            ));
            for result in &system.results {
                self.result(result);
            }
            self.line(format_args!("</tr>"));
        }
        self.line(format_args!("</table></div>\n<ul class=\"notes\">"));
        for note in notes(comparison) {
            self.line(format_args!("<li>{}</li>", escape(&note)));
        }
        for metric in &comparison.metrics {
            for signature in &metric.signatures {
                self.line(format_args!(
                    "<li><code>{}|{signature}</code></li>",
                    metric.name
                ));
            }
        }
        self.line(format_args!("</ul>"));
    }

    fn result(&mut self, result: &SystemResult) {
        let mut cell = format!("<td><b>{:.2}</b>", result.score);
        if let (Some(mean), Some(half)) = (result.mean, result.half_width) {
            let _ = write!(cell, "<small>{mean:.2} ± {half:.2}</small>");
        }
        for (label, test) in TESTS {
            if let Some(value) = test(result) {
                let _ = write!(cell, "<small>{label} {}</small>", p_value(value));
            }
        }
        self.line(format_args!("{cell}</td>"));
    }

    fn by_length(&mut self, comparison: &Comparison) {
        let by_length = &comparison.by_length;
        self.line(format_args!("<h2>Scores by {}</h2>", by_length.measure()));
        for (m, metric) in comparison.metrics.iter().enumerate() {
            let all = by_length.buckets.iter().flat_map(|bucket| &bucket.scores);
            let highest = all.map(|scores| scores[m]).fold(0.0, f64::max);
            self.line(format_args!(
                "<h3>{}</h3>\n<div class=\"scroll\"><table>\n<tr><th>length</th><th>sentences</th>",
                metric.name
            ));
            for system in &comparison.systems {
                self.line(format_args!("<th><bdi>{}</bdi></th>", escape(&system.name)));
            }
            self.line(format_args!("</tr>"));
            for bucket in &by_length.buckets {
                let (label, sentences) = (bucket.label(), bucket.sentences);
                self.line(format_args!("<tr><td>{label}</td><td>{sentences}</td>"));
                for (i, scores) in bucket.scores.iter().enumerate() {
                    let share = if highest > 0.0 {
                        100.0 * scores[m] / highest
                    } else {
                        0.0
                    };
                    let class = if i == 0 { "bar base" } else { "bar" };
                    self.line(format_args!(
                        "<td class=\"{class}\">{:.2}<i style=\"width:{share:.1}%\"></i></td>",
                        scores[m]
                    ));
                }
                self.line(format_args!("</tr>"));
            }
            self.line(format_args!("</table></div>"));
        }
    }

    fn differences(&mut self, comparison: &Comparison) {
        let Some(baseline) = comparison.systems.first() else {
            return;
        };
        for differences in &comparison.differences {
            self.line(format_args!(
                "<h2><bdi>{}</bdi> against <bdi>{}</bdi></h2>\n<p>By the chrF2 of each sentence: \
                 {} better, {} worse, {} equal.</p>",
                escape(&differences.system),
                escape(&baseline.name),
                differences.better,
                differences.worse,
                differences.equal
            ));
            for example in &differences.sentences {
                self.example(example);
            }
        }
    }

    fn example(&mut self, example: &Example) {
        let gain = example.system.chrf - example.baseline.chrf;
        let class = if gain > 0.0 { "good" } else { "bad" };
        self.line(format_args!(
            "<div class=\"example\">\n<h3>Line {} <span class=\"{class}\">{gain:+.1}</span></h3>\n<dl>",
            example.line
        ));
        let source = example.source.iter().map(|text| ("source", text));
        let references = example.references.iter().map(|text| ("reference", text));
        for (label, text) in source.chain(references) {
            let text = escape(text);
            self.line(format_args!("<dt>{label}</dt><dd dir=\"auto\">{text}</dd>"));
        }
        let [old, new] = diff::marked(&example.baseline.text, &example.system.text);
        self.scored("baseline", &example.baseline, &old);
        self.scored("system", &example.system, &new);
        self.line(format_args!("</dl>\n</div>"));
    }

    /// A translation in which the words that the other one does not have are marked.
    fn scored(&mut self, label: &str, scored: &ScoredLine, parts: &[Part]) {
        let mut text = String::new();
        for part in parts {
            let _ = match part.differs {
                true => write!(text, "<mark>{}</mark>", escape(part.text)),
                false => write!(text, "{}", escape(part.text)),
            };
        }
        let chrf = scored.chrf;
        self.line(format_args!(
            "<dt>{label} ({chrf:.1})</dt><dd dir=\"auto\">{text}</dd>"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_text_is_markup() {
        let text = escape("<b title=\"x\">&amp;\u{0}\u{7f}\t</b>");
        let escaped = "&lt;b title=&quot;x&quot;&gt;&amp;amp;\u{fffd}\u{fffd} &lt;/b&gt;";
        assert_eq!(text, escaped);
    }
}
