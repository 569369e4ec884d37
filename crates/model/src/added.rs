/// A key of a model's config that was added later, with a default that is not what configs mean that were saved
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// The dotted key, in the config of a bundle and in that of a run.
    pub key: &'static str,
    /// The value that a saved config without the key means.
    pub value: &'static str,
    /// Another key of its table, and the value with which a config has the key.
    pub only_with: (&'static str, &'static str),
}

/// All of them. Whoever reads a config that was saved, in a bundle or by a run, fills them in. A saved config has all
/// keys of this kind, so that one without them is from before.
pub const ADDED: [Added; 1] = [
    // The width of the Gaussian was always learnt.
    Added {
        key: "model.recurrent.attention.deviation",
        value: "learned",
        only_with: ("align", "local-p"),
    },
];
