use attend_batch::SourceShape;

use super::facts::Facts;
use super::markup::text;

/// Commands that use the model, with the run's own path.
pub(super) fn write(facts: &Facts) -> String {
    let run = quoted(&facts.run.path().display().to_string());
    let (source, target) = match &facts.config {
        Some(config) => (config.data.source.as_str(), config.data.target.as_str()),
        None => ("source", "target"),
    };
    let files = [format!("test.{source}"), format!("test.{target}")].map(|file| quoted(&file));
    let samples = facts.validations.iter().rev().flat_map(|v| &v.samples);
    let sentence = samples.map(|sample| sample.source.as_str()).next();
    let sentence = quoted(sentence.unwrap_or("a sentence"));
    let export = quoted(&format!("exports/{}", facts.name));
    let [test_source, test_target] = files;
    let shape = facts.model.as_ref().map(|bundle| bundle.model.source());
    let (attend, is_text) = match shape.unwrap_or_default() {
        SourceShape::Text => ("--text", true),
        SourceShape::Pictures(_) => ("--image", false),
        SourceShape::Features { .. } => ("--features", false),
    };
    let commands = [
        (
            "Translate",
            format!("echo {sentence} | infer translate {run}"),
        ),
        (
            "Score on a test set",
            format!("infer evaluate {run} --src {test_source} --ref {test_target}"),
        ),
        (
            "Draw attention",
            format!("infer attend {run} {attend} {sentence} -o attention.svg"),
        ),
        ("Serve over HTTP", format!("infer serve {run}")),
        (
            "Export for transformers",
            format!("infer export {run} --to hf -o {export}"),
        ),
        (
            "Train on",
            format!("train resume {run} --set train.steps=STEPS"),
        ),
        ("Draw the curves", format!("train plot {run} -o curves.svg")),
    ];
    let of_text = ["Serve over HTTP", "Export for transformers"];
    let commands = commands
        .into_iter()
        .filter(|(title, _)| is_text || !of_text.contains(title));
    let commands = commands.map(|(title, command)| {
        format!(
            "<h3>{title}</h3>\n<pre><code>{}</code></pre>\n",
            text(&command)
        )
    });
    commands.collect()
}

/// A word of a shell's command line.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    match !word.is_empty() && word.chars().all(plain) && !word.starts_with('-') {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_one_word_whatever_is_in_it() {
        for (word, command) in [
            ("runs/a-1", "runs/a-1"),
            ("my runs/a", "'my runs/a'"),
            ("it's $(x)", r"'it'\''s $(x)'"),
            ("", "''"),
            ("-o", "'-o'"),
        ] {
            assert_eq!(quoted(word), command);
        }
    }
}
