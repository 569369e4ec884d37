use std::path::{Component, Path};

use attend_infer::Manifest;

/// `manifest.json` of a checkpoint. No name leads out of its folder.
pub(super) fn run(bytes: &[u8]) {
    let Ok(manifest) = Manifest::parse(bytes, Path::new("manifest.json")) else {
        return;
    };
    for name in manifest.files.keys() {
        let mut components = Path::new(name).components();
        let only = (components.next(), components.next());
        assert!(
            matches!(only, (Some(Component::Normal(_)), None)),
            "{name:?}"
        );
    }
    let again = Manifest::parse(&manifest.to_json(), Path::new("manifest.json"));
    assert_eq!(again.expect("a manifest"), manifest);
}
