use std::io::Cursor;
use std::path::Path;

use attend_infer::ctranslate2::{Model, ModelFile};
use attend_model::ModelConfig;
use candle_core::Device;

/// `model.bin` of CTranslate2: every variable by itself, and a whole model, which then has the weights of its config.
pub(super) fn run(bytes: &[u8]) {
    let Ok(mut file) = ModelFile::new(Cursor::new(bytes), Path::new("model.bin")) else {
        return;
    };
    let names: Vec<String> = file.names().map(str::to_string).collect();
    for name in names {
        let shape = file.shape(&name).expect("a variable of the file").to_vec();
        if let Ok(tensor) = file.read(&name, &Device::Cpu) {
            assert_eq!(tensor.dims(), shape);
        }
    }
    for joint in [false, true] {
        let Ok(model) = Model::read(&mut file, joint) else {
            continue;
        };
        let shapes = model.tensors.iter();
        let shapes = shapes.map(|(name, tensor)| (name.clone(), tensor.dims().to_vec()));
        let config = ModelConfig::Transformer(model.config);
        let fits = config.check_weights(model.vocabularies, &shapes.collect());
        assert_eq!(fits, Ok(()));
    }
}
