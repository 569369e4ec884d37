//! Sentences with their words shaded by attention, as in figure 1 of Cheng et al. 2016: a sentence for each step, with
//! the word of the step in red and, behind the words that it attends to, a blue that is darker for a greater weight.

use std::fmt::Write;

use super::label::{Label, clean, escape};
use super::{FONTS, colour};

/// A line of text: one step.
#[derive(Clone, Debug)]
pub struct WordLine {
    words: Vec<Word>,
}

#[derive(Clone, Debug)]
struct Word {
    label: Label,
    /// `None` if it is not attended to.
    weight: Option<f32>,
    /// Whether it is the word of the step.
    current: bool,
    /// Whether it is not in the sentence, but before it.
    before: bool,
}

impl WordLine {
    /// A sentence with the weights of its words: for those after the last weight, there is none. `current` is the
    /// word of this step, counted from 0.
    pub fn new(words: &[impl AsRef<str>], weights: &[f32], current: Option<usize>) -> Self {
        let words = words.iter().enumerate().map(|(i, word)| Word {
            label: Label::new(word.as_ref()),
            weight: weights.get(i).copied(),
            current: current == Some(i),
            before: false,
        });
        Self {
            words: words.collect(),
        }
    }

    /// The same with the word of this step before the sentence, if it is of another one.
    pub fn after(mut self, word: &str) -> Self {
        let word = Word {
            label: Label::new(word),
            weight: None,
            current: true,
            before: true,
        };
        self.words.insert(0, word);
        self
    }
}

/// Lines of text, one for each step. Lines that are too long for the picture are broken.
#[derive(Clone, Debug, Default)]
pub struct WordPicture {
    lines: Vec<WordLine>,
    description: String,
}

const FONT: f32 = 15.0;
/// The distance between rows of text of one step, and between steps.
const ROW: f32 = 24.0;
const STEP: f32 = 30.0;
const MARGIN: f32 = 12.0;
/// The space between words, which is half on each side of a word's shade.
const SPACE: f32 = 8.0;
/// The space after a word that is before the sentence.
const AFTER: f32 = 18.0;
/// The width at which lines are broken.
const WIDEST: f32 = 900.0;
const HEIGHT: f32 = 20.0;
const INK: &str = "#222";
/// Of words on dark shades.
const LIGHT: &str = "#fff";
/// The word of the step. On white and on all shades that have dark words it has a contrast of at least 4.
const RED: &str = "#c00000";
/// The weight from which on words are light.
const DARK: f32 = 0.5;
/// Smaller weights are not shaded: their colour is white.
const LEAST: f32 = 0.004;

/// Where a word is drawn: its left edge, the baseline and the width, with the space around it.
struct Placed<'a> {
    word: &'a Word,
    x: f32,
    y: f32,
    width: f32,
}

impl WordPicture {
    pub fn new(lines: Vec<WordLine>) -> Self {
        Self {
            lines,
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
        let (placed, width, height) = self.layout();
        let mut svg = String::new();
        let description = escape(&clean(&self.description));
        let name = if description.is_empty() {
            "Attention weights"
        } else {
            &description
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{name}\" \
             font-family=\"{FONTS}\" font-size=\"{FONT}\" fill=\"{INK}\">\n<desc>{name}</desc>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
        );
        for line in placed {
            let _ = writeln!(svg, "<g class=\"step\">");
            for placed in line {
                placed.write(&mut svg);
            }
            let _ = writeln!(svg, "</g>");
        }
        let _ = writeln!(svg, "</svg>");
        svg
    }

    /// The picture as PNG, with two pixels for each SVG unit. A very large picture has fewer.
    #[cfg(feature = "png")]
    pub fn to_png(&self) -> crate::Result<super::Png> {
        super::png::render(&self.to_svg())
    }

    /// The words of every step, and the width and the height of the picture.
    fn layout(&self) -> (Vec<Vec<Placed<'_>>>, f32, f32) {
        let lines = self.lines.iter();
        let whole = lines.map(|line| line.words.iter().map(Word::width).sum::<f32>());
        let inner = whole.fold(0.0, f32::max).min(WIDEST);
        let words = self.lines.iter().flat_map(|line| &line.words);
        let inner = words.map(Word::width).fold(inner, f32::max).ceil();
        let mut y = MARGIN + HEIGHT - 5.0;
        let mut lines = Vec::with_capacity(self.lines.len());
        for (number, line) in self.lines.iter().enumerate() {
            if number > 0 {
                y += STEP;
            }
            let rtl = line.is_rtl();
            let (mut placed, mut x) = (Vec::with_capacity(line.words.len()), 0.0);
            for word in &line.words {
                let width = word.width();
                if x > 0.0 && x + width > inner {
                    (x, y) = (0.0, y + ROW);
                }
                let left = if rtl { inner - x - width } else { x };
                placed.push(Placed {
                    word,
                    x: MARGIN + left,
                    y,
                    width,
                });
                x += width;
            }
            lines.push(placed);
        }
        let size = (inner + 2.0 * MARGIN, (y + 8.0 + MARGIN).ceil());
        (lines, size.0, size.1)
    }
}

impl WordLine {
    /// Whether most words of the sentence are written from right to left.
    fn is_rtl(&self) -> bool {
        let of_sentence = self.words.iter().filter(|word| !word.before);
        of_sentence.filter(|word| word.label.rtl).count() * 2 > self.words.len()
    }
}

impl Word {
    fn width(&self) -> f32 {
        let after = if self.before { AFTER } else { 0.0 };
        self.label.width() * FONT + SPACE + after
    }
}

impl Placed<'_> {
    fn write(&self, svg: &mut String) {
        let Word {
            label,
            weight,
            current,
            before,
        } = self.word;
        let width = self.width - if *before { AFTER } else { 0.0 };
        let weight = weight.unwrap_or(0.0);
        let text = escape(label.text());
        if weight >= LEAST {
            let (x, y) = (tenths(self.x + 1.0), tenths(self.y - HEIGHT + 5.0));
            let (width, fill) = (tenths(width - 2.0), colour::of(weight));
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" rx=\"3\" \
                 fill=\"{fill}\"><title>{text}: {weight:.2}</title></rect>"
            );
        }
        let (x, y) = (tenths(self.x + width / 2.0), tenths(self.y));
        let mut attributes = format!("x=\"{x}\" y=\"{y}\" text-anchor=\"middle\"");
        if label.rtl {
            attributes.push_str(" unicode-bidi=\"plaintext\"");
        }
        if *current {
            let _ = write!(attributes, " class=\"current\" font-weight=\"bold\"");
            // On a dark shade red would not be readable.
            let outline = " stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\"";
            let outline = if weight >= DARK { outline } else { "" };
            let _ = write!(attributes, " fill=\"{RED}\"{outline}");
        } else if weight >= DARK {
            let _ = write!(attributes, " fill=\"{LIGHT}\"");
        }
        let _ = writeln!(svg, "<text {attributes}>{text}</text>");
    }
}

/// Rounds to one decimal, which is precise enough and keeps the file small.
fn tenths(x: f32) -> f32 {
    (x * 10.0).round() / 10.0
}
