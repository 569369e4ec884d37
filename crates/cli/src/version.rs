use std::sync::LazyLock;

/// The version of the programs and the commit that they were built from, for `--version`:
/// `0.1.0 (46f72b0c1a2b)`.
pub static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    match env!("ATTEND_COMMIT") {
        "" => version.to_string(),
        commit => format!("{version} ({commit})"),
    }
});
