use std::path::{Path, PathBuf};

use attend_batch::SourceShape;
use attend_infer::{Error, Result};

/// What attention is drawn to.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct SourceArgs {
    /// Source sentence
    #[arg(long, value_name = "SENTENCE")]
    text: Option<String>,

    /// Source picture, PNG, JPEG or SVG. For each token of the caption, the picture is drawn with what it attended
    /// to lit up
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,

    /// Source features, npy or safetensors; the columns of the heatmap are its rows
    #[arg(long, value_name = "FILE")]
    features: Option<PathBuf>,
}

impl SourceArgs {
    /// The sentence, or the path of the file; an error if the model reads something else.
    pub(super) fn line(&self, run: &Path, shape: SourceShape) -> Result<String> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let (given, line) = match (&self.text, &self.image, &self.features) {
            (Some(text), ..) => ("--text", text.clone()),
            (_, Some(image), _) => ("--image", path(image)),
            (.., Some(features)) => ("--features", path(features)),
            (None, None, None) => ("--text", String::new()), // refused by clap
        };
        let wanted = match shape {
            SourceShape::Text => "--text",
            SourceShape::Pictures(_) => "--image",
            SourceShape::Features { .. } => "--features",
        };
        if given != wanted {
            return Err(Error::Usage {
                message: format!("{given}: {} reads {shape}", run.display()),
                hint: format!("give its source with {wanted}"),
            });
        }
        Ok(line)
    }
}
