//! Properties of every model and variant, with both kernels.

mod sources;
mod variants;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use attend_batch::{Packed, Source};
use attend_model::{
    AlignKind, AttentionChoice, KeptRows, Kernels, Loaded, ModelConfig, Packing, Pass, Place,
    Seq2Seq,
};
use candle_core::{Device, Result, Tensor};

use sources::{long_source, one_source, other_source, source, vocabularies};
use variants::configs;

/// Runs a test on every variant with both kernels.
fn each(test: impl Fn(&ModelConfig, &dyn Seq2Seq, Kernels) -> Result<()>) -> Result<()> {
    for config in &configs() {
        let vocabularies = vocabularies(config);
        config.validate_with(vocabularies).expect("a valid config");
        for kernels in Kernels::ALL {
            let model = config.build(vocabularies, 3, &Device::Cpu)?;
            let result = catch_unwind(AssertUnwindSafe(|| test(config, &*model, kernels)));
            match result {
                Ok(result) => result?,
                Err(_) => panic!("{kernels:?}, {config:?}"),
            }
        }
    }
    Ok(())
}

fn target() -> Packed {
    Packed::of_sentences([vec![3, 0], vec![7, 7, 13, 14, 0], vec![10, 2, 0]])
}

fn assert_close(a: &Tensor, b: &Tensor, tolerance: f32) -> Result<()> {
    assert_eq!(a.dims(), b.dims());
    let (a, b) = (
        a.flatten_all()?.to_vec1::<f32>()?,
        b.flatten_all()?.to_vec1::<f32>()?,
    );
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{a} and {b}");
    }
    Ok(())
}

#[test]
fn every_parameter_receives_a_gradient() -> Result<()> {
    each(|config, model, kernels| {
        // One pass may leave out a layer.
        let passes = if drops_layers(config) { 8 } else { 1 };
        for draw in 1..=passes {
            let pass = Pass::train(kernels, 1, draw);
            let memory = model.encode(&source(config), &pass)?;
            let output = model.decode(&memory, &target(), &pass)?;
            let loss = model.loss(&output, &target(), 0.1, &pass)?;
            loss.backward(1.0, model.weights().params())?;
            let mut params = model.weights().params();
            assert!(params.all(|param| param.gradient().is_some()));
        }
        for param in model.weights().params() {
            let gradient = param
                .gradient()
                .unwrap_or_else(|| panic!("{param:?} has no gradient"));
            let size = gradient.abs()?.max_all()?.to_scalar::<f32>()?;
            assert!(
                size > 0.0 || has_zero_gradient(param.name()),
                "{param:?} has a zero gradient"
            );
        }
        Ok(())
    })
}

fn drops_layers(config: &ModelConfig) -> bool {
    matches!(config, ModelConfig::Transformer(config) if config.layer_dropout > 0.0)
}

/// A key bias adds the same number to all scores of a query, which does not change their softmax.
fn has_zero_gradient(name: &str) -> bool {
    name.ends_with("k_proj.bias")
}

/// Gradients by parameter name.
type Gradients = BTreeMap<String, Option<Tensor>>;

#[test]
fn fused_and_composed_kernels_have_the_same_loss_and_gradients_with_dropout() -> Result<()> {
    for config in &configs() {
        let run = |kernels| -> Result<(f32, Gradients)> {
            let model = config.build(vocabularies(config), 3, &Device::Cpu)?;
            let pass = Pass::train(kernels, 1, 1);
            let memory = model.encode(&source(config), &pass)?;
            let output = model.decode(&memory, &target(), &pass)?;
            let loss = model.loss(&output, &target(), 0.1, &pass)?;
            let value = loss.smoothed()?;
            loss.backward(1.0, model.weights().params())?;
            let gradients = model.weights().params().map(|param| {
                let gradient = param.gradient().cloned();
                (param.name().to_string(), gradient)
            });
            Ok((value, gradients.collect()))
        };
        let (fused, composed) = (run(Kernels::Fused)?, run(Kernels::Composed)?);
        assert!(
            (fused.0 - composed.0).abs() < 1e-4,
            "{} and {}",
            fused.0,
            composed.0
        );
        assert!(fused.1.keys().eq(composed.1.keys()));
        for (name, fused) in &fused.1 {
            let (Some(fused), Some(composed)) = (fused, &composed.1[name]) else {
                panic!("{config:?}: {name} has no gradient with one of the kernels");
            };
            // Relative to the largest entry: that is how much the sums that cancel out have rounded.
            let scale = composed.abs()?.max_all()?.to_scalar::<f32>()?.max(1.0);
            assert_close(fused, composed, 2e-5 * scale)?;
        }
    }
    Ok(())
}

#[test]
fn gradients_of_the_parts_of_a_batch_sum_to_those_of_the_whole_with_dropout() -> Result<()> {
    each(|config, model, kernels| {
        let whole = config.build(vocabularies(config), 3, &Device::Cpu)?;
        let pass = Pass::train(kernels, 1, 1);
        let backward = |model: &dyn Seq2Seq, source: &Source, target: &Packed| -> Result<f32> {
            let memory = model.encode(source, &pass)?;
            let output = model.decode(&memory, target, &pass)?;
            let loss = model.loss(&output, target, 0.1, &pass)?;
            let value = loss.smoothed()?;
            loss.backward(1.0, model.weights().params())?;
            Ok(value)
        };
        let (source, target) = (source(config), target());
        let of_whole = backward(&*whole, &source, &target)?;
        let mut of_parts = 0.0;
        for part in [0..1, 1..3] {
            of_parts += backward(model, &source.part(part.clone()), &target.part(part))?;
        }
        assert!(
            (of_whole - of_parts).abs() < 1e-4,
            "{of_whole} and {of_parts}"
        );
        for (param, whole) in model.weights().params().zip(whole.weights().params()) {
            let (Some(parts), Some(whole)) = (param.gradient(), whole.gradient()) else {
                panic!("{param:?} has no gradient")
            };
            let scale = whole.abs()?.max_all()?.to_scalar::<f32>()?.max(1.0);
            assert_close(parts, whole, 2e-5 * scale)?;
        }
        Ok(())
    })
}

#[test]
fn a_sentence_does_not_depend_on_the_rest_of_its_batch() -> Result<()> {
    each(|config, model, kernels| {
        let pass = Pass::eval(kernels);
        let together = model.encode(&source(config), &pass)?;
        let hidden = model.decode(&together, &target(), &pass)?.hidden;
        let targets = target();
        let pairs = together.segments.ranges().zip(targets.segments.ranges());
        for (index, (s, t)) in pairs.enumerate() {
            let memory = model.encode(&one_source(config, index), &pass)?;
            assert_close(
                &memory.states,
                &together.states.narrow(0, s.start, s.len())?,
                1e-5,
            )?;
            let alone = Packed::of_sentences([&targets.ids[t.clone()]]);
            let states = model.decode(&memory, &alone, &pass)?.hidden;
            assert_close(&states, &hidden.narrow(0, t.start, t.len())?, 1e-5)?;
        }
        Ok(())
    })
}

#[test]
fn a_prediction_does_not_depend_on_later_target_tokens() -> Result<()> {
    each(|config, model, kernels| {
        let pass = Pass::eval(kernels);
        let memory = model.encode(&one_source(config, 0), &pass)?;
        let decode = |words: [u32; 5]| model.decode(&memory, &Packed::of_sentences([words]), &pass);
        let (a, b) = (decode([3, 4, 5, 6, 0])?, decode([3, 4, 9, 1, 0])?);
        let (a, b) = (a.hidden, b.hidden);
        // The inputs of the first three states are the start token and the first two tokens, which are equal.
        assert_close(&a.narrow(0, 0, 3)?, &b.narrow(0, 0, 3)?, 0.0)
    })
}

#[test]
fn stepping_with_a_cache_equals_teacher_forcing() -> Result<()> {
    each(|config, model, kernels| {
        let pass = Pass::eval(kernels);
        let memory = model.encode(&source(config), &pass)?;
        // Longer than the cache's initial capacity.
        let words: Vec<u32> = (0..40).map(|i| 2 + i % 17).collect();
        let target = Packed::of_sentences([&words, &words, &words]);
        let hidden = model.decode(&memory, &target, &pass)?.hidden;
        let mut state = model.start(&memory, 2, &pass)?;
        let inputs = target.shifted(model.start_token());
        for (position, &input) in inputs[..words.len()].iter().enumerate() {
            let logits = state.step(&[input; 6], None)?;
            for sentence in 0..3 {
                let row = hidden.narrow(0, sentence * words.len() + position, 1)?;
                let forced = logits_of(model, &row)?;
                for beam in [2 * sentence, 2 * sentence + 1] {
                    assert_close(&logits.narrow(0, beam, 1)?, &forced, 1e-5)?;
                }
            }
        }
        Ok(())
    })
}

/// The logits of hidden states, computed with candle's matmul.
fn logits_of(model: &dyn Seq2Seq, hidden: &Tensor) -> Result<Tensor> {
    let names = ["lm_head", "model.shared", "model.decoder.embed_tokens"];
    let tables = names.map(|name| model.weights().get(&format!("{name}.weight")));
    let table = tables
        .into_iter()
        .flatten()
        .next()
        .expect("an output matrix");
    hidden.matmul(&table.value().narrow(0, 0, 19)?.t()?)
}

#[test]
fn selecting_rows_of_a_state_equals_decoding_only_those_rows() -> Result<()> {
    each(|config, model, kernels| {
        let pass = Pass::eval(kernels);
        let memory = model.encode(&source(config), &pass)?;
        let mut state = model.start(&memory, 2, &pass)?;
        let start = model.start_token();
        state.step(&[start; 6], None)?;
        state.step(&[2, 3, 4, 5, 6, 7], None)?;
        // Sentence 1 has ended; the rows of sentence 0 are swapped, one row of sentence 2 is kept twice.
        state.select(&[
            KeptRows {
                sentence: 0,
                rows: vec![1, 0],
            },
            KeptRows {
                sentence: 2,
                rows: vec![5, 5],
            },
        ])?;
        assert_eq!(state.rows(), 4);
        let selected = state.step(&[8, 9, 10, 11], None)?;
        for (row, (sentence, words)) in [(0, [3, 8]), (0, [2, 9]), (2, [7, 10]), (2, [7, 11])]
            .into_iter()
            .enumerate()
        {
            let memory = model.encode(&one_source(config, sentence), &pass)?;
            let mut state = model.start(&memory, 1, &pass)?;
            state.step(&[start], None)?;
            state.step(&words[..1], None)?;
            let logits = state.step(&words[1..], None)?;
            assert_close(&selected.narrow(0, row, 1)?, &logits, 1e-5)?;
        }
        Ok(())
    })
}

#[test]
fn cross_attention_maps_of_a_step_equal_those_of_teacher_forcing() -> Result<()> {
    each(|config, model, kernels| {
        let pass = Pass::eval(kernels);
        for (index, words) in target().iter().enumerate() {
            let source = one_source(config, index);
            let target = Packed::of_sentences([words]);
            let mut forced = model.attention(&source, &target, kernels)?;
            forced.retain(|map| map.place == Place::Cross);
            let mut state = model.start(&model.encode(&source, &pass)?, 1, &pass)?;
            let mut without_maps = model.start(&model.encode(&source, &pass)?, 1, &pass)?;
            for (position, &input) in target.shifted(model.start_token()).iter().enumerate() {
                let mut maps = Vec::new();
                let logits = state.step(&[input], Some(&mut maps))?;
                assert_close(&logits, &without_maps.step(&[input], None)?, 1e-5)?;
                assert_eq!(maps.len(), forced.len());
                for (map, forced) in maps.iter().zip(&forced) {
                    assert_eq!((map.layer, map.head), (forced.layer, forced.head));
                    let row = forced.weights.narrow(0, position, 1)?;
                    assert_close(&map.weights, &row, 1e-5)?;
                }
            }
        }
        Ok(())
    })
}

#[test]
fn a_source_of_another_kind_is_an_error_that_names_it() -> Result<()> {
    each(|config, model, kernels| {
        for (source, name) in other_source(config) {
            let error = model.encode(&source, &Pass::eval(kernels)).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
        Ok(())
    })
}

#[test]
fn initial_values_depend_only_on_the_seed_and_padding_is_zero() -> Result<()> {
    for config in &configs() {
        let model = |seed| config.build(vocabularies(config), seed, &Device::Cpu);
        let (a, same, other) = (model(3)?, model(3)?, model(4)?);
        let mut differs = false;
        for param in a.weights().params() {
            let twin = |m: &dyn Seq2Seq| m.weights().get(param.name()).unwrap().value().clone();
            assert_close(param.value(), &twin(&*same), 0.0)?;
            let distance = (param.value() - twin(&*other))?.abs()?.max_all()?;
            differs |= distance.to_scalar::<f32>()? > 0.0;
            if param.name().contains("embed_tokens") || param.name().contains("shared") {
                let padding = param.value().get(19)?.abs()?.max_all()?;
                assert_eq!(padding.to_scalar::<f32>()?, 0.0);
            }
        }
        assert!(differs);
    }
    Ok(())
}

#[test]
fn the_base_model_has_44_138_496_parameters_and_512_per_vocabulary_entry() -> Result<()> {
    let vocabularies = attend_model::Vocabularies {
        source: Some(100),
        target: 100,
        joint: true,
    };
    let model = ModelConfig::default().build(vocabularies, 1, &Device::Cpu)?;
    assert_eq!(model.weights().count(), 44_138_496 + 512 * 100);
    Ok(())
}

/// The logits of some steps, with rows that come and go where the model allows it.
fn steps(config: &ModelConfig, model: &dyn Seq2Seq, pass: &Pass) -> Result<Vec<u32>> {
    let mut state = model.start(&model.encode(&source(config), pass)?, 2, pass)?;
    let mut bits = Vec::new();
    let mut step = |state: &mut dyn attend_model::DecoderState, last: &[u32]| -> Result<()> {
        let logits = state.step(last, None)?.flatten_all()?.to_vec1::<f32>()?;
        bits.extend(logits.into_iter().map(f32::to_bits));
        Ok(())
    };
    step(&mut *state, &[model.start_token(); 6])?;
    step(&mut *state, &[2, 3, 4, 5, 6, 7])?;
    let rows = vec![3, 3, 2];
    state.select(&[KeptRows { sentence: 1, rows }])?;
    step(&mut *state, &[8, 9, 1])?;
    if model.admits(pass) {
        state.admit(&model.encode(&one_source(config, 2), pass)?)?;
        step(&mut *state, &[3, 2, 1, model.start_token()])?;
    }
    Ok(bits)
}

#[test]
fn a_packed_model_gives_the_bits_of_the_trained_one() -> Result<()> {
    let mut packed = 0;
    for config in configs().iter().filter(|config| config.can_pack()) {
        let trained = config.build(vocabularies(config), 3, &Device::Cpu)?;
        let tensor = |name: &str| trained.weights().get(name).unwrap().value().detach();
        let model = config.load_packed(vocabularies(config), Packing::Float, &mut |name| {
            Ok(Loaded::Tensor(tensor(name)))
        })?;
        assert_eq!(model.weights().count(), trained.weights().count());
        let pass = Pass::eval(Kernels::Fused);
        assert!(
            steps(config, &*model, &pass)? == steps(config, &*trained, &pass)?,
            "{config:?}"
        );
        let hidden = |model: &dyn Seq2Seq| -> Result<Tensor> {
            let memory = model.encode(&source(config), &pass)?;
            Ok(model.decode(&memory, &target(), &pass)?.hidden)
        };
        assert_close(&hidden(&*model)?, &hidden(&*trained)?, 0.0)?;
        packed += 1;
    }
    assert!(packed > 1);
    Ok(())
}

#[test]
fn a_model_in_8_bits_is_close_to_the_trained_one() -> Result<()> {
    for config in configs().iter().filter(|config| config.can_pack()) {
        let trained = config.build(vocabularies(config), 3, &Device::Cpu)?;
        let tensor = |name: &str| trained.weights().get(name).unwrap().value().detach();
        let model = config.load_packed(vocabularies(config), Packing::Int8, &mut |name| {
            Ok(Loaded::Tensor(tensor(name)))
        })?;
        let pass = Pass::eval(Kernels::Fused);
        let (exact, close) = (
            steps(config, &*trained, &pass)?,
            steps(config, &*model, &pass)?,
        );
        let (mut errors, mut squares) = (0.0, 0.0);
        for (exact, close) in exact.into_iter().zip(close) {
            let (exact, close) = (f32::from_bits(exact), f32::from_bits(close));
            errors += (exact - close).powi(2);
            squares += exact.powi(2);
        }
        assert!(errors < 1e-3 * squares, "{errors} of {squares}: {config:?}");
    }
    Ok(())
}

#[test]
fn sentences_can_join_others_that_are_being_translated() -> Result<()> {
    each(|config, model, kernels| {
        let pass = Pass::eval(kernels);
        let mut state = model.start(&model.encode(&one_source(config, 0), &pass)?, 1, &pass)?;
        let start = model.start_token();
        state.step(&[start], None)?;
        let memory = model.encode(&one_source(config, 2), &pass)?;
        let admitted = state.admit(&memory);
        assert_eq!(admitted.is_ok(), model.admits(&pass));
        if admitted.is_err() {
            assert_eq!(state.rows(), 1);
            return Ok(());
        }
        let together = [state.step(&[5, start], None)?, state.step(&[6, 7], None)?];
        let mut alone = model.start(&model.encode(&one_source(config, 2), &pass)?, 1, &pass)?;
        for (together, last) in together.iter().zip([start, 7]) {
            assert_close(&together.narrow(0, 1, 1)?, &alone.step(&[last], None)?, 0.0)?;
        }
        Ok(())
    })
}

#[test]
fn a_loaded_model_computes_what_the_trained_one_does_and_has_no_parameters() -> Result<()> {
    for config in &configs() {
        let trained = config.build(vocabularies(config), 3, &Device::Cpu)?;
        let tensor = |name: &str| trained.weights().get(name).unwrap().value().detach();
        let loaded = config.load(vocabularies(config), &Device::Cpu, &mut |name| {
            Ok(tensor(name))
        })?;
        assert_eq!(loaded.weights().params().count(), 0);
        for weight in loaded.weights().iter() {
            let id = trained.weights().get(weight.name()).unwrap().value().id();
            assert_ne!(
                weight.value().id(),
                id,
                "it is a tensor of its own, not a variable"
            );
        }
        for kernels in Kernels::ALL {
            let pass = Pass::eval(kernels);
            let hidden = |model: &dyn Seq2Seq| -> Result<Tensor> {
                let memory = model.encode(&source(config), &pass)?;
                Ok(model.decode(&memory, &target(), &pass)?.hidden)
            };
            assert_close(&hidden(&*loaded)?, &hidden(&*trained)?, 0.0)?;
        }
    }
    Ok(())
}

#[test]
fn frozen_weights_have_no_gradient_and_do_not_change_those_of_the_others() -> Result<()> {
    for (number, config) in configs().iter().enumerate() {
        let whole = config.build(vocabularies(config), 3, &Device::Cpu)?;
        let tensor = |name: &str| whole.weights().get(name).unwrap().value().detach();
        for kernels in Kernels::ALL {
            let pass = Pass::train(kernels, 1, 1);
            let gradients = |model: &dyn Seq2Seq| -> Result<Gradients> {
                model.weights().params().for_each(|param| param.clear());
                let memory = model.encode(&source(config), &pass)?;
                let output = model.decode(&memory, &target(), &pass)?;
                let loss = model.loss(&output, &target(), 0.1, &pass)?;
                loss.backward(1.0, model.weights().params())?;
                let params = model.weights().params();
                Ok(params
                    .map(|p| (p.name().to_string(), p.gradient().cloned()))
                    .collect())
            };
            let expected = gradients(&*whole)?;
            // All but one, another one for every variant.
            let every = expected.len() / 3;
            for trained in expected.keys().skip(number % every).step_by(every) {
                let frozen = |name: &str| name != trained;
                let load = &mut |name: &str| Ok(tensor(name));
                let model = config.build_from(vocabularies(config), &Device::Cpu, load, &frozen)?;
                let found = gradients(&*model)?;
                assert_eq!(found.keys().collect::<Vec<_>>(), [trained]);
                let [found, expected] = [&found, &expected].map(|all| all[trained].as_ref());
                assert_close(found.expect("a gradient"), expected.unwrap(), 0.0)
                    .map_err(|e| e.context(format!("{config:?}: {trained}")))?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_footprint_counts_the_weights_that_a_model_then_has() -> Result<()> {
    for config in &configs() {
        let footprint = config.footprint(vocabularies(config))?;
        let model = config.build(vocabularies(config), 3, &Device::Cpu)?;
        assert_eq!(footprint.weights, model.weights().count());
        let shapes = config.weight_shapes(vocabularies(config))?;
        for weight in model.weights().iter() {
            assert_eq!(shapes[weight.name()], weight.value().dims());
        }
        assert_eq!(shapes.len(), model.weights().iter().count());
    }
    Ok(())
}

#[test]
fn loading_missing_unknown_or_misshapen_tensors_is_an_error() -> Result<()> {
    let config = &configs()[0];
    let model = config.build(vocabularies(config), 3, &Device::Cpu)?;
    let tensors = || -> std::collections::HashMap<String, Tensor> {
        let params = model.weights().params();
        params
            .map(|p| (p.name().to_string(), p.value().detach()))
            .collect()
    };
    let name = "model.shared.weight";
    let mut missing = tensors();
    missing.remove(name);
    let mut unknown = tensors();
    unknown.insert("model.extra".into(), unknown[name].clone());
    let mut shape = tensors();
    shape.insert(name.into(), shape[name].narrow(0, 0, 3)?);
    for (tensors, message) in [
        (missing, "tensor `model.shared.weight` is missing"),
        (
            unknown,
            "tensor `model.extra` belongs to no weight of the model",
        ),
        (
            shape,
            "tensor `model.shared.weight` has shape [3, 12] where the model has [20, 12]",
        ),
    ] {
        assert_eq!(
            model.weights().load(&tensors).unwrap_err().to_string(),
            message
        );
    }
    Ok(())
}

#[test]
fn gradients_of_a_sentence_of_2048_tokens_are_finite() {
    // The gradient of a predicted window's centre has the sentence length as a factor. If the context is an
    // input of a step, the factor applies at every step, and over this many steps the gradient overflows.
    let is_stable = |config: &ModelConfig| match config {
        ModelConfig::Recurrent(config) => match &config.attention {
            AttentionChoice::Some(attention) => attention.align != AlignKind::LocalP,
            AttentionChoice::None => true,
        },
        _ => true,
    };
    let some_of_each_family = configs().into_iter().filter(is_stable).step_by(7);
    // The stack size of the programs' threads: candle's backward recurses along the sentence.
    let stack = std::thread::Builder::new().stack_size(64 << 20);
    let work = stack.spawn(|| {
        for config in some_of_each_family {
            check_long_sentence(&config).expect("a step");
        }
    });
    work.expect("a thread").join().expect("every model trains");
}

fn check_long_sentence(config: &ModelConfig) -> Result<()> {
    let ids = (0..2047).map(|i| 1 + i % 5).chain([0]);
    let source = long_source(config, 2048);
    let target = Packed::of_sentences([ids.collect::<Vec<u32>>()]);
    let model = config.build(vocabularies(config), 3, &Device::Cpu)?;
    let pass = Pass::train(Kernels::Fused, 1, 1);
    let memory = model.encode(&source, &pass)?;
    let output = model.decode(&memory, &target, &pass)?;
    let loss = model.loss(&output, &target, 0.1, &pass)?;
    assert!(loss.smoothed()?.is_finite());
    loss.backward(1.0 / 2048.0, model.weights().params())?;
    for param in model.weights().params() {
        let gradient = param.gradient().expect("a gradient");
        let norm = gradient.sqr()?.sum_all()?.to_scalar::<f32>()?;
        assert!(norm.is_finite(), "{config:?}: {param:?}");
    }
    Ok(())
}
