//! Which of CTranslate2's variables is made of which weights: one table, for writing and for reading.

use attend_model::{NormKind, Tie, TransformerConfig, Vocabularies};

use Width::{Inner, Model};

pub(super) const TARGET: &str = "decoder/embeddings/weight";
pub(super) const OUTPUT: &str = "decoder/projection/weight";
pub(super) const OUTPUT_BIAS: &str = "decoder/projection/bias";
pub(super) const SOURCE: &str = "encoder/embeddings_0/weight";
/// The table of positions, which both sides have in common.
pub(super) const POSITIONS: &str = "decoder/position_encodings/encodings";
pub(super) const SOURCE_POSITIONS: &str = "encoder/position_encodings/encodings";

/// The variable with the scales of a matrix in 8 bits.
pub(super) fn scales(name: &str) -> String {
    format!("{name}_scale")
}

/// A variable of CTranslate2.
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    /// The names of the weights that it is made of: equal numbers of its rows, in this order.
    pub(super) weights: Vec<String>,
    /// Whether the weight has one more row, the last: `<pad>`, which CTranslate2 does not have.
    pub(super) of_words: bool,
}

/// A width of a layer.
#[derive(Clone, Copy)]
enum Width {
    Model,
    Inner,
}

/// A linear map of a layer: CTranslate2's name, what it is made of, rows (of each of those) and columns.
type Map = (&'static str, &'static [&'static str], Width, Width);

/// The linear maps of a layer. `attention/` is attention to the source, which only a decoder's layer has.
const MAPS: [Map; 7] = [
    (
        "self_attention/linear_0",
        &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
        Model,
        Model,
    ),
    (
        "self_attention/linear_1",
        &["self_attn.out_proj"],
        Model,
        Model,
    ),
    ("attention/linear_0", &["encoder_attn.q_proj"], Model, Model),
    (
        "attention/linear_1",
        &["encoder_attn.k_proj", "encoder_attn.v_proj"],
        Model,
        Model,
    ),
    (
        "attention/linear_2",
        &["encoder_attn.out_proj"],
        Model,
        Model,
    ),
    ("ffn/linear_0", &["fc1"], Inner, Model),
    ("ffn/linear_1", &["fc2"], Model, Inner),
];

/// The normalisations of a layer.
const NORMS: [(&str, &str); 3] = [
    ("self_attention/layer_norm", "self_attn_layer_norm"),
    ("attention/layer_norm", "encoder_attn_layer_norm"),
    ("ffn/layer_norm", "final_layer_norm"),
];

/// The variable whose presence shows that a layer is there.
pub(super) fn of_layer(side: &str, layer: usize) -> String {
    format!("{side}/layer_{layer}/self_attention/linear_0/weight")
}

/// The variable that has d_ff rows.
pub(super) const INNER: &str = "encoder/layer_0/ffn/linear_0/weight";

/// Every variable that is made of weights. Tied weights are there once; [`aliases`] are their other names.
pub(super) fn variables(config: &TransformerConfig, vocabularies: Vocabularies) -> Vec<Variable> {
    let mut variables = tables(config, vocabularies);
    for (side, layers) in [
        ("encoder", config.encoder_layers),
        ("decoder", config.decoder_layers),
    ] {
        for n in 0..layers {
            layer(config, side, n, &mut variables);
        }
        if config.norm == NormKind::Pre {
            let weights = format!("model.{side}.layer_norm");
            norm(
                config,
                format!("{side}/layer_norm"),
                &weights,
                &mut variables,
            );
        }
    }
    variables
}

/// Embeddings, the output matrix and its bias.
fn tables(config: &TransformerConfig, vocabularies: Vocabularies) -> Vec<Variable> {
    let words = |words: usize| words.saturating_sub(1);
    let (source, target) = (
        words(vocabularies.source.unwrap_or(0)),
        words(vocabularies.target),
    );
    let matrix = |name: &str, rows, weight: &str| Variable {
        name: name.into(),
        shape: vec![rows, config.d_model],
        weights: vec![weight.into()],
        of_words: true,
    };
    let mut tables = match config.tie {
        Tie::All => vec![matrix(TARGET, target, "model.shared.weight")],
        Tie::Decoder | Tie::None => vec![
            matrix(TARGET, target, "model.decoder.embed_tokens.weight"),
            matrix(SOURCE, source, "model.encoder.embed_tokens.weight"),
        ],
    };
    if config.tie == Tie::None {
        tables.push(matrix(OUTPUT, target, "lm_head.weight"));
    }
    if config.output_bias {
        tables.push(Variable {
            shape: vec![target],
            ..matrix(OUTPUT_BIAS, target, "final_logits_bias")
        });
    }
    tables
}

fn layer(config: &TransformerConfig, side: &str, n: usize, variables: &mut Vec<Variable>) {
    let (theirs, ours) = (
        format!("{side}/layer_{n}"),
        format!("model.{side}.layers.{n}"),
    );
    let has = |name: &str| side == "decoder" || !name.starts_with("attention/");
    let width = |width| match width {
        Model => config.d_model,
        Inner => config.d_ff,
    };
    for (name, weights, rows, columns) in MAPS.iter().filter(|(name, ..)| has(name)) {
        let rows = width(*rows) * weights.len();
        for (kind, shape) in [
            ("weight", vec![rows, width(*columns)]),
            ("bias", vec![rows]),
        ] {
            variables.push(Variable {
                name: format!("{theirs}/{name}/{kind}"),
                shape,
                weights: weights
                    .iter()
                    .map(|weight| format!("{ours}.{weight}.{kind}"))
                    .collect(),
                of_words: false,
            });
        }
    }
    for (name, weight) in NORMS.iter().filter(|(name, _)| has(name)) {
        norm(
            config,
            format!("{theirs}/{name}"),
            &format!("{ours}.{weight}"),
            variables,
        );
    }
}

fn norm(config: &TransformerConfig, theirs: String, ours: &str, variables: &mut Vec<Variable>) {
    for (name, weight) in [("gamma", "weight"), ("beta", "bias")] {
        variables.push(Variable {
            name: format!("{theirs}/{name}"),
            shape: vec![config.d_model],
            weights: vec![format!("{ours}.{weight}")],
            of_words: false,
        });
    }
}

/// Other names of variables, sorted. CTranslate2's converter gives one to every variable that equals another.
pub(super) fn aliases(tie: Tie) -> Vec<(&'static str, &'static str)> {
    let positions = (SOURCE_POSITIONS, POSITIONS);
    match tie {
        Tie::All => vec![(OUTPUT, TARGET), (SOURCE, TARGET), positions],
        Tie::Decoder => vec![(OUTPUT, TARGET), positions],
        Tie::None => vec![positions],
    }
}

/// How tables are tied in a file with these names for them: each is the name that a table is stored under.
pub(super) fn tie(
    source: Option<&str>,
    target: Option<&str>,
    output: Option<&str>,
    joint: bool,
) -> Tie {
    match (output == target, source == target && joint) {
        (true, true) => Tie::All,
        (true, false) => Tie::Decoder,
        (false, _) => Tie::None,
    }
}
