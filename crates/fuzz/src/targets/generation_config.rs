use std::path::Path;

use attend_infer::GenerationConfig;

/// `generation_config.json` of a bundle.
pub(super) fn run(bytes: &[u8]) {
    if let Ok(decode) = GenerationConfig::parse(bytes, Path::new("generation_config.json")) {
        assert_eq!(decode.validate(), Ok(()));
    }
}
