//! Heatmaps of attention weights, as SVG or as PNG rendered from that SVG.
//!
//! Columns are keys and rows are queries. A darker cell is a greater weight. A [`LitPicture`] shows attention to the
//! regions of a picture on the picture itself. A [`WordPicture`] shades the words of a
//! sentence instead.
//!
//! ```
//! use attend_infer::heatmap::{Axes, Panel, Picture};
//!
//! let axes = Axes::new(&["the", "dog"], &["der", "Hund"]);
//! let panel = Panel::new("layer 1, head 1", vec![vec![0.9, 0.1], vec![0.2, 0.8]]);
//! let svg = Picture::single(axes, panel).to_svg();
//! assert!(svg.contains("<title>Hund ← dog: 0.80</title>"));
//! ```

mod colour;
mod label;
mod layout;
mod lit;
#[cfg(feature = "png")]
mod png;
mod svg;
mod words;

use label::Label;
pub use label::{clean, escape, width as text_width};
use layout::Layout;
pub use lit::{LitPicture, Pixels};
#[cfg(feature = "png")]
pub use png::{Png, render as render_png};
pub use svg::FONTS;
pub use words::{WordLine, WordPicture};

/// The labels of the rows and columns, the same for all panels of a picture.
#[derive(Clone, Debug)]
pub struct Axes {
    columns: Vec<Label>,
    rows: Vec<Label>,
}

/// One heatmap: its weights, and the title below them.
#[derive(Clone, Debug)]
pub struct Panel {
    title: String,
    weights: Vec<Vec<f32>>,
}

/// One heatmap, or a grid of heatmaps with the same labels.
#[derive(Clone, Debug)]
pub struct Picture {
    axes: Axes,
    /// Rows of panels. Neither the grid nor a row is empty.
    panels: Vec<Vec<Panel>>,
    description: String,
}

impl Axes {
    /// Creates the labels of the keys (columns) and queries (rows).
    pub fn new(keys: &[impl AsRef<str>], queries: &[impl AsRef<str>]) -> Self {
        Self {
            columns: keys.iter().map(|key| Label::new(key.as_ref())).collect(),
            rows: queries.iter().map(|row| Label::new(row.as_ref())).collect(),
        }
    }
}

impl Panel {
    /// `weights` has a row for each query and a column for each key.
    pub fn new(title: impl Into<String>, weights: Vec<Vec<f32>>) -> Self {
        let title = title.into();
        Self { title, weights }
    }
}

impl Picture {
    /// One heatmap. Each cell has its weight as a tooltip.
    ///
    /// # Panics
    /// If the shape of the panel's weights differs from that of the axes.
    pub fn single(axes: Axes, panel: Panel) -> Self {
        Self::grid(axes, vec![vec![panel]])
    }

    /// Rows of small heatmaps, with row labels at the left and column labels at the top of the grid.
    ///
    /// # Panics
    /// If there is no panel, a row is empty, or the shape of a panel's weights differs from that of
    /// the axes.
    pub fn grid(axes: Axes, panels: Vec<Vec<Panel>>) -> Self {
        assert!(!panels.is_empty(), "the picture has no panel");
        for row in &panels {
            assert!(!row.is_empty(), "a row of the picture has no panel");
        }
        for Panel { title, weights } in panels.iter().flatten() {
            assert_eq!(weights.len(), axes.rows.len(), "rows of `{title}`");
            for row in weights {
                assert_eq!(row.len(), axes.columns.len(), "columns of `{title}`");
            }
        }
        Self {
            axes,
            panels,
            description: String::new(),
        }
    }

    /// Adds a text description, for screen readers.
    pub fn described(self, description: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            ..self
        }
    }

    /// The picture as an SVG document without external resources.
    pub fn to_svg(&self) -> String {
        self.to_inline_svg("weight")
    }

    /// The same for a page with several pictures: `id` is the name of the colour scale, which must be no other's.
    pub fn to_inline_svg(&self, id: &str) -> String {
        svg::write(self, &Layout::of(self), id)
    }

    /// The picture as PNG, with two pixels for each SVG unit. A very large picture has fewer.
    #[cfg(feature = "png")]
    pub fn to_png(&self) -> crate::Result<Png> {
        png::render(&self.to_svg())
    }

    /// Whether there is only one heatmap.
    fn is_single(&self) -> bool {
        self.panels.len() == 1 && self.panels[0].len() == 1
    }
}
