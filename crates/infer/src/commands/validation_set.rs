use std::path::Path;

use attend_cli::Bars;
use attend_data::{BadLines, Cleaner, Corpus, DataConfig, SourceReader};
use attend_infer::run::{Checkpoint, RunFolder};
use attend_infer::{Error, Result, local};
use serde::Deserialize;

/// The validation data of the config that a model was trained with. Paths in it are relative to the working directory,
/// as in training.
pub(super) fn validation_set(model: &Path) -> Result<Corpus> {
    // A checkpoint has the config; what is made of checkpoints is beside it.
    let parent = model.parent().map(Path::to_path_buf);
    let folders = [Some(model.to_path_buf()), parent];
    let configs = folders.into_iter().flatten().map(|folder| {
        let run = RunFolder::new(folder);
        run.config()
            .transpose()
            .map(|text| (run.config_path(), text))
    });
    let none = |what: String| Error::Usage {
        message: what,
        hint: "give the validation data: --src FILE --ref FILE".into(),
    };
    let Some((path, text)) = configs.flatten().next() else {
        let model = model.display();
        return Err(none(format!("{model} has no {}", Checkpoint::CONFIG)));
    };
    #[derive(Deserialize)]
    struct Config {
        data: DataConfig,
    }
    let config = toml::from_str::<Config>(&text?).map_err(|error| Error::Damaged {
        path: path.clone(),
        message: error.message().to_string(),
    })?;
    let data = config.data;
    let Some(valid) = &data.valid else {
        return Err(none(format!("{} has no data.valid", path.display())));
    };
    let paths = local::all(valid, &data.source, &data.target, &Bars)?;
    let inputs = paths.resolve(&data.source, &data.target)?;
    let cleaner = Cleaner::held_out(&data.clean, data.max_length);
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for input in &inputs {
        for pair in input.open_as(data.source_kind)? {
            let pair = match pair {
                Err(error) if error.is_bad_line() && data.bad_lines == BadLines::Skip => continue,
                pair => pair?,
            };
            sources.push(match data.source_kind.is_text() {
                true => cleaner.normalize(&pair.source).into_owned(),
                false => pair.source,
            });
            targets.push(cleaner.normalize(&pair.target).into_owned());
        }
    }
    SourceReader::find_all(&inputs, data.source_kind)?;
    Ok(Corpus::new(sources, targets)?)
}
