use std::fmt::{self, Write};

use super::image::Shade;
use super::layout::TITLE_FONT;
use super::{Layout, LitPicture};
use crate::heatmap::label::Label;
use crate::heatmap::{FONTS, clean, escape};

const INK: &str = "#222";
const FRAME: &str = "#888";

/// `id` names the picture. Without it, there are places for pictures but none in them.
pub(super) fn write(picture: &LitPicture, layout: &Layout, id: Option<&str>) -> String {
    let mut svg = Svg(String::new());
    let id = id.map(escape);
    svg.head(picture, layout, id.as_deref());
    for (block, at) in picture.blocks.iter().zip(&layout.blocks) {
        if let Some((x, y)) = at.title {
            let title = escape(&clean(&block.title));
            svg.line(format_args!(
                "<text class=\"title\" x=\"{x}\" y=\"{y}\" font-size=\"{TITLE_FONT}\">{title}</text>"
            ));
        }
        let words = std::iter::once(None).chain(block.words.iter().map(Some));
        for (word, &place) in words.zip(&at.panels) {
            let (x, y) = place;
            svg.line(format_args!(
                "<g class=\"panel\" transform=\"translate({x} {y})\">"
            ));
            let (w, h) = layout.panel;
            if let Some(id) = &id {
                svg.line(format_args!("<use href=\"#{id}\"/>"));
            }
            if let (Some(word), Some(_)) = (word, &id) {
                let shade = Shade::of(&word.weights, picture.regions, picture.pixels.size());
                svg.line(format_args!(
                    "<image class=\"shade\" width=\"{w}\" height=\"{h}\" \
                     preserveAspectRatio=\"none\" href=\"{}\"/>",
                    shade.to_uri()
                ));
            }
            svg.line(format_args!(
                "<rect width=\"{w}\" height=\"{h}\" fill=\"none\" stroke=\"{FRAME}\"/>"
            ));
            svg.line(format_args!("</g>"));
            if let Some(word) = word {
                svg.word(&Label::new(&word.text), layout, place);
            }
        }
    }
    svg.line(format_args!("</svg>"));
    svg.0
}

struct Svg(String);

impl Svg {
    fn line(&mut self, line: fmt::Arguments) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
    }

    fn head(&mut self, picture: &LitPicture, layout: &Layout, id: Option<&str>) {
        let (w, h) = layout.size;
        let name = match escape(&clean(&picture.description)) {
            name if name.is_empty() => "What each word attended to".into(),
            name => name,
        };
        self.line(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" role=\"img\" aria-label=\"{name}\" font-family=\"{FONTS}\" \
             fill=\"{INK}\">"
        ));
        self.line(format_args!("<desc>{name}</desc>"));
        if let Some(id) = id {
            let (w, h) = layout.panel;
            let uri = picture.pixels.to_uri();
            self.line(format_args!(
                "<defs><image id=\"{id}\" width=\"{w}\" height=\"{h}\" \
                 preserveAspectRatio=\"none\" href=\"{uri}\"/></defs>"
            ));
        }
        self.line(format_args!(
            "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
        ));
    }

    fn word(&mut self, label: &Label, layout: &Layout, panel: (f32, f32)) {
        let (x, y) = layout.word_at(panel);
        let font = layout.font(label.text());
        let direction = match label.rtl {
            true => " unicode-bidi=\"plaintext\"",
            false => "",
        };
        let text = escape(label.text());
        self.line(format_args!(
            "<text class=\"word\" x=\"{x}\" y=\"{y}\" font-size=\"{font:.1}\" \
             text-anchor=\"middle\"{direction}>{text}</text>"
        ));
    }
}
