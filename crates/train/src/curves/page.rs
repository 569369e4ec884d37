use std::fmt::Write;

use attend_infer::heatmap::{FONTS, escape};

use super::Curves;
use super::style::{COLOURS, COLOURS_ON_DARK, HEIGHT, WIDTH, colour, dashes};

/// The style of figures, with the colours of a page: `--ink`, `--faint`, `--grid`, `--axis` and `--paper`.
pub(crate) const STYLE: &str = include_str!("page.css");
/// Shows values under the pointer.
pub(crate) const SCRIPT: &str = include_str!("page.js");

const PAGE: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#222;--faint:#666;--grid:#e6e6ea;--axis:#aaa}
@media (prefers-color-scheme:dark){:root{--paper:#16181d;--ink:#e4e4e7;--faint:#9a9aa3;--grid:#2b2e36;--axis:#5a5d66}}
body{margin:0 auto;max-width:1120px;padding:1.5rem 1rem;background:var(--paper);color:var(--ink)}
h1{font-size:1.15rem;margin:0 0 .75rem}
";

pub(super) fn write(curves: &Curves) -> String {
    let names: Vec<&str> = curves.runs.iter().map(|run| run.name.as_str()).collect();
    let title = escape(&format!("Training curves: {}", names.join(", ")));
    let (figures, colours) = (curves.figures(), colours());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{PAGE}body{{font-family:{FONTS}}}\n{STYLE}{colours}</style>\n\
         <h1>{title}</h1>\n{figures}<script>\n{SCRIPT}</script>\n</html>\n"
    )
}

impl Curves {
    /// The panels as HTML, with a legend if there are several runs. Needs [`STYLE`], [`colours`] and [`SCRIPT`].
    pub(crate) fn figures(&self) -> String {
        let mut html = String::new();
        if self.runs.len() > 1 {
            html.push_str("<p class=\"legend\">");
            for (run, history) in self.runs.iter().enumerate() {
                let (number, dashes) = (colour(run), dashes(run));
                let name = escape(&history.name);
                // Writing to a string cannot fail.
                let _ = write!(
                    html,
                    "<span><svg width=\"24\" height=\"8\" aria-hidden=\"true\"><path class=\"c{number}\" d=\"M1 4H23\" \
                     stroke-width=\"2.4\"{dashes}/></svg>{name}</span> "
                );
            }
            html.push_str("</p>\n");
        }
        html.push_str("<div class=\"curves\">\n");
        for panel in self.panels() {
            let (title, svg, data) = (panel.title(), panel.to_svg(), panel.to_json());
            let _ = write!(
                html,
                "<figure class=\"curve\"><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\" \
                 font-family=\"{FONTS}\">\n{svg}</svg><div class=\"tip\" hidden></div>\
                 <script type=\"application/json\">{data}</script></figure>\n"
            );
        }
        html + "</div>\n"
    }
}

/// The rules for the colours of runs.
pub(crate) fn colours() -> String {
    let rules = |colours: [&str; 7]| -> String {
        let rules = colours.iter().enumerate().map(|(number, colour)| {
            format!(".c{number}{{stroke:{colour}}}.d{number}{{fill:{colour}}}.b{number}{{background:{colour}}}\n")
        });
        rules.collect()
    };
    format!(
        "{}@media (prefers-color-scheme:dark){{\n{}}}\n",
        rules(COLOURS),
        rules(COLOURS_ON_DARK)
    )
}
