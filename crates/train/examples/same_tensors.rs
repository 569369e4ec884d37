//! Compares the tensors of two safetensors files: names, types, shapes and bits. The order of the tensors and
//! the files' metadata do not matter. `scripts/same-bits.sh` uses it.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::{env, fs};

use anyhow::{Context, bail};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

fn main() -> anyhow::Result<ExitCode> {
    let paths: Vec<String> = env::args().skip(1).collect();
    let [a, b] = &paths[..] else {
        bail!("usage: same_tensors A.safetensors B.safetensors")
    };
    let read = |path: &String| fs::read(path).with_context(|| format!("cannot read {path}"));
    let (first, second) = (read(a)?, read(b)?);
    let (first, second) = (by_name(&first)?, by_name(&second)?);
    let mut differences = Vec::new();
    for name in first.keys().chain(second.keys()) {
        match (first.get(name), second.get(name)) {
            (Some(one), Some(other)) if one == other => {}
            (Some(one), Some(other)) if one.shape() != other.shape() => {
                differences.push(format!("{name}: {:?} and {:?}", one.shape(), other.shape()));
            }
            (Some(_), Some(_)) => differences.push(format!("{name}: other bits")),
            (Some(_), None) => differences.push(format!("{name}: only in {a}")),
            (None, _) => differences.push(format!("{name}: only in {b}")),
        }
    }
    differences.sort();
    differences.dedup();
    if differences.is_empty() {
        say(&format!("{b}: {} tensors, the same bits", first.len()));
        return Ok(ExitCode::SUCCESS);
    }
    for difference in differences.iter().take(10) {
        say(difference);
    }
    say(&format!("{} of the tensors differ", differences.len()));
    Ok(ExitCode::FAILURE)
}

fn by_name(bytes: &[u8]) -> anyhow::Result<BTreeMap<String, TensorView<'_>>> {
    Ok(SafeTensors::deserialize(bytes)?
        .tensors()
        .into_iter()
        .collect())
}

#[allow(clippy::print_stderr)] // a tool for people at a terminal
fn say(line: &str) {
    eprintln!("{line}");
}
