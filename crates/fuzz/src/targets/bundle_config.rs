use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use attend_infer::BundleConfig;
use attend_model::{ModelConfig, SnailConfig, Vocabularies};

/// The shapes in a weights file that is beside the config.
static SHAPES: LazyLock<BTreeMap<String, Vec<usize>>> = LazyLock::new(|| {
    let vocabularies = Vocabularies {
        source: Some(90),
        target: 90,
        joint: true,
    };
    let model = ModelConfig::Snail(SnailConfig::default());
    model.weight_shapes(vocabularies).expect("the shapes")
});

/// `config.json` of a bundle.
pub(super) fn run(bytes: &[u8]) {
    let Ok(config) = BundleConfig::parse(bytes, Path::new("config.json")) else {
        return;
    };
    let json = serde_json::to_vec(&config).expect("JSON");
    let again = BundleConfig::parse(&json, Path::new("config.json")).expect("a config");
    assert_eq!(again, config);
    let _ = config.model.check_weights(config.vocabularies, &SHAPES);
}
