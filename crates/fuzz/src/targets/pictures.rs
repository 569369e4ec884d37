use attend_batch::{PictureShape, SourceShape};
use attend_data::SourceReader;

/// A picture: PNG, JPEG or SVG.
pub(super) fn run(bytes: &[u8]) {
    let shape = PictureShape {
        height: 16,
        width: 24,
        channels: 3,
    };
    let reader = SourceReader::new(SourceShape::Pictures(shape), 10);
    let _ = reader.decodes(bytes);
}
