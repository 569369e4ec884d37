//! Compares outputs, loss and the gradient of every parameter with PyTorch's, from files written by
//! `scripts/golden/transformer.py`, `recurrent.py`, `lstmn.py` and `caption.py`.

use std::collections::HashMap;
use std::path::PathBuf;

use attend_batch::{Packed, PictureShape, Pictures, Source};
use attend_model::{Kernels, ModelConfig, Pass, Place, Seq2Seq, Vocabularies};
use candle_core::{Device, Result, Tensor, safetensors};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    model: ModelConfig,
    /// None if the sources are pictures.
    source_vocab: Option<usize>,
    target_vocab: usize,
    smoothing: f32,
}

struct Golden {
    case: Case,
    tensors: HashMap<String, Tensor>,
}

impl Golden {
    fn read(name: &str) -> Result<Self> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let case = std::fs::read_to_string(folder.join(name).with_extension("json"))?;
        let tensors = folder.join(name).with_extension("safetensors");
        Ok(Self {
            case: serde_json::from_str(&case).expect("the case of a golden file"),
            tensors: safetensors::load(tensors, &Device::Cpu)?,
        })
    }

    fn model(&self) -> Result<Box<dyn Seq2Seq>> {
        let case = &self.case;
        let vocabularies = Vocabularies {
            source: case.source_vocab,
            target: case.target_vocab,
            joint: self.tensors.contains_key("param.model.shared.weight"),
        };
        let config = &case.model;
        config.validate_with(vocabularies).expect("a valid config");
        let model = config.build(vocabularies, 1, &Device::Cpu)?;
        let params = self.tensors.iter().filter_map(|(name, tensor)| {
            Some((name.strip_prefix("param.")?.to_string(), tensor.clone()))
        });
        model
            .weights()
            .load(&params.collect())
            .expect("names and shapes as in PyTorch");
        Ok(model)
    }

    fn batch(&self, side: &str) -> Result<Packed> {
        let ids = self.tensors[&format!("input.{side}_ids")].to_vec1::<u32>()?;
        let lengths = self.tensors[&format!("input.{side}_lengths")].to_vec1::<u32>()?;
        Ok(Packed::new(
            ids,
            lengths.into_iter().map(|length| length as usize),
        ))
    }

    fn source(&self) -> Result<Source> {
        let Some(pictures) = self.tensors.get("input.pictures") else {
            return Ok(self.batch("source")?.into());
        };
        let (_, height, width, channels) = pictures.dims4()?;
        let shape = PictureShape {
            height,
            width,
            channels,
        };
        let values = pictures.flatten_all()?.to_vec1()?;
        Ok(Source::Pictures(Pictures::new(values, shape)))
    }

    fn check(&self, name: &str, ours: &Tensor, kernels: Kernels) -> Result<()> {
        // The files hold PyTorch's results in 64 bits, from which its results in 32 bits differ by 6e-6.
        // Candle sums sequentially, which makes the composed kernels slightly less precise.
        let tolerance = match kernels {
            Kernels::Fused => 1e-5,
            Kernels::Composed => 2e-5,
        };
        let theirs = &self.tensors[name];
        assert_eq!(ours.dims(), theirs.dims(), "{name}");
        let (ours, theirs) = (ours.flatten_all()?, theirs.flatten_all()?);
        let (ours, theirs) = (ours.to_vec1::<f32>()?, theirs.to_vec1::<f32>()?);
        // Gradients of key biases are zero except for rounding, since a softmax is invariant to them.
        // Their errors are relative to the gradients of the key weights.
        let relative_to = name.replace("k_proj.bias", "k_proj.weight");
        let relative_to = self.tensors[&relative_to].flatten_all()?.to_vec1::<f32>()?;
        let scale = relative_to.iter().fold(0f32, |scale, x| scale.max(x.abs()));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let error = (ours - theirs).abs() / scale;
            assert!(
                error < tolerance,
                "{name}: {ours} here, {theirs} in PyTorch"
            );
        }
        Ok(())
    }
}

fn check(name: &str) -> Result<()> {
    let golden = Golden::read(name)?;
    let (source, target) = (golden.source()?, golden.batch("target")?);
    for kernels in Kernels::ALL {
        let model = golden.model()?;
        let pass = Pass::train(kernels, 0, 0);
        let memory = model.encode(&source, &pass)?;
        let output = model.decode(&memory, &target, &pass)?;
        let loss = model.loss(&output, &target, golden.case.smoothing, &pass)?;
        golden.check("output.memory", &memory.states, kernels)?;
        golden.check("output.hidden", &output.hidden, kernels)?;
        golden.check(
            "output.loss",
            &Tensor::new(&[loss.smoothed()? + loss.extra()?], &Device::Cpu)?,
            kernels,
        )?;
        if golden.tensors.contains_key("output.attention") {
            let weights = cross_attention(&*model, &source, &target, kernels)?;
            golden.check("output.attention", &weights, kernels)?;
        }
        golden.check(
            "output.logits",
            &logits(&*model, &target, &memory, kernels)?,
            kernels,
        )?;
        loss.backward(1.0, model.weights().params())?;
        for param in model.weights().params() {
            let gradient = param.gradient().expect("every parameter has a gradient");
            golden.check(&format!("grad.{}", param.name()), gradient, kernels)?;
        }
    }
    Ok(())
}

/// The cross-attention weights of all sentence pairs, flattened and concatenated.
fn cross_attention(
    model: &dyn Seq2Seq,
    source: &Source,
    target: &Packed,
    kernels: Kernels,
) -> Result<Tensor> {
    let mut weights = Vec::new();
    for pair in 0..target.segments.count() {
        let (source, target) = (source.part(pair..pair + 1), target.part(pair..pair + 1));
        let maps = model.attention(&source, &target, kernels)?;
        let cross = maps.iter().find(|map| map.place == Place::Cross);
        weights.push(cross.expect("a cross attention").weights.flatten_all()?);
    }
    Tensor::cat(&weights, 0)
}

/// The logits of every target position, computed step by step.
fn logits(
    model: &dyn Seq2Seq,
    target: &Packed,
    memory: &attend_model::Memory,
    kernels: Kernels,
) -> Result<Tensor> {
    let pass = Pass::eval(kernels);
    let inputs = target.shifted(model.start_token());
    let longest = target.segments.longest();
    let mut state = model.start(memory, 1, &pass)?;
    let mut steps = Vec::new();
    for position in 0..longest {
        // A sentence that has ended continues with its first token, and its logits are ignored.
        let last: Vec<u32> = target
            .segments
            .ranges()
            .map(|range| {
                inputs[if position < range.len() {
                    range.start + position
                } else {
                    range.start
                }]
            })
            .collect();
        steps.push(state.step(&last, None)?);
    }
    let mut rows = Vec::new();
    for (sentence, range) in target.segments.ranges().enumerate() {
        for step in &steps[..range.len()] {
            rows.push(step.get(sentence)?);
        }
    }
    Tensor::stack(&rows, 0)
}

#[test]
fn a_post_norm_model_equals_marian_mt_forward_and_backward() -> Result<()> {
    check("post_norm")
}

#[test]
fn a_pre_norm_gelu_model_with_two_vocabularies_equals_torch_nn_transformer() -> Result<()> {
    check("pre_norm")
}

#[test]
fn a_swish_model_with_untied_embeddings_equals_marian_mt() -> Result<()> {
    check("swish_untied")
}

#[test]
fn an_lstm_with_bahdanau_attention_equals_pytorch() -> Result<()> {
    check("lstm_bahdanau")
}

#[test]
fn a_gru_with_bahdanau_attention_equals_pytorch() -> Result<()> {
    check("gru_bahdanau")
}

#[test]
fn an_lstm_with_luong_attention_and_input_feeding_equals_pytorch() -> Result<()> {
    check("lstm_luong")
}

#[test]
fn a_gru_with_luong_attention_and_input_feeding_equals_pytorch() -> Result<()> {
    check("gru_luong")
}

#[test]
fn an_lstm_with_reversed_source_and_without_attention_equals_pytorch() -> Result<()> {
    check("lstm_fixed")
}

#[test]
fn a_predicted_window_with_a_gate_and_the_doubly_stochastic_penalty_equals_pytorch() -> Result<()> {
    check("lstm_local_p")
}

#[test]
fn a_cosine_score_equals_pytorch() -> Result<()> {
    check("gru_cosine")
}

#[test]
fn a_sharpness_that_each_step_emits_equals_pytorch() -> Result<()> {
    check("lstm_emitted_sharpness")
}

#[test]
fn additive_scores_with_sigmoid_and_relu_equal_pytorch() -> Result<()> {
    check("gru_sigmoid")?;
    check("gru_relu")
}

#[test]
fn a_decoder_that_sees_the_summary_at_every_step_equals_pytorch() -> Result<()> {
    check("gru_every_step")?;
    check("lstm_every_step")
}

#[test]
fn a_predicted_window_of_fixed_deviation_equals_pytorch() -> Result<()> {
    check("gru_local_p_fixed")
}

#[test]
fn a_monotonic_window_and_a_location_score_equal_pytorch() -> Result<()> {
    check("lstm_local_m")
}

#[test]
fn captions_by_soft_attention_with_a_gate_and_the_doubly_stochastic_penalty_equal_pytorch()
-> Result<()> {
    check("caption_soft")
}

#[test]
fn captions_by_a_transformer_equal_pytorch() -> Result<()> {
    check("caption_transformer")
}

#[test]
fn an_lstmn_with_shallow_fusion_equals_the_papers_equations_in_pytorch() -> Result<()> {
    check("lstmn_shallow")
}

#[test]
fn an_lstmn_with_deep_fusion_equals_the_papers_equations_in_pytorch() -> Result<()> {
    check("lstmn_deep")
}

#[test]
fn a_deep_lstmn_with_one_embedding_matrix_equals_the_papers_equations_in_pytorch() -> Result<()> {
    check("lstmn_deep_tied")
}
