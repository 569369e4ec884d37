//! Compares gradients with finite differences of the loss, for every score, alignment and context except hard
//! ones, and for attention to the own past. Those sample, and are tested in `src/recurrent/expectation.rs`.

use attend_batch::{Packed, Pictures, Source, SourceShape};
use attend_model::{
    Activation, AlignKind, AttentionChoice, AttentionConfig, BlockConfig, CaptionConfig, CellKind,
    Consistency, ContextSteps, Cut, DeviationKind, FusionKind, Kernels, LstmnConfig, ModelConfig,
    Pass, PictureConfig, RecurrentConfig, ScoreActivation, ScoreKind, Scores, Seq2Seq,
    SharpnessKind, SnailConfig, Tie, TransformerConfig, Vocabularies, Words,
};
use candle_core::{Device, Result, Tensor};

fn vocabularies(config: &ModelConfig) -> Vocabularies {
    let text = config.source() == SourceShape::Text;
    Vocabularies {
        source: text.then_some(9),
        target: 8,
        joint: false,
    }
}

/// Two sources.
fn source(config: &ModelConfig) -> Source {
    match config.source() {
        SourceShape::Pictures(shape) => {
            let values = (0..2 * shape.values()).map(|i| (i as f32 * 1.3).sin());
            Source::Pictures(Pictures::new(values.collect(), shape))
        }
        _ => Packed::of_sentences([vec![5, 6, 7, 3, 0], vec![4, 0]]).into(),
    }
}

fn recurrent(attention: AttentionConfig) -> ModelConfig {
    ModelConfig::Recurrent(RecurrentConfig {
        d_embed: 5,
        d_hidden: 6,
        dropout: 0.0,
        tie: Tie::None,
        attention: AttentionChoice::Some(attention),
        ..RecurrentConfig::default()
    })
}

fn transformer(score: ScoreKind) -> TransformerConfig {
    TransformerConfig {
        encoder_layers: 1,
        decoder_layers: 1,
        d_model: 6,
        heads: 2,
        d_ff: 5,
        dropout: 0.0,
        attention_dropout: 0.0,
        activation_dropout: 0.0,
        tie: Tie::None,
        score: Scores(vec![score]),
        ..TransformerConfig::default()
    }
}

/// The loss with its penalties. `backward` adds the gradients to the parameters' buffers.
fn objective(config: &ModelConfig, model: &dyn Seq2Seq, backward: bool) -> Result<f64> {
    let source = source(config);
    let target = Packed::of_sentences([vec![3, 2, 0], vec![6, 6, 5, 0]]);
    let pass = Pass::train(Kernels::Fused, 1, 1);
    let memory = model.encode(&source, &pass)?;
    let output = model.decode(&memory, &target, &pass)?;
    let loss = model.loss(&output, &target, 0.1, &pass)?;
    // Summed in 64 bits, which is more precise than the sum in 32 bits.
    let each: f64 = loss.each.iter().map(|&loss| f64::from(loss)).sum();
    let sum = each + f64::from(loss.extra()?);
    if backward {
        loss.backward(1.0, model.weights().params())?;
    }
    Ok(sum)
}

/// The loss of two passes, of which the second lacks elements of the embeddings, with every term.
fn of_two_passes(config: &ModelConfig, model: &dyn Seq2Seq, backward: bool) -> Result<f64> {
    let source = source(config);
    let target = Packed::of_sentences([vec![3, 2, 0], vec![6, 6, 5, 0]]);
    let first = Pass::train(Kernels::Fused, 1, 1);
    let second = first.twin().without(Words {
        dropped: 0.1,
        cut: Some(Cut::Elements(0.3)),
    });
    let decode = |pass: &Pass| model.decode(&model.encode(&source, pass)?, &target, pass);
    let outputs = [decode(&first)?, decode(&second)?];
    let terms = Consistency {
        losses: [0.7, 0.4],
        divergences: [1.5, 0.8],
        first_is_fixed: false,
    };
    let loss = model.consistent_loss(outputs.each_ref(), &target, 0.1, terms, &first)?;
    let sum = f64::from(loss.smoothed()?) + f64::from(loss.extra()?);
    assert!(
        loss.divergence > 1e-6,
        "the passes differ by {}",
        loss.divergence
    );
    if backward {
        loss.backward(1.0, model.weights().params())?;
    }
    Ok(sum)
}

/// Sets parameters large enough that every non-linearity matters.
fn spread(model: &dyn Seq2Seq) -> Result<()> {
    for (n, param) in model.weights().params().enumerate() {
        let value = param.value();
        let count = value.elem_count();
        let noise: Vec<f32> = (0..count)
            .map(|i| 0.7 * ((i * 37 + n * 11) as f32 * 0.61).sin())
            .collect();
        let noise = Tensor::from_vec(noise, value.shape(), value.device())?;
        param.set(&(value.detach() * 0.3)?.add(&noise)?)?;
    }
    Ok(())
}

/// Checks the fused kernels. `invariants` compares them with the composed ones.
fn check(config: &ModelConfig) -> Result<()> {
    check_of(config, 5e-3, objective)
}

/// The same for another objective.
fn check_of(
    config: &ModelConfig,
    tolerance: f32,
    objective: impl Fn(&ModelConfig, &dyn Seq2Seq, bool) -> Result<f64>,
) -> Result<()> {
    let model = config.build(vocabularies(config), 3, &Device::Cpu)?;
    spread(&*model)?;
    objective(config, &*model, true)?;
    for param in model.weights().params() {
        // ReLU and pooling have no slope where they change sides: with a small step, few cells do.
        let step = match param.name().contains(".blocks.") {
            true => 2e-3,
            false => 1e-2,
        };
        let gradient = param.gradient().expect("a gradient").flatten_all()?;
        let gradient = gradient.to_vec1::<f32>()?;
        // Below 0.1, rounding errors of 32 bits are larger than the gradient.
        let scale = gradient.iter().fold(0.1f32, |scale, g| scale.max(g.abs()));
        let value = param.value().copy()?;
        let flat = value.flatten_all()?.to_vec1::<f32>()?;
        let at = |index: usize, step: f32| -> Result<f64> {
            let mut moved = flat.clone();
            moved[index] += step;
            param.set(&Tensor::from_vec(moved, value.shape(), value.device())?)?;
            objective(config, &*model, false)
        };
        for index in (0..flat.len()).step_by(flat.len().div_ceil(4)) {
            let slope = (at(index, step)? - at(index, -step)?) / f64::from(2.0 * step);
            let error = (slope as f32 - gradient[index]).abs() / scale;
            assert!(
                error < tolerance,
                "{param:?}[{index}] of {config:?}: {}, but finite differences are {slope}",
                gradient[index]
            );
        }
        param.set(&value)?;
    }
    Ok(())
}

#[test]
fn gradients_of_every_score_and_alignment_equal_finite_differences() -> Result<()> {
    for score in ScoreKind::ALL {
        for align in AlignKind::ALL {
            for order in [AttentionConfig::bahdanau(), AttentionConfig::default()] {
                check(&recurrent(AttentionConfig {
                    score: Some(score),
                    align,
                    window: (align != AlignKind::Global).then_some(2),
                    ..order
                }))?;
            }
        }
    }
    Ok(())
}

#[test]
fn gradients_of_the_variants_of_scores_and_windows_equal_finite_differences() -> Result<()> {
    for order in [AttentionConfig::bahdanau(), AttentionConfig::default()] {
        // With these values, no input of ReLU is at its kink.
        for activation in ScoreActivation::ALL {
            check(&recurrent(AttentionConfig {
                score: Some(ScoreKind::Additive),
                activation: Some(activation),
                ..order.clone()
            }))?;
        }
        for sharpness in SharpnessKind::ALL {
            check(&recurrent(AttentionConfig {
                score: Some(ScoreKind::Cosine),
                sharpness: Some(sharpness),
                ..order.clone()
            }))?;
        }
        for deviation in DeviationKind::ALL {
            check(&recurrent(AttentionConfig {
                align: AlignKind::LocalP,
                window: Some(2),
                deviation: Some(deviation),
                ..order.clone()
            }))?;
        }
    }
    Ok(())
}

#[test]
fn gradients_through_a_summary_at_every_step_equal_finite_differences() -> Result<()> {
    for cell in [CellKind::Gru, CellKind::Lstm] {
        for layers in [1, 2] {
            check(&ModelConfig::Recurrent(RecurrentConfig {
                cell,
                encoder_layers: layers,
                decoder_layers: layers,
                d_embed: 5,
                d_hidden: 6,
                dropout: 0.0,
                tie: Tie::None,
                attention: AttentionChoice::None,
                context: ContextSteps::Every,
                ..RecurrentConfig::default()
            }))?;
        }
    }
    Ok(())
}

#[test]
fn gradients_of_the_gate_and_the_doubly_stochastic_penalty_equal_finite_differences() -> Result<()>
{
    for order in [AttentionConfig::bahdanau(), AttentionConfig::default()] {
        check(&recurrent(AttentionConfig {
            gate: true,
            doubly_stochastic: 0.8,
            ..order
        }))?;
    }
    Ok(())
}

#[test]
fn gradients_of_a_transformer_with_every_score_equal_finite_differences() -> Result<()> {
    let scores = ScoreKind::ALL.into_iter();
    for score in scores.filter(|score| score.compares()) {
        check(&ModelConfig::Transformer(transformer(score)))?;
    }
    Ok(())
}

#[test]
fn gradients_of_an_output_bias_equal_finite_differences() -> Result<()> {
    check(&ModelConfig::Transformer(TransformerConfig {
        output_bias: true,
        ..transformer(ScoreKind::ScaledDot)
    }))
}

#[test]
fn gradients_of_both_fusions_of_an_lstmn_equal_finite_differences() -> Result<()> {
    for fusion in FusionKind::ALL {
        for layers in [1, 2] {
            check(&ModelConfig::Lstmn(LstmnConfig {
                encoder_layers: layers,
                decoder_layers: layers,
                d_embed: 5,
                d_hidden: 6,
                fusion,
                dropout: 0.0,
                tie: Tie::None,
            }))?;
        }
    }
    Ok(())
}

#[test]
fn the_centre_and_the_width_of_a_predicted_window_receive_gradients() -> Result<()> {
    let config = recurrent(AttentionConfig {
        align: AlignKind::LocalP,
        window: Some(2),
        deviation: Some(DeviationKind::Learned),
        ..AttentionConfig::default()
    });
    let config = &config;
    let model = config.build(vocabularies(config), 3, &Device::Cpu)?;
    objective(config, &*model, true)?;
    for name in ["inner.weight", "vector", "width"] {
        let param = model
            .weights()
            .get(&format!("model.decoder.attention.align.{name}"));
        let param = param.and_then(|weight| weight.param());
        let gradient = param.expect("a parameter").gradient().expect("a gradient");
        let size = gradient.abs()?.max_all()?.to_scalar::<f32>()?;
        assert!(size > 1e-4, "{name}: {size}");
    }
    Ok(())
}

/// With a recurrent decoder and with a Transformer's.
fn captioning() -> [ModelConfig; 2] {
    let ModelConfig::Recurrent(recurrent) = recurrent(AttentionConfig {
        gate: true,
        doubly_stochastic: 0.8,
        ..AttentionConfig::bahdanau()
    }) else {
        panic!("a recurrent model");
    };
    let picture = PictureConfig {
        height: 5,
        width: 6,
        grey: false,
    };
    let block = |width, pool| BlockConfig {
        width,
        convolutions: 1,
        pool,
    };
    let blocks = CaptionConfig {
        picture: Some(picture),
        blocks: vec![block(5, 2), block(4, 1)],
        ..CaptionConfig::default()
    };
    let recurrent = RecurrentConfig {
        encoder_layers: 0,
        d_hidden: 8,
        ..recurrent
    };
    let transformer = TransformerConfig {
        d_model: 8,
        activation: Activation::Gelu, // has a slope everywhere
        ..transformer(ScoreKind::ScaledDot)
    };
    [
        ModelConfig::Caption(CaptionConfig {
            recurrent: Some(recurrent),
            ..blocks.clone()
        }),
        ModelConfig::Caption(CaptionConfig {
            transformer: Some(transformer),
            ..blocks
        }),
    ]
}

#[test]
fn gradients_of_captioning_models_equal_finite_differences() -> Result<()> {
    captioning().iter().try_for_each(check)
}

#[test]
fn gradients_of_two_passes_equal_finite_differences_for_every_family() -> Result<()> {
    let captions = captioning();
    let families = [
        ModelConfig::Transformer(TransformerConfig {
            activation: Activation::Gelu,
            ..transformer(ScoreKind::ScaledDot)
        }),
        recurrent(AttentionConfig {
            doubly_stochastic: 0.8,
            ..AttentionConfig::default()
        }),
        ModelConfig::Snail(SnailConfig {
            blocks: 1,
            d_model: 6,
            filters: 4,
            span: 8,
            d_key: 4,
            d_value: 4,
            dropout: 0.0,
            tie: Tie::None,
        }),
        ModelConfig::Lstmn(LstmnConfig {
            encoder_layers: 1,
            decoder_layers: 1,
            d_embed: 5,
            d_hidden: 6,
            fusion: FusionKind::Deep,
            dropout: 0.0,
            tie: Tie::None,
        }),
    ];
    let mut all = families.iter().chain(&captions);
    // The sum of their losses has 32 bits.
    all.try_for_each(|config| check_of(config, 1e-2, of_two_passes))
}
