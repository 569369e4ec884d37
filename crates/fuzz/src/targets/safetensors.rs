use std::io::Cursor;
use std::path::Path;
use std::sync::LazyLock;

use attend_infer::{TensorSource, WeightsFile, parse_tensors};
use attend_model::{ModelConfig, RecurrentConfig, Vocabularies};
use candle_core::{Device, Tensor};

/// The model of the bundle.
static MODEL: LazyLock<ModelConfig> = LazyLock::new(|| {
    ModelConfig::Recurrent(RecurrentConfig {
        d_embed: 2,
        d_hidden: 2,
        ..RecurrentConfig::default()
    })
});

/// `model.safetensors` or `optimizer.safetensors`, read in both of our ways: tensor by tensor, and as a whole.
pub(super) fn run(bytes: &[u8]) {
    let path = Path::new("model.safetensors");
    let whole = parse_tensors(bytes, path, &Device::Cpu);
    let Ok(mut file) = WeightsFile::new(Cursor::new(bytes), path) else {
        return;
    };
    if file.require_floats().is_err() {
        // Not of a bundle. Other tensors can be listed, and read if they are floats.
        for (name, shape) in file.shapes() {
            if let Ok(tensor) = file.read(&name, &Device::Cpu) {
                assert_eq!(tensor.dims(), shape);
            }
        }
        return;
    }
    let whole = whole.expect("a file that can be read in parts can be read as a whole");
    let shapes = file.shapes();
    assert_eq!(shapes.len(), whole.len());
    for (name, shape) in &shapes {
        let tensor = file.read(name, &Device::Cpu).expect("a tensor of the file");
        assert_eq!(
            (tensor.dims(), bits(&tensor)),
            (&shape[..], bits(&whole[name]))
        );
    }
    let vocabularies = Vocabularies {
        source: Some(5),
        target: 5,
        joint: true,
    };
    let _ = MODEL.check_weights(vocabularies, &shapes);
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    let values = tensor.flatten_all().and_then(|flat| flat.to_vec1::<f32>());
    values
        .expect("32-bit floats")
        .into_iter()
        .map(f32::to_bits)
        .collect()
}
