use attend_data::Reason;
use attend_infer::run::CorpusProvenance;

use super::facts::Facts;
use super::markup::{details, list, note, pairs, table};
use crate::curves::grouped;
use crate::drift::flat;

/// The scores of the best validation and of the test, with their signatures.
pub(super) fn scores(facts: &Facts) -> String {
    let mut rows = Vec::new();
    let mut add = |set: &str, step: u64, score: &str, value: String, signature: &str| {
        let step = grouped(step as f64);
        rows.push(vec![
            set.into(),
            step,
            score.into(),
            value,
            signature.into(),
        ]);
    };
    if let Some(test) = &facts.test {
        let scores = [
            ("BLEU", test.bleu, &test.bleu_signature),
            ("chrF2", test.chrf, &test.chrf_signature),
        ];
        for (score, value, signature) in scores {
            add("test", test.step, score, format!("{value:.2}"), signature);
        }
    }
    if let Some(best) = facts.best() {
        let mut validation = |score, value| add("validation", best.step, score, value, "");
        validation("loss per token", format!("{:.4}", best.loss));
        validation("perplexity", format!("{:.2}", best.perplexity));
        validation("accuracy", format!("{:.1} %", 100.0 * best.accuracy));
        for (score, value) in [("BLEU", best.bleu), ("chrF2", best.chrf)] {
            if let Some(value) = value {
                validation(score, format!("{value:.2}"));
            }
        }
    }
    if rows.is_empty() {
        return note("Nothing has been validated or tested yet.");
    }
    let mut html = table(&["set", "step", "score", "value", "signature"], &rows);
    if facts.skipped + facts.spikes > 0 {
        html += &note(&format!(
            "{} updates were skipped because a number was not finite; the loss spiked {} times.",
            facts.skipped, facts.spikes
        ));
    }
    html
}

/// The corpora and the tokenizer.
pub(super) fn data(facts: &Facts) -> String {
    let corpora = facts.provenance.iter().flat_map(|p| &p.corpora);
    let rows: Vec<Vec<String>> = corpora.map(corpus).collect();
    let html = match rows.is_empty() {
        true => note("The checkpoint does not say which corpora it was trained on."),
        false => table(&["corpus", "pairs read", "kept", "dropped"], &rows),
    };
    let mut more = Vec::new();
    if let Ok(bundle) = &facts.model {
        let vocabularies = bundle.config.vocabularies;
        let target = grouped(vocabularies.target as f64);
        more.push(match (vocabularies.joint, vocabularies.source) {
            (true, _) => ("vocabulary", format!("{target} tokens for both sides")),
            (false, Some(source)) => {
                let source = grouped(source as f64);
                (
                    "vocabulary",
                    format!("{source} source tokens, {target} target tokens"),
                )
            }
            (false, None) => ("vocabulary", format!("{target} target tokens")),
        });
    }
    html + &settings_of(
        facts,
        &[
            "data.source",
            "data.target",
            "data.train",
            "data.valid",
            "data.test",
            "data.tokenizer",
            "data.batch_tokens",
            "data.max_length",
        ],
        more,
    )
}

fn corpus(corpus: &CorpusProvenance) -> Vec<String> {
    let pairs = &corpus.pairs;
    let reasons = pairs.reasons().map(|(reason, count): (Reason, u64)| {
        let name = reason.name().replace('_', " ");
        format!("{} {name}", grouped(count as f64))
    });
    let reasons: Vec<String> = reasons.collect();
    let dropped = match reasons.is_empty() {
        true => "none".to_string(),
        false => reasons.join(", "),
    };
    let count = |count: u64| grouped(count as f64);
    vec![
        corpus.name.clone(),
        count(pairs.read),
        count(pairs.kept),
        dropped,
    ]
}

/// The model's settings and the most important ones of its training, and the whole config.
pub(super) fn settings(facts: &Facts) -> String {
    let mut html = settings_of(
        facts,
        &[
            "model",
            "seed",
            "train.init",
            "train.steps",
            "train.epochs",
            "train.accumulate",
            "train.label_smoothing",
            "train.clip_norm",
            "train.moving_average",
            "train.metric",
            "train.patience",
            "train.schedule",
            "train.adam",
            "decode.beam",
            "decode.length_penalty",
        ],
        Vec::new(),
    );
    if let Some(toml) = &facts.toml {
        html += &details("The whole config", toml);
    }
    html
}

/// The keys of the config that are these or below these, in their order, after some other rows.
fn settings_of(facts: &Facts, keys: &[&str], rows: Vec<(&str, String)>) -> String {
    let Some(config) = &facts.config else {
        return note("The run's config.toml is missing or cannot be read.");
    };
    let values = flat(&config.to_toml());
    let mut rows = rows;
    for key in keys {
        let below = |name: &str| {
            let rest = name.strip_prefix(key);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        for (name, value) in values.iter().filter(|(name, _)| below(name)) {
            rows.push((name.as_str(), value.trim_matches('"').to_string()));
        }
    }
    list(&rows)
}

/// The program, the machine and the hashes.
pub(super) fn origin(facts: &Facts) -> String {
    let Some(provenance) = &facts.provenance else {
        return note("The checkpoint has no provenance.json that can be read.");
    };
    let entries = provenance.entries();
    let rows: Vec<(&str, String)> = entries
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    pairs(&rows)
}
