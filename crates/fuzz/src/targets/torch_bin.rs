use std::io::Cursor;
use std::path::Path;

use attend_infer::{TensorSource, TorchFile};
use candle_core::Device;

/// `pytorch_model.bin`, in both formats. A tensor has as many numbers as its shape says, and they are of the file.
pub(super) fn run(bytes: &[u8]) {
    let path = Path::new("pytorch_model.bin");
    let mut file = match TorchFile::new(Cursor::new(bytes), path) {
        Ok(file) => file,
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    for (name, shape) in file.shapes() {
        let Ok(tensor) = file.read(&name, &Device::Cpu) else {
            continue; // integers
        };
        assert_eq!(tensor.dims(), shape);
        assert!(tensor.elem_count() <= bytes.len());
    }
}
