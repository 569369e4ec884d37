use std::fmt::Write;

use attend_model::ModelConfig;

use super::date;
use super::facts::Facts;
use super::markup::text;
use crate::curves::grouped;

/// The first lines: what the run is, and its most important numbers.
pub(super) fn write(facts: &Facts) -> String {
    let mut parts = Vec::new();
    if let Some(config) = &facts.config {
        let model = match config.model {
            ModelConfig::Transformer(_) => "Transformer",
            ModelConfig::Recurrent(_) => "recurrent model",
            ModelConfig::Snail(_) => "SNAIL",
            ModelConfig::Caption(_) => "captioning model",
            ModelConfig::Lstmn(_) => "LSTMN",
        };
        let (source, target) = (&config.data.source, &config.data.target);
        parts.push(format!("{model}, {source} → {target}"));
    }
    if let Ok(bundle) = &facts.model {
        let count = bundle.model.weights().count();
        parts.push(format!("{} parameters", grouped(count as f64)));
    }
    parts.push(progress(facts));
    if let Some(time) = facts.written {
        parts.push(date::describe(time));
    }
    let (name, line) = (text(&facts.name), text(&parts.join(" · ")));
    let mut html =
        format!("<header>\n<h1>{name}</h1>\n<p class=\"lead\">{line}</p>\n<div class=\"cards\">\n");
    for (name, value, note) in cards(facts) {
        let (value, note) = (text(&value), text(&note));
        // Writing to a string cannot fail.
        let _ = writeln!(
            html,
            "<div><span>{name}</span><b>{value}</b><small>{note}</small></div>"
        );
    }
    html + "</div>\n</header>\n"
}

/// How far the training is.
fn progress(facts: &Facts) -> String {
    let steps = facts.steps.iter().map(|step| step.step);
    let validations = facts.validations.iter().map(|validation| validation.step);
    let Some(last) = steps.chain(validations).max() else {
        return "not trained yet".into();
    };
    let steps = grouped(last as f64);
    match facts.is_running {
        true => format!("in training, step {steps}"),
        false => format!("{steps} steps"),
    }
}

/// Names, values and what there is to say about them.
fn cards(facts: &Facts) -> Vec<(&'static str, String, String)> {
    let mut cards = Vec::new();
    if let Some(test) = &facts.test {
        let note = format!("test set, step {}", grouped(test.step as f64));
        cards.push(("BLEU", format!("{:.2}", test.bleu), note.clone()));
        cards.push(("chrF2", format!("{:.2}", test.chrf), note));
    }
    if let Some(best) = facts.best() {
        let note = format!("best validation, step {}", grouped(best.step as f64));
        if let (Some(bleu), Some(chrf)) = (best.bleu, best.chrf) {
            cards.push(("BLEU", format!("{bleu:.2}"), note.clone()));
            cards.push(("chrF2", format!("{chrf:.2}"), note.clone()));
        }
        cards.push(("Loss", format!("{:.4}", best.loss), note));
    }
    if let Some(last) = facts.steps.last() {
        let tokens: u64 = facts.steps.iter().map(|step| step.tokens).sum();
        let note = format!("{} target tokens", grouped(tokens as f64));
        cards.push(("Training time", date::duration(last.seconds), note));
        if last.seconds > 0.0 {
            let speed = grouped(tokens as f64 / last.seconds);
            cards.push(("Speed", speed, "target tokens per second".into()));
        }
    }
    cards
}
