use attend_batch::{PictureShape, SourceShape};
use attend_config::ConfigError;
use attend_ops::Grid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RecurrentConfig, Tie, TransformerConfig};

/// `[model.caption]`: words from pictures or from rows of features. One of `picture` and `features`, and one of
/// `recurrent` and `transformer`, must be there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CaptionConfig {
    /// Numbers in a row of features, for sources that are rows of features, such as the frames of speech.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub features: Option<usize>,
    /// Whether the place of a region in its picture, or of a row among its rows, is added to it.
    pub positions: bool,
    /// Dropout on the regions, before the decoder or its encoder layers read them.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub dropout: f32,
    /// The size that every picture is scaled to, for sources that are pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<PictureConfig>,
    /// The convolutional layers that divide pictures into regions, from the first to the last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockConfig>,
    /// A recurrent decoder. Its `encoder_layers` may be 0: then the regions go to the decoder as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recurrent: Option<RecurrentConfig>,
    /// A Transformer's decoder. Its `encoder_layers` may be 0: then the regions go to the decoder as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transformer: Option<TransformerConfig>,
}

/// `model.caption.picture`: the size of the pictures that the model reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureConfig {
    /// Height in pixels.
    #[schemars(range(min = 1, max = 4096))]
    pub height: usize,
    /// Width in pixels.
    #[schemars(range(min = 1, max = 4096))]
    pub width: usize,
    /// Whether pictures are read without their colours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grey: bool,
}

/// One of `model.caption.blocks`: convolutions of 3 × 3 cells, each with layer normalisation and ReLU, and then
/// max-pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockConfig {
    /// Channels of the block's output.
    #[schemars(range(min = 1, max = 100_000))]
    pub width: usize,
    /// Number of convolutions.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 100))]
    pub convolutions: usize,
    /// The side of the squares of which the largest value is kept; 1 for no pooling. Cells at the right and lower
    /// border that fill no square are dropped.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 64))]
    pub pool: usize,
}

fn one() -> usize {
    1
}

fn is_one(value: &usize) -> bool {
    *value == 1
}

/// The decoder of a config.
#[derive(Clone, Copy)]
pub(super) enum Decoder<'a> {
    Recurrent(&'a RecurrentConfig),
    Transformer(&'a TransformerConfig),
}

impl Default for CaptionConfig {
    fn default() -> Self {
        Self {
            features: None,
            positions: true,
            dropout: 0.0,
            picture: None,
            blocks: Vec::new(),
            recurrent: None,
            transformer: None,
        }
    }
}

impl PictureConfig {
    pub(super) fn shape(&self) -> PictureShape {
        PictureShape {
            height: self.height,
            width: self.width,
            channels: if self.grey { 1 } else { 3 },
        }
    }

    fn grid(&self) -> Grid {
        Grid {
            height: self.height,
            width: self.width,
        }
    }
}

impl CaptionConfig {
    /// More would not be a deeper model but a mistake.
    const MOST_BLOCKS: usize = 100;

    /// What the model reads. That of a config that is not valid is features without numbers.
    pub(crate) fn source(&self) -> SourceShape {
        match &self.picture {
            Some(picture) => SourceShape::Pictures(picture.shape()),
            None => SourceShape::Features {
                width: self.features.unwrap_or(0),
            },
        }
    }

    /// The last map of a picture.
    pub(crate) fn regions(&self) -> Option<Grid> {
        let grid = self.picture.as_ref()?.grid();
        let blocks = self.blocks.iter();
        Some(blocks.fold(grid, |grid, block| grid.pooled(block.pool.max(1))))
    }

    /// None if the config is not valid.
    pub(super) fn decoder(&self) -> Option<Decoder<'_>> {
        match (&self.recurrent, &self.transformer) {
            (Some(config), None) => Some(Decoder::Recurrent(config)),
            (None, Some(config)) => Some(Decoder::Transformer(config)),
            _ => None,
        }
    }

    /// How wide the decoder's states are, and the regions that it attends to.
    pub(crate) fn width(&self) -> usize {
        match self.decoder() {
            Some(Decoder::Recurrent(config)) => config.d_hidden,
            Some(Decoder::Transformer(config)) => config.d_model,
            None => 0,
        }
    }

    /// Layers of encoder and decoder after the blocks.
    pub(crate) fn layers(&self) -> (usize, usize) {
        match self.decoder() {
            Some(Decoder::Recurrent(config)) => (config.encoder_layers, config.decoder_layers),
            Some(Decoder::Transformer(config)) => (config.encoder_layers, config.decoder_layers),
            None => (0, 0),
        }
    }

    pub(crate) fn set_layers(&mut self, encoder: usize, decoder: usize) {
        if let Some(config) = &mut self.recurrent {
            (config.encoder_layers, config.decoder_layers) = (encoder, decoder);
        }
        if let Some(config) = &mut self.transformer {
            (config.encoder_layers, config.decoder_layers) = (encoder, decoder);
        }
    }

    /// How many convolutions all blocks have.
    pub(crate) fn convolutions(&self) -> usize {
        self.blocks.iter().map(|block| block.convolutions).sum()
    }

    /// Checks that nothing is shared with a table of the source, which has no words.
    pub(crate) fn check_tie(&self) -> Result<(), ConfigError> {
        let (name, tie) = match self.decoder() {
            Some(Decoder::Recurrent(config)) => ("recurrent", config.tie),
            Some(Decoder::Transformer(config)) => ("transformer", config.tie),
            None => return Ok(()),
        };
        if tie == Tie::All {
            return Err(ConfigError::new(
                format!("model.caption.{name}.tie"),
                "tie = \"all\" needs words on both sides, but the source has none",
                "set tie = \"decoder\" or \"none\"",
            ));
        }
        Ok(())
    }

    /// Checks the values that depend on each other.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let refused = |key: &str, message: &str, hint: &str| {
            Err(ConfigError::new(
                format!("model.caption{key}"),
                message,
                hint,
            ))
        };
        match (&self.picture, self.features, self.blocks.len()) {
            (Some(_), Some(_), _) => {
                return refused(
                    ".features",
                    "a model reads either pictures or features, not both",
                    "leave out picture or features",
                );
            }
            (None, None, _) => {
                return refused(
                    "",
                    "does not say what the model reads",
                    "add picture = { height = 64, width = 64 }, or features = 512",
                );
            }
            (None, Some(_), 1..) => {
                return refused(
                    ".blocks",
                    "convolutional blocks read pictures, not features",
                    "leave out blocks",
                );
            }
            (Some(_), None, 0) => {
                return refused(
                    ".blocks",
                    "there are none, so that every pixel would be a region",
                    "add blocks = [{ width = 32, pool = 2 }, { width = 64, pool = 2 }]",
                );
            }
            _ => {}
        }
        self.check_maps()?;
        match self.decoder() {
            None => {
                return refused(
                    "",
                    "needs exactly one decoder",
                    "add either [model.caption.recurrent] or [model.caption.transformer]",
                );
            }
            Some(Decoder::Recurrent(config)) => config.validate_as_decoder(),
            Some(Decoder::Transformer(config)) => config.validate_as_decoder(),
        }
        .map_err(|error| ConfigError {
            key: error.key.replacen("model.", "model.caption.", 1),
            ..error
        })?;
        if self.positions && !self.width().is_multiple_of(4) {
            let message = format!("need a decoder whose width, {}, is divisible by 4", {
                self.width()
            });
            let hint = "choose another width, or set positions = false";
            return refused(".positions", &message, hint);
        }
        self.check_tie()
    }

    /// Checks that something is left of a picture after every block.
    fn check_maps(&self) -> Result<(), ConfigError> {
        let Some(picture) = &self.picture else {
            return Ok(());
        };
        if self.blocks.len() > Self::MOST_BLOCKS {
            let message = format!("{} are too many", self.blocks.len());
            let hint = format!("give at most {}", Self::MOST_BLOCKS);
            return Err(ConfigError::new("model.caption.blocks", message, hint));
        }
        let mut grid = picture.grid();
        for (number, block) in self.blocks.iter().enumerate() {
            let pool = block.pool;
            let after = grid.pooled(pool);
            if after.cells() == 0 {
                return Err(ConfigError::new(
                    "model.caption.blocks",
                    format!(
                        "block {} pools {pool} × {pool} cells of a map of {} × {}, and nothing is left",
                        number + 1,
                        grid.height,
                        grid.width
                    ),
                    "choose larger pictures, fewer blocks or a smaller pool",
                ));
            }
            grid = after;
        }
        Ok(())
    }
}
