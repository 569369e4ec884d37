//! The settings of a Transformer, which CTranslate2 stores as variables of one number.

use attend_model::{Activation, NormKind, TransformerConfig};

use super::Kind;

/// A variable of one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    F32(f32),
    I8(i8),
    I16(i16),
}

impl Scalar {
    pub(super) fn kind(self) -> Kind {
        match self {
            Scalar::F32(_) => Kind::F32,
            Scalar::I8(_) => Kind::I8,
            Scalar::I16(_) => Kind::I16,
        }
    }

    pub(super) fn value(self) -> f64 {
        match self {
            Scalar::F32(value) => value.into(),
            Scalar::I8(value) => value.into(),
            Scalar::I16(value) => value.into(),
        }
    }
}

/// A variable that is a setting.
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) value: Scalar,
    /// Whether the file must have it: without it, CTranslate2 may assume another value.
    pub(super) needed: bool,
    /// Whether translations depend on it.
    pub(super) matters: bool,
}

/// CTranslate2's number of an activation.
const ACTIVATIONS: [(Activation, i8); 3] = [
    (Activation::Relu, 0),
    (Activation::Swish, 2),
    (Activation::Gelu, 3), // with the error function; 1 and 4 are approximations
];

/// The activation of CTranslate2's number.
pub(super) fn activation(number: f64) -> Option<Activation> {
    let found = ACTIVATIONS.iter().find(|(_, n)| f64::from(*n) == number);
    found.map(|(activation, _)| *activation)
}

/// All settings, as CTranslate2's converter writes them.
pub(super) fn settings(config: &TransformerConfig) -> Vec<Setting> {
    let number = ACTIVATIONS.iter().find(|(a, _)| *a == config.activation);
    let number = number.map_or(0, |(_, number)| *number);
    let both = ["encoder", "decoder"].into_iter().flat_map(|side| {
        let heads = i16::try_from(config.heads).unwrap_or(i16::MAX);
        let scale = (config.d_model as f64).sqrt() as f32;
        let pre_norm = i8::from(config.norm == NormKind::Pre);
        [
            ("num_heads", Scalar::I16(heads), true),
            ("pre_norm", Scalar::I8(pre_norm), true),
            ("activation", Scalar::I8(number), true),
            ("scale_embeddings", Scalar::F32(scale), false),
        ]
        .map(|(name, value, needed)| Setting {
            name: format!("{side}/{name}"),
            value,
            needed,
            matters: true,
        })
    });
    let one = [
        ("encoder/embeddings_merge", Scalar::I8(0), false, true),
        ("encoder/multi_query_attention", Scalar::I8(0), false, true),
        ("decoder/alibi", Scalar::I8(0), false, true),
        (
            "decoder/alibi_use_positive_positions",
            Scalar::I8(0),
            false,
            false,
        ),
        ("decoder/scale_alibi", Scalar::I8(0), false, false),
        // The decoder's first input is a zero vector, as is our row of `<pad>`.
        (
            "decoder/start_from_zero_embedding",
            Scalar::I8(1),
            true,
            true,
        ),
        // Which layer and heads show alignments: no layer, one head.
        ("decoder/alignment_layer", Scalar::I16(-1), false, false),
        ("decoder/alignment_heads", Scalar::I16(1), false, false),
    ];
    let one = one.map(|(name, value, needed, matters)| Setting {
        name: name.into(),
        value,
        needed,
        matters,
    });
    both.chain(one).collect()
}
