use attend_batch::SourceShape;
use attend_data::SourceReader;

/// Rows of features: npy or safetensors.
pub(super) fn run(bytes: &[u8]) {
    for width in [2, 3] {
        let _ = SourceReader::new(SourceShape::Features { width }, 10).decodes(bytes);
    }
}
