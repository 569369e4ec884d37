use super::LitPicture;
use crate::heatmap::text_width;

/// The longer side of a panel.
const PANEL: f32 = 160.0;
/// Panels side by side.
const COLUMNS: usize = 5;
const GAP: f32 = 12.0;
const MARGIN: f32 = 16.0;
/// The size of the letters of a word, and of a title.
const FONT: f32 = 15.0;
pub(super) const TITLE_FONT: f32 = 13.0;
/// The height of a line of words, and of titles.
const LINE: f32 = 26.0;

/// Where everything is, in SVG units.
pub(super) struct Layout {
    pub(super) size: (f32, f32),
    /// The size of a panel without its word.
    pub(super) panel: (f32, f32),
    pub(super) blocks: Vec<BlockLayout>,
}

pub(super) struct BlockLayout {
    /// The baseline of the title, if there is one.
    pub(super) title: Option<(f32, f32)>,
    /// The upper left corner of the picture, and of the panel of each word.
    pub(super) panels: Vec<(f32, f32)>,
}

impl Layout {
    pub(super) fn of(picture: &LitPicture) -> Self {
        let (w, h) = picture.pixels.size();
        let scale = PANEL / w.max(h) as f32;
        let panel = ((w as f32 * scale).max(8.0), (h as f32 * scale).max(8.0));
        let most = picture.blocks.iter().map(|block| block.words.len() + 1);
        let columns = most.max().unwrap_or(1).min(COLUMNS);
        let has_titles = picture.blocks.len() > 1;
        let mut y = MARGIN;
        let mut blocks = Vec::new();
        for block in &picture.blocks {
            let title = has_titles.then_some((MARGIN, y + TITLE_FONT));
            if has_titles {
                y += LINE;
            }
            let count = block.words.len() + 1;
            let panels = (0..count).map(|i| {
                let (row, column) = ((i / columns) as f32, (i % columns) as f32);
                let x = MARGIN + column * (panel.0 + GAP);
                (x, y + row * (panel.1 + LINE + GAP))
            });
            let panels = panels.collect();
            y += count.div_ceil(columns) as f32 * (panel.1 + LINE + GAP);
            blocks.push(BlockLayout { title, panels });
        }
        let width = 2.0 * MARGIN + columns as f32 * (panel.0 + GAP) - GAP;
        Self {
            size: (width.ceil(), (y - GAP + MARGIN).ceil()),
            panel,
            blocks,
        }
    }

    /// The size of the letters of a word: smaller if it is wider than its panel.
    pub(super) fn font(&self, word: &str) -> f32 {
        let width = text_width(word) * FONT;
        (FONT * ((self.panel.0 + GAP) / width.max(1.0)).min(1.0)).max(5.0)
    }

    /// The baseline of the word of a panel: its middle.
    pub(super) fn word_at(&self, (x, y): (f32, f32)) -> (f32, f32) {
        (x + self.panel.0 / 2.0, y + self.panel.1 + 1.2 * FONT)
    }
}
