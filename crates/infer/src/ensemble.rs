//! Several models that translate together: at every step, the mean of their probabilities.
//!
//! r rows, w words of the target vocabulary, m members.

use std::path::{Path, PathBuf};

use attend_batch::{Source, SourceShape};
use attend_data::{Tokenizer, Tokenizers};
use attend_model::{
    AttentionMap, DecoderState, Encode, KeptRows, Kernels, Memory, Packing, Pass, Seq2Seq, Step,
};
use attend_ops::log_sum_exp;
use candle_core::{DType, Device, Result as TensorResult, Tensor, bail};
use rayon::prelude::*;

use crate::{Bundle, Contents, DecodeConfig, Error, Result};

/// Models with the same vocabularies as one. They may differ in architecture and size. An ensemble of one model,
/// or of copies of it, is that model, bit for bit.
pub struct Ensemble {
    members: Vec<Box<dyn Seq2Seq>>,
}

/// One or several models that were opened to translate together, and what translating needs beside them.
pub struct Models {
    pub ensemble: Ensemble,
    /// Those of every member.
    pub tokenizers: Tokenizers,
    /// That of the first.
    pub decode: DecodeConfig,
    /// The longest sentence that all of them were trained on, if that is known.
    pub max_length: Option<usize>,
    /// The folders with the files of each: a checkpoint, if a run was given.
    pub folders: Vec<PathBuf>,
}

impl Models {
    /// An error if they do not read text, which `what` needs.
    pub fn require_text(&self, what: &str) -> Result<()> {
        match self.ensemble.source() {
            SourceShape::Text => Ok(()),
            shape => Err(Error::Usage {
                message: format!(
                    "{what} needs a model that reads text, but {} reads {shape}",
                    self.folders[0].display()
                ),
                hint: "use `infer translate`, whose input names the files".into(),
            }),
        }
    }
}

impl Ensemble {
    /// # Panics
    /// If there are no members.
    pub fn new(members: Vec<Box<dyn Seq2Seq>>) -> Self {
        assert!(!members.is_empty(), "an ensemble has members");
        Self { members }
    }

    /// Opens models that have the same tokenizers, each as [`Contents::open`] and
    /// [`Contents::load_to_translate`] do.
    ///
    /// # Panics
    /// If there are no folders.
    pub fn open(
        folders: &[impl AsRef<Path>],
        device: &Device,
        kernels: Kernels,
        packing: Packing,
    ) -> Result<Models> {
        let contents = folders.iter().map(|folder| Contents::open(folder.as_ref()));
        let contents = contents.collect::<Result<Vec<Contents>>>()?;
        // Before any weights are read, which takes longest.
        for other in &contents[1..] {
            check_same(&contents[0], other)?;
        }
        let folders = contents.iter().map(|it| it.folder.clone()).collect();
        let contents = contents.into_iter();
        let bundles = contents.map(|it| it.load_to_translate(device, kernels, packing));
        let bundles = bundles.collect::<Result<Vec<Bundle>>>()?;
        let max_length = bundles.iter().filter_map(|it| it.config.max_length).min();
        let (tokenizers, decode) = (bundles[0].tokenizers.clone(), bundles[0].decode.clone());
        let members = bundles.into_iter().map(|bundle| bundle.model);
        Ok(Models {
            ensemble: Self::new(members.collect()),
            tokenizers,
            decode,
            max_length,
            folders,
        })
    }

    pub fn members(&self) -> &[Box<dyn Seq2Seq>] {
        &self.members
    }
}

/// An error if the members would not read the same source tokens, or not mean the same words.
fn check_same(first: &Contents, other: &Contents) -> Result<()> {
    let folders = [&first.folder, &other.folder].map(|folder| folder.display().to_string());
    let [reads, reads_too] = [first, other].map(|it| it.config.model.source());
    if reads != reads_too {
        let [a, b] = &folders;
        return Err(Error::Usage {
            message: format!(
                "{a} and {b} cannot be an ensemble: one reads {reads}, the other {reads_too}"
            ),
            hint: "give models that read the same".into(),
        });
    }
    let sources = (first.tokenizers.source(), other.tokenizers.source());
    let sources = match sources {
        (Some(a), Some(b)) if a != b => first_difference([a, b], &folders)
            .or_else(|| Some("the tokens are the same, but text is split otherwise".into()))
            .map(|difference| ("source", difference)),
        _ => None,
    };
    let targets = [first.tokenizers.target(), other.tokenizers.target()];
    let targets = || Some(("target", first_difference(targets, &folders)?));
    let Some((side, difference)) = sources.or_else(targets) else {
        return Ok(());
    };
    let [a, b] = &folders;
    Err(Error::Usage {
        message: format!(
            "{a} and {b} cannot be an ensemble: their {side} tokenizers differ: {difference}"
        ),
        hint:
            "give models that were trained with the same tokenizer: `data.tokenizer.file` in their \
               training configs"
                .into(),
    })
}

/// Where two vocabularies differ first, if they do.
fn first_difference(tokenizers: [&Tokenizer; 2], names: &[String; 2]) -> Option<String> {
    let sizes = tokenizers.map(Tokenizer::vocab_size);
    // Without padding, which is the last token of each.
    let common = sizes[0].min(sizes[1]).saturating_sub(1) as u32;
    for id in 0..common {
        let [a, b] = tokenizers.map(|tokenizer| tokenizer.token(id).unwrap_or_default());
        if a != b {
            let [first, second] = names;
            return Some(format!(
                "token {id} is `{a}` in {first} and `{b}` in {second}"
            ));
        }
    }
    let [a, b] = sizes;
    (a != b).then(|| format!("they have {a} and {b} tokens"))
}

impl Encode for Ensemble {
    fn source(&self) -> SourceShape {
        self.members[0].source()
    }

    fn regions(&self) -> Option<(usize, usize)> {
        self.members[0].regions()
    }

    fn encode(&self, source: &Source, pass: &Pass) -> TensorResult<Memory> {
        let memories = self.members.iter().map(|model| model.encode(source, pass));
        let memories = memories.collect::<TensorResult<Vec<Memory>>>()?;
        let first = Memory::new(memories[0].states.clone(), memories[0].segments.clone());
        Ok(first.with_private(memories))
    }
}

impl Step for Ensemble {
    fn start_token(&self) -> u32 {
        self.members[0].start_token()
    }

    fn admits(&self, pass: &Pass) -> bool {
        self.members.iter().all(|model| model.admits(pass))
    }

    fn start<'a>(
        &'a self,
        memory: &Memory,
        beams: usize,
        pass: &Pass,
    ) -> TensorResult<Box<dyn DecoderState + 'a>> {
        let members = self.members.iter().zip(memories(memory)?);
        let states = members.map(|(model, memory)| model.start(memory, beams, pass));
        let members = states.collect::<TensorResult<_>>()?;
        Ok(Box::new(EnsembleState { members }))
    }
}

/// What each member has encoded.
fn memories(memory: &Memory) -> TensorResult<&Vec<Memory>> {
    match memory.private() {
        Some(memories) => Ok(memories),
        None => bail!("the memory is not of an ensemble"),
    }
}

struct EnsembleState<'a> {
    members: Vec<Box<dyn DecoderState + 'a>>,
}

impl DecoderState for EnsembleState<'_> {
    fn rows(&self) -> usize {
        self.members[0].rows()
    }

    /// The maps are those of the first member.
    fn step(
        &mut self,
        last: &[u32],
        mut maps: Option<&mut Vec<AttentionMap>>,
    ) -> TensorResult<Tensor> {
        let steps = self.members.iter_mut();
        let steps = steps.map(|state| state.step(last, maps.take()));
        let mut logits = steps.collect::<TensorResult<Vec<Tensor>>>()?;
        match logits.len() {
            1 => Ok(logits.remove(0)),
            _ => mean(&logits),
        }
    }

    fn select(&mut self, kept: &[KeptRows]) -> TensorResult<()> {
        let mut members = self.members.iter_mut();
        members.try_for_each(|state| state.select(kept))
    }

    fn admit(&mut self, memory: &Memory) -> TensorResult<()> {
        let memories = memories(memory)?;
        let mut members = self.members.iter_mut().zip(memories);
        members.try_for_each(|(state, memory)| state.admit(memory))
    }
}

/// Logits `[r, w]` whose probabilities are the mean of the members' ones. They are on the CPU, where search reads
/// them.
fn mean(logits: &[Tensor]) -> TensorResult<Tensor> {
    let (rows, words) = logits[0].dims2()?;
    if let Some(other) = logits.iter().find(|it| it.dims() != [rows, words]) {
        let dims = other.dims();
        bail!("the members of an ensemble have [{rows}, {words}] and {dims:?} logits");
    }
    let read = logits.iter().map(|logits| {
        let logits = logits.to_device(&Device::Cpu)?.to_dtype(DType::F32)?;
        logits.flatten_all()?.to_vec1()
    });
    let members = read.collect::<TensorResult<Vec<Vec<f32>>>>()?;
    let mut means = vec![0.0; rows * words];
    let each = means.par_chunks_mut(words.max(1)).enumerate();
    each.for_each(|(row, means)| {
        let members = members.iter().map(|logits| &logits[row * words..][..words]);
        mean_of_row(&members.collect::<Vec<_>>(), means);
    });
    Tensor::from_vec(means, (rows, words), &Device::Cpu)
}

/// log((1/m) Σ exp(x − log Σ exp x)) of every word, shifted by the normaliser of the first member: if all members
/// say the same, its logits come out as they were.
fn mean_of_row(members: &[&[f32]], means: &mut [f32]) {
    let log_sums: Vec<f64> = members.iter().map(|logits| log_sum_exp(logits)).collect();
    if log_sums.iter().any(|log_sum| !log_sum.is_finite()) {
        return means.fill(f32::NAN); // which search reports
    }
    let count = members.len() as f32;
    let mut log_p = vec![0.0; members.len()];
    for (word, mean) in means.iter_mut().enumerate() {
        for ((log_p, logits), log_sum) in log_p.iter_mut().zip(members).zip(&log_sums) {
            *log_p = f64::from(logits[word]) - log_sum;
        }
        let highest = log_p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        *mean = if highest == f64::NEG_INFINITY {
            f32::NEG_INFINITY // impossible for every member
        } else {
            let shares = log_p.iter().map(|log_p| ((log_p - highest) as f32).exp());
            let share = shares.sum::<f32>() / count;
            (highest + log_sums[0] + f64::from(share.ln())) as f32
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probabilities(logits: &[f32]) -> Vec<f64> {
        let total: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
        let p = logits.iter().map(|&x| f64::from(x).exp() / total);
        p.collect()
    }

    #[test]
    fn the_probabilities_of_an_ensemble_are_the_mean_of_its_members() {
        let members: [&[f32]; 3] = [
            &[0.5, -2.0, 1.0, -40.0],
            &[3.0, 3.0, -3.0, 2.0],
            &[-9.0, 10.0, f32::NEG_INFINITY, 0.0],
        ];
        let mut means = [0.0; 4];
        mean_of_row(&members, &mut means);
        let all = members.map(probabilities);
        for (word, p) in probabilities(&means).into_iter().enumerate() {
            let mean = all.iter().map(|p| p[word]).sum::<f64>() / 3.0;
            assert!((p - mean).abs() < 1e-6, "{word}: {p} and {mean}");
        }
    }

    #[test]
    fn large_and_impossible_logits_neither_overflow_nor_lose_a_word() {
        let members: [&[f32]; 2] = [
            &[1e4, 0.0, f32::NEG_INFINITY],
            &[-1e4, 0.0, f32::NEG_INFINITY],
        ];
        let mut means = [0.0; 3];
        mean_of_row(&members, &mut means);
        // Each member is certain of another word.
        assert!((means[0] - means[1]).abs() < 1e-2, "{means:?}");
        assert_eq!(means[2], f32::NEG_INFINITY);
        mean_of_row(&[&[1.0, f32::NAN], &[1.0, 2.0]], &mut means[..2]);
        assert!(means[..2].iter().all(|mean| mean.is_nan()), "{means:?}");
    }

    #[test]
    fn members_that_agree_have_the_logits_of_one_bit_for_bit() {
        let logits: Vec<f32> = (0..1000)
            .map(|i| ((i * 7919) % 997) as f32 * 0.0371 - 20.0)
            .collect();
        for copies in 1..=5 {
            let mut means = vec![0.0; logits.len()];
            mean_of_row(&vec![&logits[..]; copies], &mut means);
            assert_eq!(means, logits, "{copies} copies");
        }
    }
}
