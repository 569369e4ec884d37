use attend_train::{Config, differences};

use super::fixture::text;

/// A config file that a user wrote, or the one of a run.
pub(super) fn run(bytes: &[u8]) {
    check(text(bytes), &[]);
    if let Ok(config) = Config::parse_run(text(bytes), "config.toml") {
        let _ = config.to_toml();
    }
}

/// A config that is accepted prints as a config that is the same.
pub(super) fn check(text: &str, overrides: &[String]) {
    let Ok(config) = Config::parse(text, "config.toml", overrides) else {
        return;
    };
    let printed = config.to_toml();
    match Config::parse(&printed, "printed.toml", &[]) {
        Ok(again) => assert_eq!(again, config, "{printed}"),
        Err(error) => panic!("{error}: {printed}"),
    }
    assert!(differences(&config, &config).is_empty());
}
