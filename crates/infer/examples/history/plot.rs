use crate::system::System;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 20.0;
const RIGHT: f64 = 250.0;
const BOTTOM: f64 = 52.0;
/// A palette that is distinguishable with red-green colour blindness (Okabe and Ito 2008).
const COLOURS: [&str; 7] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#000000", "#f0c800",
];
const DASHES: [&str; 2] = ["none", "6 4"];

/// An SVG plot of BLEU by the number of source words, with a line for each system. The system without
/// attention (Sutskever's) is a thick red line. `trained` is the longest source of training, in words.
pub(crate) fn by_length(systems: &[System], trained: usize) -> String {
    let points = systems.iter().flat_map(|system| &system.by_length);
    let longest = points.map(|(words, _)| *words).max().unwrap_or(1) as f64;
    let x = |words: f64| LEFT + words / longest * (WIDTH - LEFT - RIGHT);
    let y = |bleu: f64| TOP + (1.0 - bleu / 100.0) * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\" \
         aria-label=\"BLEU by source length\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for bleu in (0..=100).step_by(20) {
        let (y, end) = (y(f64::from(bleu)), WIDTH - RIGHT);
        svg += &format!(
            "<path d=\"M{LEFT} {y:.1}H{end}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{bleu}</text>\n",
            LEFT - 8.0,
            y + 4.0
        );
    }
    for words in (0..=longest as usize).step_by(10) {
        svg += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{words}</text>\n",
            x(words as f64),
            HEIGHT - BOTTOM + 20.0
        );
    }
    let (middle, bottom, half) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - BOTTOM, HEIGHT / 2.0);
    svg += &format!(
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">source length in words</text>\n\
         <text x=\"14\" y=\"{half}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {half})\">BLEU</text>\n",
        HEIGHT - 12.0
    );
    let unseen = x(trained as f64 + 0.5);
    svg += &format!(
        "<path d=\"M{unseen:.1} {TOP}V{bottom}\" stroke=\"#888\" stroke-dasharray=\"2 3\"/>\
         <text x=\"{:.1}\" y=\"{}\" fill=\"#666\">unseen lengths</text>\n",
        unseen + 6.0,
        bottom - 8.0
    );
    for (n, system) in systems.iter().enumerate() {
        let (colour, dash, thick) = if system.name.starts_with("sutskever") {
            ("#d62728", "none", 3.0)
        } else {
            (
                COLOURS[n % COLOURS.len()],
                DASHES[n / COLOURS.len() % 2],
                1.6,
            )
        };
        let line = system.by_length.iter();
        let line = line.map(|&(words, bleu)| format!("{:.1},{:.1}", x(words as f64), y(bleu)));
        let style = format!(
            "fill=\"none\" stroke=\"{colour}\" stroke-width=\"{thick}\" stroke-dasharray=\"{dash}\""
        );
        let (legend, row) = (WIDTH - RIGHT + 14.0, TOP + 8.0 + 22.0 * n as f64);
        svg += &format!(
            "<polyline points=\"{}\" {style}/>\n<path d=\"M{legend} {row}h28\" {style}/>\
             <text x=\"{}\" y=\"{}\">{}</text>\n",
            line.collect::<Vec<_>>().join(" "),
            legend + 36.0,
            row + 4.0,
            system.name
        );
    }
    svg + "</svg>\n"
}
