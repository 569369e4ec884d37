use std::path::{Component, Path};

use attend_infer::WeightsIndex;

/// `model.safetensors.index.json` or `pytorch_model.bin.index.json`. No shard is outside its folder.
pub(super) fn run(bytes: &[u8]) {
    let index = match WeightsIndex::parse(bytes, Path::new("model.safetensors.index.json")) {
        Ok(index) => index,
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    for shard in index.shards.values() {
        let mut components = Path::new(shard).components();
        let only = (components.next(), components.next());
        assert!(
            matches!(only, (Some(Component::Normal(_)), None)),
            "{shard:?}"
        );
    }
}
