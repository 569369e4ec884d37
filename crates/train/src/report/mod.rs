//! One page about a run: what was trained on what, how that went, and how to use the model.
//!
//! | file | contents |
//! |---|---|
//! | `facts` | what the files of a run say |
//! | `markup` | tables and text as HTML |
//! | `summary` | the first lines: what it is, and its most important numbers |
//! | `samples` | translations over time |
//! | `attention` | heatmaps of a few sentences |
//! | `details` | scores, data, settings, provenance |
//! | `usage` | commands that use the model |
//! | `date` | seconds as a date |

mod attention;
mod date;
mod details;
mod facts;
mod markup;
mod samples;
mod summary;
mod usage;

use std::path::{Path, PathBuf};

use attend_infer::heatmap::{FONTS, escape};
use attend_infer::run::RunFolder;
use attend_model::Kernels;
use candle_core::Device;

use crate::curves::{self, Curves, Horizontal};
use crate::{Error, Result};
use facts::Facts;
use markup::section;

const CSS: &str = include_str!("report.css");

/// Writes the report of a run to `output`, by default `report.html` in its folder, and returns its path. What cannot be
/// read is left out, with a sentence that says why.
pub fn write_report(
    folder: &Path,
    output: Option<&Path>,
    device: &Device,
    kernels: Kernels,
) -> Result<PathBuf> {
    let run = RunFolder::new(folder);
    // The folder of a checkpoint has a config, too, but no log.
    if !folder.is_dir() || !run.is_used()? || run.event_log()?.is_none() {
        let message = format!(
            "{} is not the folder of a run: it has no config.toml, or no metrics.jsonl",
            folder.display()
        );
        let hint = "give the folder that `out` of a config names; `train ls` lists runs";
        return Err(Error::usage(message, hint));
    }
    let path = output.map_or_else(|| run.report_path(), Path::to_path_buf);
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    if extension != "html" && extension != "htm" {
        return Err(Error::usage(
            format!("{}: not an .html file", path.display()),
            "use a file name that ends in .html",
        ));
    }
    curves::check_output(&path, &[folder.to_path_buf()])?;
    let facts = Facts::read(run, device);
    curves::write_output(&path, page(&facts, kernels).as_bytes())?;
    Ok(path)
}

fn page(facts: &Facts, kernels: Kernels) -> String {
    let folder = facts.run.path().to_path_buf();
    let curves = match Curves::read(&[folder], Horizontal::Steps) {
        Ok(curves) => curves.figures(),
        Err(error) => markup::note(&error.to_string()),
    };
    let sections = [
        section("curves", "Curves", &curves),
        section("samples", "Translations over time", &samples::write(facts)),
        section("attention", "Attention", &attention::write(facts, kernels)),
        section("scores", "Scores", &details::scores(facts)),
        section("data", "Data", &details::data(facts)),
        section("model", "Model and training", &details::settings(facts)),
        section("use", "Use the model", &usage::write(facts)),
        section(
            "origin",
            "Environment and provenance",
            &details::origin(facts),
        ),
    ];
    let (title, header) = (escape(&facts.name), summary::write(facts));
    let (style, colours, script) = (curves::STYLE, curves::colours(), curves::SCRIPT);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} · training report</title>\n\
         <style>\n{CSS}body{{font-family:{FONTS}}}\n{style}{colours}</style>\n\
         {header}<main>\n{}</main>\n<script>\n{script}</script>\n</html>\n",
        sections.concat()
    )
}
