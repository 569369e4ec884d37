//! What holds for every model and variant, on both paths.

mod variants;

use std::panic::{AssertUnwindSafe, catch_unwind};

use attend_model::{
    AlignKind, AttentionChoice, ModelConfig, Packed, Pass, Path, Seq2Seq, Vocabularies,
};
use candle_core::{Device, Result, Tensor};

use variants::configs;

const VOCABULARIES: Vocabularies = Vocabularies {
    source: 20,
    target: 20,
    joint: true,
};

/// Runs a test on every variant and path.
fn each(test: impl Fn(&dyn Seq2Seq, Path) -> Result<()>) -> Result<()> {
    for config in configs() {
        config.validate_with(VOCABULARIES).expect("a valid config");
        for path in Path::ALL {
            let model = config.build(VOCABULARIES, 3, &Device::Cpu)?;
            let result = catch_unwind(AssertUnwindSafe(|| test(&*model, path)));
            match result {
                Ok(result) => result?,
                Err(_) => panic!("{path:?}, {config:?}"),
            }
        }
    }
    Ok(())
}

fn source() -> Packed {
    Packed::of_sentences(&[vec![5, 6, 7, 0], vec![9, 0], vec![4, 8, 11, 12, 3, 2, 0]])
}

fn target() -> Packed {
    Packed::of_sentences(&[vec![3, 0], vec![7, 7, 13, 14, 0], vec![10, 2, 0]])
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
    each(|model, path| {
        let pass = Pass::train(path, 1, 1);
        let memory = model.encode(&source(), &pass)?;
        let output = model.decode(&memory, &target(), &pass)?;
        let loss = model.loss(&output, &target(), 0.1, &pass)?;
        loss.backward(1.0, model.params().iter())?;
        for param in model.params().iter() {
            let gradient = param
                .gradient()
                .unwrap_or_else(|| panic!("{param:?} got none"));
            let size = gradient.abs()?.max_all()?.to_scalar::<f32>()?;
            assert!(size > 0.0 || unseen(param), "{param:?} got zeros");
        }
        Ok(())
    })
}

/// What moves all scores of a query alike is not seen by a softmax.
fn unseen(param: &attend_model::Param) -> bool {
    param.name().ends_with("k_proj.bias")
}

#[test]
fn fused_and_composed_models_have_the_same_loss_and_gradients_with_dropout_on() -> Result<()> {
    for config in configs() {
        let run = |path| -> Result<(f32, Vec<Tensor>)> {
            let model = config.build(VOCABULARIES, 3, &Device::Cpu)?;
            let pass = Pass::train(path, 1, 1);
            let memory = model.encode(&source(), &pass)?;
            let output = model.decode(&memory, &target(), &pass)?;
            let loss = model.loss(&output, &target(), 0.1, &pass)?;
            let value = loss.smoothed()?;
            loss.backward(1.0, model.params().iter())?;
            let gradients = model.params().iter().filter_map(|p| p.gradient().cloned());
            Ok((value, gradients.collect()))
        };
        let (fused, composed) = (run(Path::Fused)?, run(Path::Composed)?);
        assert!(
            (fused.0 - composed.0).abs() < 1e-4,
            "{} and {}",
            fused.0,
            composed.0
        );
        for (fused, composed) in fused.1.iter().zip(&composed.1) {
            assert_close(fused, composed, 2e-5)?;
        }
    }
    Ok(())
}

#[test]
fn a_sentence_does_not_depend_on_its_batch_mates() -> Result<()> {
    each(|model, path| {
        let pass = Pass::eval(path);
        let together = model.encode(&source(), &pass)?;
        let hidden = model.decode(&together, &target(), &pass)?.hidden;
        let (sources, targets) = (source(), target());
        for (s, t) in sources.segments.ranges().zip(targets.segments.ranges()) {
            let alone = Packed::of_sentences(&[&sources.ids[s.clone()]]);
            let memory = model.encode(&alone, &pass)?;
            assert_close(
                &memory.states,
                &together.states.narrow(0, s.start, s.len())?,
                1e-5,
            )?;
            let alone = Packed::of_sentences(&[&targets.ids[t.clone()]]);
            let states = model.decode(&memory, &alone, &pass)?.hidden;
            assert_close(&states, &hidden.narrow(0, t.start, t.len())?, 1e-5)?;
        }
        Ok(())
    })
}

#[test]
fn a_prediction_does_not_see_the_words_that_come_after_it() -> Result<()> {
    each(|model, path| {
        let pass = Pass::eval(path);
        let memory = model.encode(&Packed::of_sentences(&[[5, 6, 0]]), &pass)?;
        let decode =
            |words: [u32; 5]| model.decode(&memory, &Packed::of_sentences(&[words]), &pass);
        let (clean, dirty) = (decode([3, 4, 5, 6, 0])?, decode([3, 4, 9, 1, 0])?);
        let (clean, dirty) = (clean.hidden, dirty.hidden);
        // The third state reads the start and the first two words, which are the same.
        assert_close(&clean.narrow(0, 0, 3)?, &dirty.narrow(0, 0, 3)?, 0.0)
    })
}

#[test]
fn stepping_with_a_cache_equals_teacher_forcing() -> Result<()> {
    each(|model, path| {
        let pass = Pass::eval(path);
        let memory = model.encode(&source(), &pass)?;
        // Longer than the cache's first room.
        let words: Vec<u32> = (0..40).map(|i| 2 + i % 17).collect();
        let target = Packed::of_sentences(&[&words, &words, &words]);
        let hidden = model.decode(&memory, &target, &pass)?.hidden;
        let mut state = model.start(&memory, 2, &pass)?;
        let inputs = target.shifted(model.start_token());
        for (position, &input) in inputs[..words.len()].iter().enumerate() {
            let logits = model.step(&mut state, &[input; 6], &pass)?;
            for sentence in 0..3 {
                let row = hidden.narrow(0, sentence * words.len() + position, 1)?;
                let forced = words_of(model, &row)?;
                for beam in [2 * sentence, 2 * sentence + 1] {
                    assert_close(&logits.narrow(0, beam, 1)?, &forced, 1e-5)?;
                }
            }
        }
        Ok(())
    })
}

/// The logits of hidden states, by the definition.
fn words_of(model: &dyn Seq2Seq, hidden: &Tensor) -> Result<Tensor> {
    let names = ["lm_head", "model.shared", "model.decoder.embed_tokens"];
    let tables = names.map(|name| model.params().get(&format!("{name}.weight")));
    let table = tables
        .into_iter()
        .flatten()
        .next()
        .expect("an output matrix");
    hidden.matmul(&table.value().narrow(0, 0, 19)?.t()?)
}

#[test]
fn selecting_rows_of_a_state_equals_having_decoded_those_rows() -> Result<()> {
    each(|model, path| {
        let pass = Pass::eval(path);
        let memory = model.encode(&source(), &pass)?;
        let mut state = model.start(&memory, 2, &pass)?;
        let start = model.start_token();
        model.step(&mut state, &[start; 6], &pass)?;
        model.step(&mut state, &[2, 3, 4, 5, 6, 7], &pass)?;
        // Sentence 1 is over; rows of the others swap and double.
        state.select(&[(0, vec![1, 0]), (2, vec![5, 5])])?;
        let selected = model.step(&mut state, &[8, 9, 10, 11], &pass)?;
        for (row, (sentence, words)) in [(0, [3, 8]), (0, [2, 9]), (2, [7, 10]), (2, [7, 11])]
            .into_iter()
            .enumerate()
        {
            let range = source().segments.range(sentence);
            let alone = Packed::of_sentences(&[&source().ids[range]]);
            let memory = model.encode(&alone, &pass)?;
            let mut state = model.start(&memory, 1, &pass)?;
            model.step(&mut state, &[start], &pass)?;
            model.step(&mut state, &words[..1], &pass)?;
            let logits = model.step(&mut state, &words[1..], &pass)?;
            assert_close(&selected.narrow(0, row, 1)?, &logits, 1e-5)?;
        }
        Ok(())
    })
}

#[test]
fn initial_values_are_a_function_of_the_seed_and_padding_starts_at_zero() -> Result<()> {
    for config in configs() {
        let model = |seed| config.build(VOCABULARIES, seed, &Device::Cpu);
        let (a, same, other) = (model(3)?, model(3)?, model(4)?);
        let mut differs = false;
        for param in a.params().iter() {
            let twin = |m: &dyn Seq2Seq| m.params().get(param.name()).unwrap().value().clone();
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
fn the_base_model_has_as_many_parameters_as_the_paper_says() -> Result<()> {
    let vocabularies = Vocabularies {
        source: 100,
        target: 100,
        joint: true,
    };
    let model = ModelConfig::default().build(vocabularies, 1, &Device::Cpu)?;
    assert_eq!(model.params().count(), 44_138_496 + 512 * 100);
    Ok(())
}

#[test]
fn tensors_that_do_not_fit_are_refused_by_name_and_change_nothing() -> Result<()> {
    let model = configs()[0].build(VOCABULARIES, 3, &Device::Cpu)?;
    let tensors = || -> std::collections::HashMap<String, Tensor> {
        let params = model.params().iter();
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
        (unknown, "tensor `model.extra` belongs to no parameter"),
        (
            shape,
            "tensor `model.shared.weight` has shape [3, 12] where the model has [20, 12]",
        ),
    ] {
        assert_eq!(
            model.params().load(&tensors).unwrap_err().to_string(),
            message
        );
    }
    Ok(())
}

#[test]
fn a_sentence_of_two_thousand_tokens_trains_in_every_family() {
    // What moves a predicted window is multiplied by the sentence's length, at every step anew where it is
    // fed back: over so many steps such a gradient overflows.
    let tame = |config: &ModelConfig| match config {
        ModelConfig::Recurrent(config) => match &config.attention {
            AttentionChoice::Some(attention) => attention.align != AlignKind::LocalP,
            AttentionChoice::None => true,
        },
        _ => true,
    };
    let some_of_each_family = configs().into_iter().filter(tame).step_by(7);
    // As large a stack as a program's threads have: candle walks along a sentence by recursion.
    let stack = std::thread::Builder::new().stack_size(64 << 20);
    let work = stack.spawn(|| {
        for config in some_of_each_family {
            train_on_two_thousand_tokens(&config).expect("a step");
        }
    });
    work.expect("a thread").join().expect("every model trains");
}

fn train_on_two_thousand_tokens(config: &ModelConfig) -> Result<()> {
    let ids = |last: u32| -> Vec<u32> { (0..2047).map(|i| 1 + i % last).chain([0]).collect() };
    let (source, target) = (
        Packed::of_sentences(&[ids(6)]),
        Packed::of_sentences(&[ids(5)]),
    );
    let model = config.build(VOCABULARIES, 3, &Device::Cpu)?;
    let pass = Pass::train(Path::Fused, 1, 1);
    let memory = model.encode(&source, &pass)?;
    let output = model.decode(&memory, &target, &pass)?;
    let loss = model.loss(&output, &target, 0.1, &pass)?;
    assert!(loss.smoothed()?.is_finite());
    loss.backward(1.0 / 2048.0, model.params().iter())?;
    for param in model.params().iter() {
        let gradient = param.gradient().expect("a gradient");
        let norm = gradient.sqr()?.sum_all()?.to_scalar::<f32>()?;
        assert!(norm.is_finite(), "{config:?}: {param:?}");
    }
    Ok(())
}
