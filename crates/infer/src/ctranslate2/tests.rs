//! Export and back gives the same bits, what CTranslate2's converter writes is read and written alike, and
//! hostile files are refused.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use attend_data::{Corpus, TokenizerConfig, Tokenizers};
use attend_model::{
    Activation, ModelConfig, NormKind, RecurrentConfig, ScoreKind, Scores, SnailConfig, Tie,
    TransformerConfig,
};
use candle_core::{Device, Tensor};

use super::{Model, ModelFile, read_folder, write_folder};
use crate::{BundleConfig, DecodeConfig, Error, Result, vocabularies};

/// `scripts/golden/ctranslate2.py` wrote it with CTranslate2's converter: see there for its config.
const GOLDEN: &[u8] = include_bytes!("../../tests/golden/ctranslate2/model.bin");
const GOLDEN_POSITIONS: usize = 16;

fn path() -> &'static Path {
    Path::new("model.bin")
}

fn parse(bytes: &[u8], joint: bool) -> Result<Model> {
    Model::read(&mut ModelFile::new(Cursor::new(bytes), path())?, joint)
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    let values: Vec<f32> = tensor.flatten_all().unwrap().to_vec1().unwrap();
    values.into_iter().map(f32::to_bits).collect()
}

fn assert_same(ours: &Model, theirs: &Model) {
    assert_eq!(ours.config, theirs.config);
    assert_eq!(ours.vocabularies, theirs.vocabularies);
    let names = |model: &Model| model.tensors.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(ours), names(theirs));
    for (name, tensor) in &ours.tensors {
        let other = &theirs.tensors[name];
        assert_eq!(tensor.dims(), other.dims(), "{name}");
        assert_eq!(bits(tensor), bits(other), "{name}");
    }
}

fn tokenizers(joint: bool) -> Tokenizers {
    let lines = |lines: [&str; 2]| lines.map(str::to_string).to_vec();
    let source = lines(["a dog runs", "the cat sees a small house by the river"]);
    let target = lines([
        "ein Hund rennt",
        "die Katze sieht ein kleines Häuschen am Fluss",
    ]);
    let config = TokenizerConfig {
        vocab_size: 60,
        joint,
        ..TokenizerConfig::default()
    };
    Tokenizers::train(&config, &Corpus::new(source, target).unwrap(), &()).unwrap()
}

fn tiny() -> TransformerConfig {
    TransformerConfig {
        encoder_layers: 2,
        decoder_layers: 3,
        d_model: 8,
        heads: 2,
        d_ff: 12,
        dropout: 0.0,
        ..TransformerConfig::default()
    }
}

/// A model with random weights, biases and norms too. The last row of embeddings and outputs is zero.
fn random(config: TransformerConfig, tokenizers: &Tokenizers) -> Model {
    let vocabularies = vocabularies(tokenizers);
    let model = ModelConfig::Transformer(config.clone());
    let shapes = model.weight_shapes(vocabularies).unwrap();
    let tensors = shapes.into_iter().map(|(name, shape)| {
        let mut tensor = Tensor::randn(0f32, 1.0, &shape[..], &Device::Cpu).unwrap();
        if super::names::variables(&config, vocabularies)
            .iter()
            .any(|variable| variable.of_words && variable.weights[0] == name)
        {
            let words = tensor.narrow(0, 0, shape[0] - 1).unwrap();
            let pad = tensor.narrow(0, 0, 1).unwrap().zeros_like().unwrap();
            tensor = Tensor::cat(&[&words, &pad], 0).unwrap();
        }
        (name, tensor)
    });
    Model {
        quantization: None,
        tensors: tensors.collect(),
        config,
        vocabularies,
    }
}

fn write(folder: &Path, model: &Model, tokenizers: &Tokenizers) -> Result<()> {
    let config = ModelConfig::Transformer(model.config.clone());
    let config = BundleConfig::new(config, model.vocabularies, 64);
    let decode = DecodeConfig::default();
    write_folder(folder, &config, &decode, tokenizers, &model.tensors)
}

#[test]
fn an_exported_model_is_read_back_with_the_same_bits() {
    for joint in [true, false] {
        let tokenizers = tokenizers(joint);
        for (tie, norm, activation, output_bias) in [
            (Tie::All, NormKind::Post, Activation::Relu, false),
            (Tie::All, NormKind::Pre, Activation::Swish, true),
            (Tie::Decoder, NormKind::Post, Activation::Gelu, true),
            (Tie::Decoder, NormKind::Pre, Activation::Relu, false),
            (Tie::None, NormKind::Post, Activation::Swish, false),
            (Tie::None, NormKind::Pre, Activation::Gelu, true),
        ] {
            if tie == Tie::All && !joint {
                continue;
            }
            let config = TransformerConfig {
                tie,
                norm,
                activation,
                output_bias,
                ..tiny()
            };
            let model = random(config, &tokenizers);
            let folder = tempfile::tempdir().unwrap();
            write(folder.path(), &model, &tokenizers).unwrap();
            assert_same(&read_folder(folder.path()).unwrap(), &model);
            assert_eq!(Tokenizers::load(folder.path()).unwrap(), tokenizers);
        }
    }
}

#[test]
fn as_many_positions_are_written_as_the_bundle_allows_tokens() {
    let tokenizers = tokenizers(true);
    let model = random(tiny(), &tokenizers);
    let bundle = ModelConfig::Transformer(model.config.clone());
    let bundle = BundleConfig::new(bundle, model.vocabularies, 64);
    for (max_length, rows) in [(20, 1024), (3000, 3000)] {
        let folder = tempfile::tempdir().unwrap();
        let decode = DecodeConfig {
            max_length,
            ..DecodeConfig::default()
        };
        write_folder(folder.path(), &bundle, &decode, &tokenizers, &model.tensors).unwrap();
        let file = ModelFile::open(&folder.path().join("model.bin")).unwrap();
        let shape = file.shape("encoder/position_encodings/encodings");
        assert_eq!(shape, Some(&[rows, 8][..]));
    }
}

#[test]
fn what_the_converter_writes_is_read_and_written_byte_for_byte() {
    let model = parse(GOLDEN, true).unwrap();
    let config = TransformerConfig {
        encoder_layers: 1,
        decoder_layers: 2,
        activation: Activation::Swish,
        output_bias: true,
        ..tiny()
    };
    assert_eq!(model.config, config);
    let shapes = ModelConfig::Transformer(config).weight_shapes(model.vocabularies);
    let found = model.tensors.iter();
    let found = found.map(|(name, tensor)| (name.clone(), tensor.dims().to_vec()));
    assert_eq!(shapes.unwrap(), found.collect());
    let mut written = Vec::new();
    model.write(&mut written, path(), GOLDEN_POSITIONS).unwrap();
    assert!(written == GOLDEN, "other bytes");
}

#[test]
fn the_golden_weights_are_those_that_the_script_drew() {
    let model = parse(GOLDEN, true).unwrap();
    let sum = |name: &str| -> f64 {
        let values: Vec<f32> = model.tensors[name]
            .flatten_all()
            .unwrap()
            .to_vec1()
            .unwrap();
        values.into_iter().map(f64::from).sum()
    };
    let sums = include_str!("../../tests/golden/ctranslate2/sums.json");
    let sums: BTreeMap<String, f64> = serde_json::from_str(sums).unwrap();
    assert_eq!(sums.len(), model.tensors.len());
    for (name, expected) in sums {
        assert!((sum(&name) - expected).abs() < 1e-9, "{name}");
    }
}

#[test]
fn models_that_ctranslate2_does_not_have_are_refused_by_name() {
    let tokenizers = tokenizers(true);
    let model = random(tiny(), &tokenizers);
    let folder = tempfile::tempdir().unwrap();
    let refused = |config: ModelConfig, tensors: &BTreeMap<String, Tensor>| {
        let config = BundleConfig::new(config, model.vocabularies, 64);
        let decode = DecodeConfig::default();
        let result = write_folder(folder.path(), &config, &decode, &tokenizers, tensors);
        let error = result.unwrap_err();
        assert!(error.hint().is_some(), "{error}");
        error.to_string()
    };
    let transformer = |config| ModelConfig::Transformer(config);
    let recurrent = ModelConfig::Recurrent(RecurrentConfig::default());
    assert!(refused(recurrent, &model.tensors).contains("recurrent"));
    let snail = ModelConfig::Snail(SnailConfig::default());
    assert!(refused(snail, &model.tensors).contains("SNAIL"));
    let dot = transformer(TransformerConfig {
        score: Scores(vec![ScoreKind::ScaledDot, ScoreKind::Dot]),
        ..tiny()
    });
    assert!(refused(dot, &model.tensors).contains("scaled-dot"));

    let mut tensors = model.tensors.clone();
    let shared = tensors["model.shared.weight"].ones_like().unwrap();
    tensors.insert("model.shared.weight".into(), shared);
    let text = refused(transformer(tiny()), &tensors);
    assert!(
        text.contains("`model.shared.weight`, which is <pad>, is not zero"),
        "{text}"
    );
    tensors.remove("model.shared.weight");
    let text = refused(transformer(tiny()), &tensors);
    assert!(
        text.contains("weight `model.shared.weight` is missing"),
        "{text}"
    );
    let mut tensors = model.tensors.clone();
    tensors.insert("other".into(), tensors["model.shared.weight"].clone());
    let text = refused(transformer(tiny()), &tensors);
    assert!(
        text.contains("weight `other` belongs to no variable"),
        "{text}"
    );
    assert_eq!(
        folder.path().read_dir().unwrap().count(),
        0,
        "nothing was written"
    );
}

#[test]
fn a_cut_file_is_refused_wherever_it_ends() {
    for end in 0..GOLDEN.len() {
        let error = ModelFile::new(Cursor::new(&GOLDEN[..end]), path()).err();
        let Some(Error::Damaged { message, .. }) = error else {
            panic!("{end} bytes: {error:?}");
        };
        assert!(!message.contains('\n'), "{message}");
    }
    let longer = [GOLDEN, b"\0"].concat();
    let error = ModelFile::new(Cursor::new(&longer), path()).err().unwrap();
    assert!(
        error.to_string().contains("1 bytes after its end"),
        "{error}"
    );
}

/// A file that begins as it must, and goes on with these bytes.
fn with(parts: &[&[u8]]) -> Vec<u8> {
    [&GOLDEN[..4 + 2 + 16 + 4], &parts.concat()].concat()
}

#[test]
fn files_that_lie_are_refused_in_one_line() {
    let one = 1u32.to_le_bytes();
    let none = 0u32.to_le_bytes();
    let most = u32::MAX.to_le_bytes();
    let name: &[u8] = b"\x02\0a\0";
    let number: &[u8] = b"\0\x01\x01\0\0\0\x07"; // rank 0, 8 bits, one byte
    for (bytes, expected) in [
        (b"\x05\0\0\0".to_vec(), "binary version 5, not 6"),
        (b"PK\x03\x04".to_vec(), "binary version 67324752"),
        (
            [&GOLDEN[..4], b"\x05\0Spec\0\x07\0\0\0"].concat(),
            "Spec of revision",
        ),
        (with(&[&most]), "4294967295 variables"),
        (with(&[&one]), "shorter than it says"),
        (with(&[&one, b"\0\0"]), "not text"),
        (with(&[&one, b"\x01\0\0"]), "not text"),
        (with(&[&one, b"\x02\0ab"]), "not text"),
        (with(&[&one, b"\x03\0\xff\xfe\0"]), "not text"),
        (with(&[&one, b"\x03\0a\n\0"]), "not text"),
        (with(&[&one, b"\xff\xffa"]), "shorter than it says"),
        (
            with(&[&one, name, b"\0\x06\x01\0\0\0\x07"]),
            "unknown type 6",
        ),
        (with(&[&one, name, b"\xff"]), "shorter than it says"),
        (
            with(&[&one, name, b"\xff", &[255; 1020], b"\0", &most]),
            "4294967295 bytes",
        ),
        (
            with(&[&one, name, b"\x02", &none, &most, b"\0", &none]),
            "has 0 bytes",
        ),
        (
            with(&[&one, name, b"\x01", &one, b"\0", b"\x05\0\0\0"]),
            "has 5 bytes",
        ),
        (with(&[&one, name, number]), "shorter than it says"),
        (
            with(&[&2u32.to_le_bytes(), name, number, name, number]),
            "`a` is there twice",
        ),
        (
            with(&[&one, name, number, &one, name, name]),
            "`a` is there twice",
        ),
        (
            with(&[&one, name, number, &one, b"\x02\0b\0\x02\0c\0"]),
            "which is missing",
        ),
        (
            with(&[
                &one,
                name,
                number,
                &2u32.to_le_bytes(),
                b"\x02\0b\0",
                name,
                b"\x02\0b\0",
                name,
            ]),
            "`b` is there twice",
        ),
    ] {
        let error = ModelFile::new(Cursor::new(&bytes), path()).err();
        let text = error.expect(expected).to_string();
        assert!(
            text.starts_with("model.bin: ") && text.contains(expected),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    let file = with(&[&one, name, number, &none]);
    let text = parse(&file, true).err().unwrap().to_string();
    assert_eq!(text, "model.bin: no variable `encoder/num_heads`");
}

/// The golden file with a byte of a setting replaced.
fn changed(name: &str, value: u8) -> Vec<u8> {
    let mut bytes = GOLDEN.to_vec();
    let name = [name.as_bytes(), b"\0"].concat();
    let place = bytes.windows(name.len()).position(|bytes| bytes == name);
    bytes[place.unwrap() + name.len() + 6] = value; // after rank, type and size
    bytes
}

#[test]
fn settings_that_attend_does_not_have_are_refused_by_name() {
    for (name, value, expected) in [
        ("encoder/num_heads", 3, "is not divisible by heads = 3"),
        ("decoder/num_heads", 4, "`decoder/num_heads` is 4, not 2"),
        ("decoder/pre_norm", 1, "`decoder/pre_norm` is 1, not 0"),
        (
            "encoder/activation",
            1,
            "activation 1 is not ReLU, swish or exact GELU",
        ),
        ("decoder/alibi", 1, "`decoder/alibi` is 1, not 0"),
        ("decoder/start_from_zero_embedding", 0, "is 0, not 1"),
        (
            "encoder/pre_norm",
            1,
            "no variable `encoder/layer_norm/gamma`",
        ),
    ] {
        let error = parse(&changed(name, value), true).err();
        let error = error.expect(name);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(
            error
                .hint()
                .is_some_and(|hint| hint.contains("Pegasus and CTranslate2"))
        );
    }
    // Which head shows alignments does not change translations.
    assert!(parse(&changed("decoder/alignment_heads", 0), true).is_ok());
}
