//! Features in a file of safetensors.

use super::Problem;
use super::features::{Matrix, Number};
use safetensors::{Dtype, SafeTensors};

/// The only tensor of the file.
pub(super) fn parse(bytes: &[u8]) -> Result<Matrix<'_>, Problem> {
    let refuse =
        |what: String| Problem::new(what, "write one matrix of F16, BF16 or F32 to a file");
    let file = SafeTensors::deserialize(bytes)
        .map_err(|error| refuse(format!("damaged safetensors: {error}")))?;
    let tensors = file.tensors();
    let [(name, tensor)] = &tensors[..] else {
        return Err(refuse(format!("has {} tensors, not one", tensors.len())));
    };
    let number = match tensor.dtype() {
        Dtype::F16 => Number::F16,
        Dtype::BF16 => Number::Bf16,
        Dtype::F32 => Number::F32,
        other => return Err(refuse(format!("tensor {name:?} is {other:?}"))),
    };
    let &[rows, columns] = tensor.shape() else {
        let dimensions = tensor.shape().len();
        return Err(refuse(format!(
            "tensor {name:?} has {dimensions} dimensions, not two"
        )));
    };
    // The view borrows from the bytes of the file, which the tensors end.
    let start = bytes.len() - tensor.data().len();
    Ok(Matrix {
        shape: [rows, columns],
        number,
        bytes: &bytes[start..],
    })
}
