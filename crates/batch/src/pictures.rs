use crate::Segments;

/// The size of the pictures that a model reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureShape {
    pub height: usize,
    pub width: usize,
    /// 3 for red, green and blue, 1 for grey.
    pub channels: usize,
}

impl PictureShape {
    /// The number of values of one picture.
    pub fn values(&self) -> usize {
        self.height * self.width * self.channels
    }
}

/// A batch of pictures of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Pictures {
    /// `[pictures, height, width, channels]`, from -1 (black) to 1 (white).
    pub values: Vec<f32>,
    pub shape: PictureShape,
    /// One sequence of length 1 for each picture.
    pub segments: Segments,
}

impl Pictures {
    /// # Panics
    /// If the values are not those of whole pictures.
    pub fn new(values: Vec<f32>, shape: PictureShape) -> Self {
        let count = values.len() / shape.values().max(1);
        assert_eq!(values.len(), count * shape.values(), "values of pictures");
        Self {
            values,
            shape,
            segments: Segments::packed(std::iter::repeat_n(1, count)),
        }
    }
}
