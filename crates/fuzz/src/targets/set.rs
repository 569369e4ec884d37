use super::config;
use super::fixture::text;

const FILE: &str = r#"
out = "runs/mine"
[data]
source = "en"
target = "de"
train = "data/train"
[train]
steps = 100
[train.schedule]
kind = "linear"
[model.transformer]
tie = "decoder"
"#;

/// The `--set` options of a command line, one a line. In a value, U+001F stands for a line end.
pub(super) fn run(bytes: &[u8]) {
    let options = text(bytes).lines();
    let options: Vec<String> = options
        .map(|option| option.replace('\u{1f}', "\n"))
        .collect();
    config::check(FILE, &options);
}
