//! Small configs of every model and variant.

use attend_model::{
    Activation, AlignKind, AttentionChoice, AttentionConfig, CellKind, ContextKind, FusionKind,
    LstmnConfig, ModelConfig, NormKind, RecurrentConfig, ScoreKind, Scores, SnailConfig, Tie,
    TransformerConfig,
};

fn tiny() -> TransformerConfig {
    TransformerConfig {
        encoder_layers: 2,
        decoder_layers: 2,
        d_model: 12,
        heads: 3,
        d_ff: 20,
        dropout: 0.2,
        attention_dropout: 0.2,
        activation_dropout: 0.2,
        ..TransformerConfig::default()
    }
}

/// Every variant of every family.
pub(super) fn configs() -> Vec<ModelConfig> {
    let mut configs = Vec::new();
    for norm in [NormKind::Post, NormKind::Pre] {
        for activation in [Activation::Relu, Activation::Gelu, Activation::Swish] {
            for tie in [Tie::All, Tie::Decoder, Tie::None] {
                configs.push(ModelConfig::Transformer(TransformerConfig {
                    norm,
                    activation,
                    tie,
                    ..tiny()
                }));
            }
        }
    }
    for tie in [Tie::All, Tie::None] {
        configs.push(ModelConfig::Transformer(TransformerConfig {
            tie,
            output_bias: true,
            ..tiny()
        }));
    }
    let comparing = ScoreKind::ALL.into_iter().filter(|score| score.compares());
    let one_for_all = comparing.map(|score| vec![score]);
    let one_for_each = vec![ScoreKind::Additive, ScoreKind::ScaledDot, ScoreKind::Cosine];
    for scores in one_for_all.chain([one_for_each]) {
        let score = Scores(scores);
        configs.push(ModelConfig::Transformer(TransformerConfig {
            score,
            ..tiny()
        }));
    }
    configs.extend(recurrent().into_iter().map(ModelConfig::Recurrent));
    configs.extend(snail().into_iter().map(ModelConfig::Snail));
    configs.extend(lstmn().into_iter().map(ModelConfig::Lstmn));
    configs
}

fn small() -> RecurrentConfig {
    RecurrentConfig {
        cell: CellKind::Lstm,
        encoder_layers: 1,
        decoder_layers: 1,
        d_embed: 12,
        d_hidden: 12,
        bidirectional: true,
        reverse_source: false,
        dropout: 0.2,
        tie: Tie::None,
        attention: AttentionChoice::None,
    }
}

/// Every cell and direction at two depths; every order of attention; every score with every alignment; every
/// context, with and without a gate and the doubly stochastic penalty.
fn recurrent() -> Vec<RecurrentConfig> {
    let mut configs = Vec::new();
    for cell in [CellKind::Lstm, CellKind::Gru] {
        for (bidirectional, reverse_source) in [(true, false), (false, false), (false, true)] {
            for layers in [1, 2] {
                configs.push(RecurrentConfig {
                    cell,
                    encoder_layers: layers,
                    decoder_layers: 3 - layers,
                    bidirectional,
                    reverse_source,
                    ..small()
                });
            }
        }
        for attention in orders() {
            for tie in [Tie::All, Tie::Decoder] {
                configs.push(RecurrentConfig {
                    cell,
                    decoder_layers: 2,
                    tie,
                    attention: AttentionChoice::Some(attention.clone()),
                    ..small()
                });
            }
        }
    }
    for score in ScoreKind::ALL {
        for align in AlignKind::ALL {
            for attention in orders() {
                let attention = AttentionConfig {
                    score: Some(score),
                    positions: (score == ScoreKind::Location).then_some(5),
                    align,
                    window: (align != AlignKind::Global).then_some(2),
                    ..attention
                };
                let attention = AttentionChoice::Some(attention);
                configs.push(RecurrentConfig {
                    attention,
                    ..small()
                });
            }
        }
    }
    for align in AlignKind::ALL {
        for score in [ScoreKind::General, ScoreKind::Location] {
            let attention = AttentionChoice::Some(AttentionConfig {
                score: Some(score),
                positions: (score == ScoreKind::Location).then_some(5),
                align,
                window: (align != AlignKind::Global).then_some(1),
                context: ContextKind::Hard,
                ..AttentionConfig::default()
            });
            configs.push(RecurrentConfig {
                attention,
                ..small()
            });
        }
    }
    for context in ContextKind::ALL {
        for (gate, doubly_stochastic) in [(false, 0.0), (true, 0.0), (false, 0.5), (true, 0.5)] {
            for attention in orders() {
                let attention = AttentionChoice::Some(AttentionConfig {
                    context,
                    gate,
                    doubly_stochastic,
                    ..attention
                });
                configs.push(RecurrentConfig {
                    attention,
                    ..small()
                });
            }
        }
    }
    configs
}

fn orders() -> [AttentionConfig; 3] {
    let feeding = |input_feeding| AttentionConfig {
        input_feeding: Some(input_feeding),
        ..AttentionConfig::default()
    };
    [AttentionConfig::bahdanau(), feeding(true), feeding(false)]
}

/// Every kind of tying; spans shorter and longer than the sentences; one and two blocks.
fn snail() -> Vec<SnailConfig> {
    let mut configs = Vec::new();
    for (tie, blocks) in [(Tie::All, 1), (Tie::Decoder, 2), (Tie::None, 2)] {
        for span in [2, 3, 16] {
            configs.push(SnailConfig {
                blocks,
                d_model: 12,
                filters: 5,
                span,
                d_key: 6,
                d_value: 7,
                dropout: 0.2,
                tie,
            });
        }
    }
    configs
}

/// Both fusions with every kind of tying, at several depths.
fn lstmn() -> Vec<LstmnConfig> {
    let mut configs = Vec::new();
    for fusion in FusionKind::ALL {
        for (tie, d_embed) in [(Tie::All, 12), (Tie::Decoder, 12), (Tie::None, 9)] {
            for (encoder_layers, decoder_layers) in [(1, 1), (2, 1), (1, 2)] {
                configs.push(LstmnConfig {
                    encoder_layers,
                    decoder_layers,
                    d_embed,
                    d_hidden: 12,
                    fusion,
                    dropout: 0.2,
                    tie,
                });
            }
        }
    }
    configs
}
