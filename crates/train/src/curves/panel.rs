use std::fmt::Write;

use attend_infer::heatmap::escape;
use serde_json::json;

use super::Curves;
use super::horizontal::Horizontal;
use super::points::{Point, smooth, thin};
use super::quantity::Quantity;
use super::scale::Scale;
use super::style::{
    AXIS, BOTTOM, COLOURS, FAINT, GRID, HEIGHT, INK, LEFT, RIGHT, TOP, WIDTH, colour, dashes,
};

/// The most points of a line, about two for each unit of its width.
const MOST_POINTS: usize = 600;
/// Up to this many validations, each has a dot.
const MOST_DOTS: usize = 40;

/// One quantity of all runs.
pub(super) struct Panel<'a> {
    quantity: Quantity,
    horizontal: Horizontal,
    x: Scale,
    y: Scale,
    series: Vec<Series<'a>>,
    /// Whether there is only one run.
    single: bool,
}

/// One quantity of one run.
struct Series<'a> {
    run: usize,
    name: &'a str,
    points: Vec<Point>,
    smooth: Option<Vec<Point>>,
    best: Option<Point>,
}

impl<'a> Panel<'a> {
    /// `None` if no run has this quantity.
    pub(super) fn new(curves: &'a Curves, quantity: Quantity) -> Option<Self> {
        let series = curves.runs.iter().enumerate().map(|(run, history)| {
            let points = history.points(quantity);
            let smooth = smooth(points).filter(|_| quantity.is_noisy());
            let best = history.best.filter(|_| quantity.is_validated());
            let best = best.and_then(|best| points.iter().find(|point| point.x == best));
            Series {
                run,
                name: &history.name,
                points: thin(points, MOST_POINTS),
                smooth: smooth.map(|points| thin(&points, MOST_POINTS)),
                best: best.copied(),
            }
        });
        let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
        let values = series.iter().flat_map(|series| &series.points);
        let values: Vec<f64> = values.map(|point| point.y).collect();
        let (low, high) = curves.span();
        (!values.is_empty()).then(|| Self {
            quantity,
            horizontal: curves.horizontal,
            x: Scale::exact(low, high),
            y: Scale::of(quantity, &values),
            series,
            single: curves.runs.len() == 1,
        })
    }

    pub(super) fn title(&self) -> &'static str {
        self.quantity.title()
    }

    /// The panel's elements, with its upper left corner at 0, 0.
    pub(super) fn to_svg(&self) -> String {
        let mut svg = String::new();
        self.heading(&mut svg);
        self.axes(&mut svg);
        for series in &self.series {
            self.lines(series, &mut svg);
        }
        // Above all lines.
        for series in &self.series {
            self.best(series, &mut svg);
        }
        svg
    }

    fn heading(&self, svg: &mut String) {
        let unit = match (self.quantity.unit(), self.y.is_logarithmic()) {
            ("", true) => "log scale".into(),
            (unit, true) => format!("{unit}, log scale"),
            (unit, false) => unit.to_string(),
        };
        let title = self.title();
        line(
            svg,
            format_args!(
                "<text class=\"ink\" x=\"4\" y=\"16\" font-size=\"13\" font-weight=\"600\" fill=\"{INK}\">{title}\
                 <tspan class=\"faint\" dx=\"6\" font-size=\"10.5\" font-weight=\"400\" fill=\"{FAINT}\">{unit}</tspan>\
                 </text>"
            ),
        );
        if let [series] = &self.series[..]
            && self.single
        {
            let last = series.points.last().map(|point| ("", *point));
            let shown = series.best.map(|best| ("best ", best)).or(last);
            if let Some((what, point)) = shown {
                let (x, value) = (WIDTH - RIGHT, self.quantity.describe(point.y));
                line(
                    svg,
                    format_args!(
                        "<text class=\"ink\" x=\"{x}\" y=\"16\" font-size=\"12\" text-anchor=\"end\" fill=\"{INK}\">\
                         {what}{value}</text>"
                    ),
                );
            }
        }
    }

    fn axes(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let y_ticks = self.y.ticks().into_iter();
        let y_ticks: Vec<_> = y_ticks
            .map(|tick| (self.y_of(tick.value), tick.label))
            .collect();
        let x_ticks = self.x.ticks().into_iter();
        let x_ticks: Vec<_> = x_ticks
            .map(|tick| (self.x_of(tick.value), tick.label))
            .collect();
        let across = y_ticks
            .iter()
            .map(|(y, _)| format!("M{LEFT} {}H{right}", tenths(*y)));
        let down = x_ticks
            .iter()
            .map(|(x, _)| format!("M{} {TOP}V{bottom}", tenths(*x)));
        let grid: String = across.chain(down).collect();
        line(
            svg,
            format_args!(
                "<path class=\"grid\" d=\"{grid}\" stroke=\"{GRID}\" stroke-width=\"0.75\" fill=\"none\"/>"
            ),
        );
        line(
            svg,
            format_args!(
                "<path class=\"axis\" d=\"M{LEFT} {bottom}H{right}\" stroke=\"{AXIS}\" stroke-width=\"1\" fill=\"none\"/>"
            ),
        );
        line(
            svg,
            format_args!("<g class=\"faint\" font-size=\"10.5\" fill=\"{FAINT}\">"),
        );
        for (y, label) in &y_ticks {
            let (x, y) = (LEFT - 6.0, tenths(y + 3.7));
            line(
                svg,
                format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{label}</text>"),
            );
        }
        for (x, label) in &x_ticks {
            let (x, y) = (tenths(*x), bottom + 15.0);
            line(
                svg,
                format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>"),
            );
        }
        let (x, y, name) = (
            tenths((LEFT + right) / 2.0),
            bottom + 29.0,
            self.horizontal.title(),
        );
        line(
            svg,
            format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{name}</text></g>"),
        );
    }

    fn lines(&self, series: &Series, svg: &mut String) {
        let number = colour(series.run);
        let (stroke, dashes) = (COLOURS[number], dashes(series.run));
        let mut path = |points: &[Point], width: f64, opacity: f64| {
            let d = self.path(points);
            line(
                svg,
                format_args!(
                    "<path class=\"c{number}\" d=\"{d}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" \
                     stroke-opacity=\"{opacity}\" stroke-linejoin=\"round\" stroke-linecap=\"round\"{dashes}/>"
                ),
            );
        };
        match &series.smooth {
            Some(smooth) => {
                path(&series.points, 1.0, 0.3);
                path(smooth, 1.8, 1.0);
            }
            None => path(&series.points, 1.6, 1.0),
        }
        let dots = self.quantity.is_validated() && series.points.len() <= MOST_DOTS;
        if dots || series.points.len() == 1 {
            for point in &series.points {
                let (x, y) = self.place(point);
                line(
                    svg,
                    format_args!(
                        "<circle class=\"d{number}\" cx=\"{x}\" cy=\"{y}\" r=\"2\" fill=\"{stroke}\"/>"
                    ),
                );
            }
        }
    }

    fn best(&self, series: &Series, svg: &mut String) {
        let Some(best) = &series.best else { return };
        let (x, y) = self.place(best);
        let number = colour(series.run);
        let (stroke, value) = (COLOURS[number], self.quantity.describe(best.y));
        let place = self.horizontal.describe(best.x);
        let title = escape(&format!(
            "{}: best validation, {value} at {place}",
            series.name
        ));
        line(
            svg,
            format_args!(
                "<circle class=\"c{number} best\" cx=\"{x}\" cy=\"{y}\" r=\"4.2\" fill=\"#fff\" stroke=\"{stroke}\" \
                 stroke-width=\"2\"><title>{title}</title></circle>"
            ),
        );
    }

    fn path(&self, points: &[Point]) -> String {
        let mut d = String::new();
        for point in points {
            let (x, y) = self.place(point);
            let command = if d.is_empty() { 'M' } else { 'L' };
            let _ = write!(d, "{command}{x} {y}"); // writing to a string cannot fail
        }
        d
    }

    fn place(&self, point: &Point) -> (f64, f64) {
        (tenths(self.x_of(point.x)), tenths(self.y_of(point.y)))
    }

    fn x_of(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y_of(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM)
    }

    /// The points with their values, for the script of a page.
    pub(super) fn to_json(&self) -> String {
        let series = self.series.iter().map(|series| {
            let points = series.points.iter().map(|point| {
                let (x, y) = self.place(point);
                json!([
                    x,
                    y,
                    self.horizontal.describe(point.x),
                    self.quantity.describe(point.y)
                ])
            });
            json!({
                "name": if self.single { "" } else { series.name },
                "colour": colour(series.run),
                "points": points.collect::<Vec<_>>(),
            })
        });
        let data = json!({ "width": WIDTH, "series": series.collect::<Vec<_>>() });
        // `</script>` in a name must not end the script.
        data.to_string().replace('<', "\\u003c")
    }
}

pub(super) fn line(svg: &mut String, line: std::fmt::Arguments) {
    let _ = writeln!(svg, "{line}"); // writing to a string cannot fail
}

/// Rounds to one decimal, which is precise enough and keeps the file small.
pub(super) fn tenths(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}
