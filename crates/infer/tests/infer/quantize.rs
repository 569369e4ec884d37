use std::fs;

use attend_infer::export::{ExportFormat, ExportOptions, export, quantize};
use attend_infer::{Bundle, DecodeConfig, Error, Quantization, Translation, Translator};
use attend_model::{AttentionChoice, Kernels, Packing};
use candle_core::Device;
use tempfile::TempDir;

use super::fixture::{Fixture, LINES};

fn translate(bundle: &Bundle) -> Vec<(Vec<u32>, u32)> {
    let kernels = Kernels::Fused;
    let translator = Translator::new(&*bundle.model, &bundle.tokenizers, &bundle.decode, kernels);
    let translations = translator.translate(&LINES).unwrap();
    let best = translations.into_iter();
    let best = best.map(|mut translation| translation.hypotheses.swap_remove(0));
    best.map(|best| (best.tokens, best.score.to_bits()))
        .collect()
}

fn open(path: &std::path::Path, packing: Packing) -> Bundle {
    Bundle::open_to_translate(path, &Device::Cpu, Kernels::Fused, packing).unwrap()
}

#[test]
fn a_bundle_in_8_bits_translates_as_the_model_quantised_on_loading() {
    for fixture in [Fixture::joint(), Fixture::separate()] {
        let folder = TempDir::new().unwrap();
        let (model, place) = (folder.path().join("model"), folder.path().join("int8"));
        fixture.write_with(&model, &fixture.tensors());
        quantize(&model, &place).unwrap();
        let stored = translate(&open(&place, Packing::Float));
        assert_eq!(stored, translate(&open(&model, Packing::Int8)));
        assert_eq!(stored, translate(&open(&place, Packing::Int8)));
        let floats = Bundle::open(&place, &Device::Cpu).unwrap();
        assert_eq!(
            floats.model.weights().count(),
            fixture.model.weights().count()
        );
        let again = folder.path().join("again");
        let error = quantize(&place, &again).err().unwrap().to_string();
        assert!(error.ends_with("is in 8 bits already"), "{error}");
    }
}

#[test]
fn bits_do_not_depend_on_batches_order_or_threads() {
    let folder = TempDir::new().unwrap();
    let model = folder.path().join("model");
    let fixture = Fixture::joint();
    fixture.write_with(&model, &fixture.tensors());
    let lines: Vec<String> = (0..40)
        .map(|i| format!("{} {}", LINES[i % LINES.len()], LINES[i * i % LINES.len()]))
        .collect();
    for packing in [Packing::Float, Packing::Int8] {
        for beam in [1, 3] {
            let bundle = open(&model, packing);
            let run = |lines: &[String], batch_tokens| {
                let decode = DecodeConfig {
                    beam,
                    batch_tokens,
                    ..bundle.decode.clone()
                };
                let kernels = Kernels::Fused;
                let translator =
                    Translator::new(&*bundle.model, &bundle.tokenizers, &decode, kernels);
                translator.translate(lines).unwrap()
            };
            let alone: Vec<Translation> = lines
                .iter()
                .flat_map(|line| run(std::slice::from_ref(line), 1))
                .collect();
            for batch_tokens in [1, 50, 300, 10_000] {
                assert_eq!(
                    run(&lines, batch_tokens),
                    alone,
                    "{packing:?} {batch_tokens}"
                );
            }
            let mut reversed = lines.clone();
            reversed.reverse();
            let mut found = run(&reversed, 200);
            found.reverse();
            assert_eq!(found, alone, "{packing:?}, in reverse order");
            for threads in [1, 2, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let found = pool.unwrap().install(|| run(&lines, 300));
                assert_eq!(found, alone, "{packing:?}, {threads} threads");
            }
        }
    }
}

#[test]
fn the_data_of_a_bundle_in_8_bits_is_aligned_for_vectors() {
    let folder = TempDir::new().unwrap();
    let (model, place) = (folder.path().join("model"), folder.path().join("int8"));
    let fixture = Fixture::joint();
    fixture.write_with(&model, &fixture.tensors());
    quantize(&model, &place).unwrap();
    let bytes = fs::read(place.join("model.safetensors")).unwrap();
    let header = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let tensors: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let shared = &tensors["model.shared.weight"];
    assert_eq!(shared["dtype"], "I8");
    let start = shared["data_offsets"][0].as_u64().unwrap() as usize;
    // A header is a multiple of 8 bytes, so that floats may leave 4 over.
    assert!([0, 4].contains(&((8 + header + start) % 64)));
}

#[test]
fn a_damaged_bundle_in_8_bits_is_an_error_that_names_the_matrix() {
    let folder = TempDir::new().unwrap();
    let (model, place) = (folder.path().join("model"), folder.path().join("int8"));
    let fixture = Fixture::joint();
    fixture.write_with(&model, &fixture.tensors());
    quantize(&model, &place).unwrap();
    fs::remove_file(place.join("manifest.json")).unwrap();
    // A config of a wider model: its matrices are not those of the file.
    let config = place.join("config.json");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("\"d_ff\": 24", "\"d_ff\": 20")).unwrap();
    let error = Bundle::open(&place, &Device::Cpu).err().unwrap();
    assert!(error.to_string().contains("is not a matrix of"), "{error}");
    // The same file as one of floats.
    let plain = text.replace(",\n  \"quantization\": \"int8\"", "");
    assert!(plain != text);
    fs::write(&config, plain).unwrap();
    let error = Bundle::open(&place, &Device::Cpu).err().unwrap();
    assert!(error.to_string().contains("of type I8"), "{error}");
}

#[test]
fn a_model_that_cannot_be_quantised_is_refused() {
    let folder = TempDir::new().unwrap();
    let fixture = Fixture::recurrent(AttentionChoice::None);
    let model = folder.path().join("model");
    fixture.write_with(&model, &fixture.tensors());
    let error = quantize(&model, &folder.path().join("int8")).err().unwrap();
    assert!(matches!(error, Error::Usage { .. }), "{error}");
    let opened =
        Bundle::open_to_translate(&model, &Device::Cpu, Kernels::Fused, Packing::Int8).err();
    assert!(matches!(opened, Some(Error::Usage { .. })));
    open(&model, Packing::Float);
}

#[test]
fn an_export_to_ctranslate2_in_8_bits_proves_itself_and_is_smaller() {
    let folder = TempDir::new().unwrap();
    let fixture = Fixture::joint();
    let model = folder.path().join("model");
    fixture.write_with(&model, &fixture.tensors());
    let size = |quantization, name: &str| {
        let place = folder.path().join(name);
        let options = ExportOptions {
            quantization,
            ..ExportOptions::default()
        };
        let format = ExportFormat::Ctranslate2;
        export(&model, format, &place, &options, Kernels::Fused).unwrap();
        fs::metadata(place.join("model.bin")).unwrap().len()
    };
    let (floats, integers) = (size(None, "f32"), size(Some(Quantization::Int8), "int8"));
    assert!(integers < floats, "{integers} and {floats}");
    let int8 = Bundle::open(&folder.path().join("int8"), &Device::Cpu).unwrap();
    let matrix = int8.model.weights().get("model.shared.weight").unwrap();
    let row: Vec<f32> = matrix.value().get(3).unwrap().to_vec1().unwrap();
    let most = row.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    for x in row {
        let steps = x / (most / 127.0);
        assert!((steps - steps.round()).abs() < 1e-3, "{steps}");
    }
}
