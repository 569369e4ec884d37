//! A hard attention minimises the loss that it expects over all its draws. Here the draws are few enough to
//! go through all of them.

use std::collections::BTreeMap;

use attend_ops::{Pass, Path};
use candle_core::{Device, Result, Tensor};

use super::{AttentionChoice, AttentionConfig, Recurrent, RecurrentConfig};
use crate::{ContextKind, Packed, Seq2Seq, Tie, Vocabularies};

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
        source: 7,
        target: 6,
        joint: false,
    };
    let model = Recurrent::new(&config, vocabularies, Some(5), &Device::Cpu)?;
    for param in model.params().iter().filter(|param| !param.follows()) {
        param.set(&(param.value().detach() * 1.7)?)?; // so that draws matter
    }
    let baseline = model.params().iter().find(|param| param.follows());
    if let Some(baseline) = baseline {
        baseline.set(&Tensor::new(&[0.9f32], &Device::Cpu)?)?; // and show that it does not
    }
    Ok(model)
}

/// One way through the keys: how likely it is, what it loses, and the gradient it gives, by parameter.
struct Draw {
    probability: f64,
    loss: f64,
    gradient: Vec<f64>,
}

/// Keys that were taken, one after the other.
type Way = Vec<u32>;

/// Three words to read.
const SOURCE: [u32; 3] = [4, 3, 0];
/// As many to write.
const TARGET: [u32; 3] = [2, 3, 0];

fn draw(model: &Recurrent, target: &[u32], number: u64) -> Result<(Way, Draw)> {
    let source = Packed::of_sentences(&[SOURCE]);
    let target = Packed::of_sentences(&[target]);
    let pass = Pass::train(Path::Fused, 1, number);
    let output = model.decode(&model.encode(&source, &pass)?, &target, &pass)?;
    let choice = output.alignment.as_ref().and_then(|it| it.choice.clone());
    let (way, log_p) = match &choice {
        Some(choice) => (
            choice.taken.argmax(1)?.to_vec1::<u32>()?,
            choice.log_p.sum_all()?.to_scalar::<f32>()?,
        ),
        None => (Vec::new(), 0.0),
    };
    let loss = model.loss(&output, &target, 0.1, &pass)?;
    let value: f64 = loss.each.iter().map(|&loss| f64::from(loss)).sum();
    model.params().iter().for_each(|param| param.clear());
    loss.backward(1.0, model.params().iter())?;
    let mut gradient = Vec::new();
    for param in model.params().iter().filter(|param| !param.follows()) {
        let of_param = param.gradient().expect("a gradient").flatten_all()?;
        gradient.extend(of_param.to_vec1::<f32>()?.into_iter().map(f64::from));
    }
    let probability = f64::from(log_p).exp();
    Ok((
        way,
        Draw {
            probability,
            loss: value,
            gradient,
        },
    ))
}

/// Every way there is: one of the keys at each step.
fn all(model: &Recurrent, target: &[u32]) -> Result<BTreeMap<Way, Draw>> {
    let mut ways = BTreeMap::new();
    for number in 0..20_000 {
        let (way, drawn) = draw(model, target, number)?;
        ways.insert(way, drawn);
        if ways.len() == SOURCE.len().pow(target.len() as u32) {
            break;
        }
    }
    let total: f64 = ways.values().map(|draw| draw.probability).sum();
    assert!((total - 1.0).abs() < 1e-4, "{} ways, {total}", ways.len());
    Ok(ways)
}

fn expected_loss(ways: &BTreeMap<Way, Draw>) -> f64 {
    ways.values().map(|draw| draw.probability * draw.loss).sum()
}

fn add(sum: &mut [f64], gradient: &[f64], factor: f64) {
    sum.iter_mut()
        .zip(gradient)
        .for_each(|(sum, gradient)| *sum += factor * gradient);
}

/// The gradient that is expected: the mean of what every way gives.
fn expected_gradient(ways: &BTreeMap<Way, Draw>) -> Vec<f64> {
    let mut sum = vec![0.0; ways.values().next().expect("a way").gradient.len()];
    for draw in ways.values() {
        add(&mut sum, &draw.gradient, draw.probability);
    }
    sum
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let square = |(a, b): (&f64, &f64)| (a - b) * (a - b);
    a.iter().zip(b).map(square).sum::<f64>().sqrt()
}

/// Compares the expected gradient of some of the parameters with what finite differences of an objective say.
fn assert_gradient(
    model: &Recurrent,
    target: &[u32],
    objective: impl Fn(&BTreeMap<Way, Draw>) -> f64,
) -> Result<()> {
    const STEP: f32 = 2e-2;
    let gradient = expected_gradient(&all(model, target)?);
    let mut place = 0;
    let trained = model.params().iter().filter(|param| !param.follows());
    for param in trained {
        let value = param.value().copy()?;
        let flat = value.flatten_all()?.to_vec1::<f32>()?;
        let at = |index: usize, step: f32| -> Result<f64> {
            let mut moved = flat.clone();
            moved[index] += step;
            param.set(&Tensor::from_vec(moved, value.shape(), value.device())?)?;
            Ok(objective(&all(model, target)?))
        };
        let index = flat.len() / 3;
        let slope = (at(index, STEP)? - at(index, -STEP)?) / f64::from(2.0 * STEP);
        param.set(&value)?;
        let ours = gradient[place + index];
        let error = (ours - slope).abs();
        assert!(
            error < 5e-3 * slope.abs().max(1.0),
            "{param:?}: {ours} and {slope}"
        );
        place += flat.len();
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

/// With one word to write, what is drawn decides of no later entropy, and the chance of a way is the weight
/// of a key.
#[test]
fn entropy_is_rewarded_by_its_gradient() -> Result<()> {
    const ENTROPY: f64 = 3.0;
    for attention in [AttentionConfig::bahdanau(), AttentionConfig::default()] {
        let model = model(attention, ENTROPY as f32)?;
        assert_gradient(&model, &TARGET[..1], |ways| {
            let weights = ways.values().map(|draw| draw.probability);
            let entropy: f64 = weights.map(|weight| -weight * weight.ln()).sum();
            expected_loss(ways) - ENTROPY * entropy
        })?;
    }
    Ok(())
}

#[test]
fn the_mean_over_draws_converges_to_it() -> Result<()> {
    let model = model(AttentionConfig::default(), 0.0)?;
    let exact = expected_gradient(&all(&model, &TARGET)?);
    let size = distance(&exact, &vec![0.0; exact.len()]);
    let mut sum = vec![0.0; exact.len()];
    let mut errors = Vec::new();
    for number in 1..=4096u32 {
        let (_, drawn) = draw(&model, &TARGET, u64::from(number) + 1_000_000)?;
        add(&mut sum, &drawn.gradient, 1.0);
        if [16, 4096].contains(&number) {
            let mean: Vec<f64> = sum.iter().map(|sum| sum / f64::from(number)).collect();
            errors.push(distance(&mean, &exact) / size);
        }
    }
    // 256 times the draws make the error 16 times smaller, give or take.
    assert!(
        errors[1] < 0.05 && errors[0] > 4.0 * errors[1],
        "{errors:?}"
    );
    Ok(())
}

#[test]
fn a_hard_attention_that_never_draws_is_a_soft_one() -> Result<()> {
    let soft = with(AttentionConfig::default())?;
    let hard = with(AttentionConfig {
        context: ContextKind::Hard,
        entropy: Some(0.0),
        soft_share: Some(1.0),
        ..AttentionConfig::default()
    })?;
    let ((_, soft), (_, drawn)) = (draw(&soft, &TARGET, 1)?, draw(&hard, &TARGET, 1)?);
    // Its baseline has nothing to follow, and is told so.
    let baseline = hard.params().iter().find(|param| param.follows());
    let gradient = baseline.and_then(|baseline| baseline.gradient());
    assert_eq!(gradient.expect("a gradient").to_vec1::<f32>()?, [0.0]);
    let hard = drawn;
    assert!((soft.loss - hard.loss).abs() < 1e-5);
    let apart = distance(&soft.gradient, &hard.gradient);
    assert!(apart < 1e-5 * distance(&soft.gradient, &vec![0.0; soft.gradient.len()]));
    Ok(())
}
