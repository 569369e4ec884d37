use std::path::Path;

use attend_infer::parse_hub_config;

/// `config.json` of a MarianMT or Pegasus model, with the settings of older ones for `generate`.
pub(super) fn run(bytes: &[u8]) {
    if let Ok((model, decode)) = parse_hub_config(bytes, Path::new("config.json")) {
        assert!(model.validate().is_ok());
        assert!(decode.validate().is_ok());
    }
}
