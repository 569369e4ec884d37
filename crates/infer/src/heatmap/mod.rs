//! Attention weights as a picture: SVG, which is text, and PNG, which is that SVG rendered.
//!
//! Source tokens are columns, the tokens that attend to them are rows, and the darker a cell, the
//! greater the weight.
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
#[cfg(feature = "png")]
mod png;
mod svg;

use label::Label;
use layout::Layout;
#[cfg(feature = "png")]
pub use png::Png;

/// What the rows and columns of every panel of a picture stand for.
#[derive(Clone, Debug)]
pub struct Axes {
    columns: Vec<Label>,
    rows: Vec<Label>,
}

/// The weights of one attention, and what is written below them.
#[derive(Clone, Debug)]
pub struct Panel {
    title: String,
    weights: Vec<Vec<f32>>,
}

/// One heatmap, or several of the same tokens side by side.
#[derive(Clone, Debug)]
pub struct Picture {
    axes: Axes,
    /// Never empty, nor is any of its rows.
    panels: Vec<Vec<Panel>>,
    description: String,
}

impl Axes {
    /// From what is attended to, and what attends to it.
    pub fn new(keys: &[impl AsRef<str>], queries: &[impl AsRef<str>]) -> Self {
        Self {
            columns: keys.iter().map(|key| Label::new(key.as_ref())).collect(),
            rows: queries.iter().map(|row| Label::new(row.as_ref())).collect(),
        }
    }
}

impl Panel {
    /// From a row of weights for every query.
    pub fn new(title: impl Into<String>, weights: Vec<Vec<f32>>) -> Self {
        let title = title.into();
        Self { title, weights }
    }
}

impl Picture {
    /// One heatmap, in which each cell tells its weight to whoever points at it.
    ///
    /// # Panics
    /// If the panel has not a weight for every row and column of the axes.
    pub fn single(axes: Axes, panel: Panel) -> Self {
        Self::grid(axes, vec![vec![panel]])
    }

    /// Small heatmaps in rows, with the labels at the left and on top of them all.
    ///
    /// # Panics
    /// If there is no panel, or one has not a weight for every row and column of the axes.
    pub fn grid(axes: Axes, panels: Vec<Vec<Panel>>) -> Self {
        assert!(!panels.is_empty(), "a picture needs a panel");
        for row in &panels {
            assert!(!row.is_empty(), "a row of a picture needs a panel");
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

    /// Says in words what there is to be seen, for those who cannot see it.
    pub fn described(self, description: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            ..self
        }
    }

    /// The picture as an SVG document, which needs nothing beside itself.
    pub fn to_svg(&self) -> String {
        svg::write(self, &Layout::of(self))
    }

    /// The picture as pixels, two for each unit of the SVG.
    #[cfg(feature = "png")]
    pub fn to_png(&self) -> crate::Result<Png> {
        png::render(&self.to_svg())
    }

    /// Whether there is only one heatmap.
    fn is_single(&self) -> bool {
        self.panels.len() == 1 && self.panels[0].len() == 1
    }
}
