//! Small configs of every model and variant.

use attend_model::{
    Activation, AlignKind, AttentionChoice, AttentionConfig, BlockConfig, CaptionConfig, CellKind,
    ContextKind, ContextSteps, DeviationKind, FusionKind, LstmnConfig, ModelConfig, NormKind,
    PictureConfig, RecurrentConfig, ScoreActivation, ScoreKind, Scores, SharpnessKind, SnailConfig,
    Tie, TransformerConfig,
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
    configs.push(ModelConfig::Transformer(TransformerConfig {
        layer_dropout: 0.5,
        ..tiny()
    }));
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
    configs.extend(caption().into_iter().map(ModelConfig::Caption));
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
        context: ContextSteps::First,
        attention: AttentionChoice::None,
    }
}

/// Every cell and direction at two depths, with the summary at the first step and at every step; every order of
/// attention; every score with every alignment, and what can be varied of them; every context, with and without a
/// gate and the doubly stochastic penalty.
fn recurrent() -> Vec<RecurrentConfig> {
    let mut configs = Vec::new();
    for cell in [CellKind::Lstm, CellKind::Gru] {
        for (bidirectional, reverse_source) in [(true, false), (false, false), (false, true)] {
            for layers in [1, 2] {
                for context in [ContextSteps::First, ContextSteps::Every] {
                    configs.push(RecurrentConfig {
                        cell,
                        encoder_layers: layers,
                        decoder_layers: 3 - layers,
                        bidirectional,
                        reverse_source,
                        context,
                        ..small()
                    });
                }
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
    for attention in orders().into_iter().flat_map(varied) {
        configs.push(RecurrentConfig {
            attention: AttentionChoice::Some(attention),
            ..small()
        });
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

/// What can be varied of scores and alignments, but for the defaults.
fn varied(order: AttentionConfig) -> Vec<AttentionConfig> {
    let activations = [ScoreActivation::Sigmoid, ScoreActivation::Relu];
    let mut configs: Vec<AttentionConfig> = activations
        .map(|activation| AttentionConfig {
            score: Some(ScoreKind::Additive),
            activation: Some(activation),
            ..order.clone()
        })
        .into();
    configs.push(AttentionConfig {
        score: Some(ScoreKind::Cosine),
        sharpness: Some(SharpnessKind::Emitted),
        ..order.clone()
    });
    configs.push(AttentionConfig {
        align: AlignKind::LocalP,
        window: Some(2),
        deviation: Some(DeviationKind::Learned),
        ..order
    });
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

/// Pictures, in colour and grey, of odd sizes, with and without pooling, and rows of features; with and without
/// positions; recurrent decoders with every context, with and without layers between the regions and the decoder;
/// and Transformers.
fn caption() -> Vec<CaptionConfig> {
    let block = |width, convolutions, pool| BlockConfig {
        width,
        convolutions,
        pool,
    };
    let pictures = CaptionConfig {
        picture: Some(PictureConfig {
            height: 9,
            width: 7,
            grey: false,
        }),
        blocks: vec![block(6, 1, 2), block(5, 2, 1)],
        dropout: 0.1,
        ..CaptionConfig::default()
    };
    let grey = CaptionConfig {
        picture: Some(PictureConfig {
            height: 6,
            width: 12,
            grey: true,
        }),
        blocks: vec![block(7, 1, 3)],
        positions: false,
        ..pictures.clone()
    };
    let features = CaptionConfig {
        features: Some(5),
        picture: None,
        blocks: Vec::new(),
        ..pictures.clone()
    };
    let bare = CaptionConfig {
        positions: false,
        ..features.clone()
    };
    let sources = [pictures, grey, features, bare];
    let mut configs = Vec::new();
    for source in &sources {
        for (encoder_layers, cell) in [(0, CellKind::Lstm), (1, CellKind::Gru)] {
            for context in ContextKind::ALL {
                let gate = encoder_layers == 0;
                let attention = AttentionConfig {
                    context,
                    gate,
                    doubly_stochastic: if gate { 0.5 } else { 0.0 },
                    ..AttentionConfig::bahdanau()
                };
                configs.push(CaptionConfig {
                    recurrent: Some(RecurrentConfig {
                        cell,
                        encoder_layers,
                        decoder_layers: 2 - encoder_layers,
                        attention: AttentionChoice::Some(attention),
                        ..small()
                    }),
                    ..source.clone()
                });
            }
        }
        for (encoder_layers, norm, tie) in [
            (0, NormKind::Post, Tie::Decoder),
            (0, NormKind::Pre, Tie::None),
            (2, NormKind::Pre, Tie::Decoder),
        ] {
            configs.push(CaptionConfig {
                transformer: Some(TransformerConfig {
                    encoder_layers,
                    norm,
                    tie,
                    ..tiny()
                }),
                ..source.clone()
            });
        }
    }
    let additive = TransformerConfig {
        encoder_layers: 0,
        tie: Tie::None,
        score: Scores(vec![ScoreKind::Additive]),
        ..tiny()
    };
    configs.push(CaptionConfig {
        transformer: Some(additive),
        ..sources[0].clone()
    });
    // Cho et al.'s decoder without attention, and Luong's order with a GRU.
    for (cell, attention) in [
        (CellKind::Lstm, AttentionChoice::None),
        (CellKind::Gru, AttentionConfig::default().into()),
    ] {
        configs.push(CaptionConfig {
            recurrent: Some(RecurrentConfig {
                cell,
                encoder_layers: 0,
                attention,
                ..small()
            }),
            ..sources[1].clone()
        });
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
