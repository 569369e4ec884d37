//! A picture with what each word of its caption attended to lit up, as in figures 2 and 3 of Xu et al. 2015.
//!
//! The first panel is the picture. On each other one it is darkened where the word below did not attend.

mod image;
mod layout;
#[cfg(feature = "png")]
mod png;
mod svg;

pub use image::Pixels;
use layout::Layout;

/// A picture, and what the words of its caption attended to.
#[derive(Clone, Debug)]
pub struct LitPicture {
    pixels: Pixels,
    /// Rows and columns of the regions.
    regions: (usize, usize),
    blocks: Vec<Block>,
    description: String,
}

/// What the words attended to by one head, or by the mean of several.
#[derive(Clone, Debug)]
struct Block {
    title: String,
    words: Vec<Word>,
}

#[derive(Clone, Debug)]
struct Word {
    text: String,
    /// The weights of the regions, row by row.
    weights: Vec<f32>,
}

impl LitPicture {
    /// A picture whose regions are in so many rows and columns. Add what attends with [`LitPicture::with`].
    pub fn new(pixels: Pixels, regions: (usize, usize)) -> Self {
        Self {
            pixels,
            regions,
            blocks: Vec::new(),
            description: String::new(),
        }
    }

    /// Adds the panels of a head: for each word, the weights of the regions, row by row. The title is shown if there
    /// is more than one head.
    ///
    /// # Panics
    /// If a word does not have a weight for each region.
    pub fn with(
        mut self,
        title: impl Into<String>,
        words: &[impl AsRef<str>],
        weights: Vec<Vec<f32>>,
    ) -> Self {
        let (rows, columns) = self.regions;
        let words = words.iter().zip(weights).map(|(text, weights)| {
            assert_eq!(weights.len(), rows * columns, "a weight for each region");
            let text = text.as_ref().into();
            Word { text, weights }
        });
        self.blocks.push(Block {
            title: title.into(),
            words: words.collect(),
        });
        self
    }

    /// Adds a text description, for screen readers.
    pub fn described(self, description: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            ..self
        }
    }

    /// An SVG document that has the picture in it, and refers to nothing outside.
    pub fn to_svg(&self) -> String {
        self.to_inline_svg("picture")
    }

    /// The same for a page with several: `id` is the name of the picture, which must be no other's.
    pub fn to_inline_svg(&self, id: &str) -> String {
        svg::write(self, &Layout::of(self), Some(id))
    }

    /// The same as PNG, with two pixels for each SVG unit. A very large one has fewer.
    #[cfg(feature = "png")]
    pub fn to_png(&self) -> crate::Result<super::Png> {
        png::render(self)
    }
}
