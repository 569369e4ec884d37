//! Hard attention minimises the expected loss over its samples. Here the key sequences that can be sampled are
//! few enough to enumerate, so that the expectation is exact.

use std::collections::BTreeMap;

use attend_batch::Packed;
use attend_ops::{Kernels, Pass};
use candle_core::{Device, Result, Tensor};

use super::encoded::Encoded;
use super::{AttentionChoice, AttentionConfig, Recurrent, RecurrentConfig};
use crate::weights::{Init, Values};
use crate::{ContextKind, Encode, Output, Tie, Train, Vocabularies};

/// A model with hard attention that samples at every step.
fn model(attention: AttentionConfig, entropy: f32) -> Result<Recurrent> {
    let attention = AttentionConfig {
        context: ContextKind::Hard,
        entropy: Some(entropy),
        soft_share: Some(0.0),
        ..attention
    };
    with(attention)
}

fn with(attention: AttentionConfig) -> Result<Recurrent> {
    let config = RecurrentConfig {
        d_embed: 4,
        d_hidden: 4,
        dropout: 0.0,
        tie: Tie::None,
        attention: AttentionChoice::Some(attention),
        ..RecurrentConfig::default()
    };
    let vocabularies = Vocabularies {
        source: Some(7),
        target: 6,
        joint: false,
    };
    let model = Recurrent::new(
        &config,
        vocabularies,
        Init::new(Values::Seed(5), &Device::Cpu),
    )?;
    for param in model.weights().params().filter(|param| !param.follows()) {
        param.set(&(param.value().detach() * 1.7)?)?; // so that the loss depends on the samples
    }
    let baseline = model.weights().params().find(|param| param.follows());
    if let Some(baseline) = baseline {
        baseline.set(&Tensor::new(&[0.9f32], &Device::Cpu)?)?; // the expected gradient does not depend on it
    }
    Ok(model)
}

/// The result of one sampled key sequence.
struct Sample {
    probability: f64,
    loss: f64,
    /// The gradients of all parameters, concatenated.
    gradient: Vec<f64>,
}

/// The key that was sampled at each step.
type Keys = Vec<u32>;

const SOURCE: [u32; 3] = [4, 3, 0];
const TARGET: [u32; 3] = [2, 3, 0];

/// Samples a key sequence and computes its loss and gradient. `number` selects the random numbers.
fn sample(model: &Recurrent, target: &[u32], number: u64) -> Result<(Keys, Sample)> {
    let source = Packed::of_sentences([SOURCE]);
    let target = Packed::of_sentences([target]);
    let pass = Pass::train(Kernels::Fused, 1, number);
    let memory = model.encode(&source.into(), &pass)?;
    let decoded = model
        .decoding
        .run_decoder(&Encoded::from_memory(&memory)?, &target, &pass)?;
    let choice = decoded.alignment.as_ref().and_then(|it| it.choice.clone());
    let (keys, log_p) = match &choice {
        Some(choice) => (
            choice.taken.argmax(1)?.to_vec1::<u32>()?,
            choice.log_p.sum_all()?.to_scalar::<f32>()?,
        ),
        None => (Vec::new(), 0.0),
    };
    let output = Output {
        hidden: decoded.hidden,
        penalty: decoded.alignment.and_then(|it| model.decoding.penalty(it)),
    };
    let loss = model.loss(&output, &target, 0.1, &pass)?;
    let value: f64 = loss.each.iter().map(|&loss| f64::from(loss)).sum();
    model.weights().params().for_each(|param| param.clear());
    loss.backward(1.0, model.weights().params())?;
    let mut gradient = Vec::new();
    for param in model.weights().params().filter(|param| !param.follows()) {
        let of_param = param.gradient().expect("a gradient").flatten_all()?;
        gradient.extend(of_param.to_vec1::<f32>()?.into_iter().map(f64::from));
    }
    let probability = f64::from(log_p).exp();
    Ok((
        keys,
        Sample {
            probability,
            loss: value,
            gradient,
        },
    ))
}

/// Every key sequence, any of the keys at each step, found by repeated sampling.
fn all_samples(model: &Recurrent, target: &[u32]) -> Result<BTreeMap<Keys, Sample>> {
    let mut samples = BTreeMap::new();
    for number in 0..20_000 {
        let (keys, sampled) = sample(model, target, number)?;
        samples.insert(keys, sampled);
        if samples.len() == SOURCE.len().pow(target.len() as u32) {
            break;
        }
    }
    let total: f64 = samples.values().map(|sample| sample.probability).sum();
    assert!(
        (total - 1.0).abs() < 1e-4,
        "{} samples, {total}",
        samples.len()
    );
    Ok(samples)
}

fn expected_loss(samples: &BTreeMap<Keys, Sample>) -> f64 {
    samples
        .values()
        .map(|sample| sample.probability * sample.loss)
        .sum()
}

fn add(sum: &mut [f64], gradient: &[f64], factor: f64) {
    sum.iter_mut()
        .zip(gradient)
        .for_each(|(sum, gradient)| *sum += factor * gradient);
}

/// The expected gradient: the mean over all key sequences, weighted by probability.
fn expected_gradient(samples: &BTreeMap<Keys, Sample>) -> Vec<f64> {
    let mut sum = vec![0.0; samples.values().next().expect("a sample").gradient.len()];
    for sample in samples.values() {
        add(&mut sum, &sample.gradient, sample.probability);
    }
    sum
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let square = |(a, b): (&f64, &f64)| (a - b) * (a - b);
    a.iter().zip(b).map(square).sum::<f64>().sqrt()
}

/// Compares the expected gradient of one element of each parameter with finite differences of an objective.
fn assert_gradient(
    model: &Recurrent,
    target: &[u32],
    objective: impl Fn(&BTreeMap<Keys, Sample>) -> f64,
) -> Result<()> {
    const STEP: f32 = 2e-2;
    let gradient = expected_gradient(&all_samples(model, target)?);
    let mut offset = 0;
    let trained = model.weights().params().filter(|param| !param.follows());
    for param in trained {
        let value = param.value().copy()?;
        let flat = value.flatten_all()?.to_vec1::<f32>()?;
        let at = |index: usize, step: f32| -> Result<f64> {
            let mut moved = flat.clone();
            moved[index] += step;
            param.set(&Tensor::from_vec(moved, value.shape(), value.device())?)?;
            Ok(objective(&all_samples(model, target)?))
        };
        let index = flat.len() / 3;
        let slope = (at(index, STEP)? - at(index, -STEP)?) / f64::from(2.0 * STEP);
        param.set(&value)?;
        let ours = gradient[offset + index];
        let error = (ours - slope).abs();
        assert!(
            error < 5e-3 * slope.abs().max(1.0),
            "{param:?}: {ours} and {slope}"
        );
        offset += flat.len();
    }
    Ok(())
}

#[test]
fn the_expected_gradient_is_the_gradient_of_the_expected_loss() -> Result<()> {
    for attention in [AttentionConfig::bahdanau(), AttentionConfig::default()] {
        assert_gradient(&model(attention, 0.0)?, &TARGET, expected_loss)?;
    }
    Ok(())
}

/// With a target of one token, no later entropy depends on the sampled key, and the probability of a key
/// sequence is the weight of its only key.
#[test]
fn the_entropy_bonus_has_the_gradient_of_the_entropy() -> Result<()> {
    const ENTROPY: f64 = 3.0;
    for attention in [AttentionConfig::bahdanau(), AttentionConfig::default()] {
        let model = model(attention, ENTROPY as f32)?;
        assert_gradient(&model, &TARGET[..1], |samples| {
            let weights = samples.values().map(|sample| sample.probability);
            let entropy: f64 = weights.map(|weight| -weight * weight.ln()).sum();
            expected_loss(samples) - ENTROPY * entropy
        })?;
    }
    Ok(())
}

#[test]
fn the_mean_gradient_of_samples_converges_to_the_expected_gradient() -> Result<()> {
    let model = model(AttentionConfig::default(), 0.0)?;
    let exact = expected_gradient(&all_samples(&model, &TARGET)?);
    let size = distance(&exact, &vec![0.0; exact.len()]);
    let mut sum = vec![0.0; exact.len()];
    let mut errors = Vec::new();
    for number in 1..=4096u32 {
        let (_, sampled) = sample(&model, &TARGET, u64::from(number) + 1_000_000)?;
        add(&mut sum, &sampled.gradient, 1.0);
        if [16, 4096].contains(&number) {
            let mean: Vec<f64> = sum.iter().map(|sum| sum / f64::from(number)).collect();
            errors.push(distance(&mean, &exact) / size);
        }
    }
    // With 256 times as many samples, the error is about 16 times smaller.
    assert!(
        errors[1] < 0.05 && errors[0] > 4.0 * errors[1],
        "{errors:?}"
    );
    Ok(())
}

#[test]
fn hard_attention_with_a_soft_share_of_one_equals_soft_attention() -> Result<()> {
    let soft = with(AttentionConfig::default())?;
    let hard = with(AttentionConfig {
        context: ContextKind::Hard,
        entropy: Some(0.0),
        soft_share: Some(1.0),
        ..AttentionConfig::default()
    })?;
    let ((_, soft), (_, hard_sample)) = (sample(&soft, &TARGET, 1)?, sample(&hard, &TARGET, 1)?);
    // Nothing was sampled, so the gradient of the baseline is zero.
    let baseline = hard.weights().params().find(|param| param.follows());
    let gradient = baseline.and_then(|baseline| baseline.gradient());
    assert_eq!(gradient.expect("a gradient").to_vec1::<f32>()?, [0.0]);
    assert!((soft.loss - hard_sample.loss).abs() < 1e-5);
    let error = distance(&soft.gradient, &hard_sample.gradient);
    assert!(error < 1e-5 * distance(&soft.gradient, &vec![0.0; soft.gradient.len()]));
    Ok(())
}
