use std::fmt;

use attend_config::ConfigError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::attention::HardConfig;
use crate::attention::ScoreOptions;
use crate::{AlignKind, ContextKind, DeviationKind, ScoreActivation, ScoreKind, SharpnessKind};

/// `model.recurrent.attention`: a name or a table.
#[derive(Clone, Debug, PartialEq)]
pub enum AttentionChoice {
    None,
    Some(AttentionConfig),
}

/// `[model.recurrent.attention]`: the attention of the decoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AttentionConfig {
    /// Whether the decoder attends before its step, or after it.
    pub order: AttentionOrder,
    /// Input feeding (Luong et al. 2015, §3.3): whether the attentional state is an input of the next step.
    /// For order = "luong" only, where the default is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_feeding: Option<bool>,
    /// The attention score. The default is "additive" for order = "bahdanau" and "general" for "luong".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<ScoreKind>,
    /// Number of source positions that `score = "location"` can score. The default is 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub positions: Option<usize>,
    /// The non-linearity of `score = "additive"`. The default is "tanh".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<ScoreActivation>,
    /// The factor on `score = "cosine"`: one number, or one that the decoder emits at each step. The default is
    /// "learned".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharpness: Option<SharpnessKind>,
    /// Which states of the encoder are attended to.
    pub align: AlignKind,
    /// How far the window of a local alignment reaches to each side of its centre. The default is 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub window: Option<usize>,
    /// For `align = "local-p"`: whether the width of its Gaussian is that of the paper, window / 2, or is learnt.
    /// The default is "fixed".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<DeviationKind>,
    /// The context: the weighted mean of the encoder's states, or one of them.
    pub context: ContextKind,
    /// For `context = "hard"`: the factor of the entropy of the weights, which keeps them from becoming
    /// certain too early. The default is 0.01.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub entropy: Option<f32>,
    /// For `context = "hard"`: λ, the factor of the REINFORCE gradient of the weights. The default is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub reinforce: Option<f32>,
    /// For `context = "hard"`: the share of the training sentences that use the weighted mean instead, which
    /// gives the weights a direct gradient (Xu et al. 2015, §4.1). The default is 0.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub soft_share: Option<f32>,
    /// Whether a gate scales the context at every step (Xu et al. 2015).
    pub gate: bool,
    /// λ, the factor of the penalty on source tokens whose weights do not sum to 1 over the whole translation
    /// (Xu et al. 2015).
    #[schemars(range(min = 0))]
    pub doubly_stochastic: f32,
}

/// Whether the decoder attends before its step, or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AttentionOrder {
    /// Before the step, from the previous state. The context is an input of the step (Bahdanau et al. 2015).
    Bahdanau,
    /// After the step, from the new state. State and context predict the token together (Luong et al. 2015).
    Luong,
}

impl Default for AttentionConfig {
    fn default() -> Self {
        Self {
            order: AttentionOrder::Luong,
            input_feeding: None,
            score: None,
            positions: None,
            activation: None,
            sharpness: None,
            align: AlignKind::Global,
            window: None,
            deviation: None,
            context: ContextKind::Soft,
            entropy: None,
            reinforce: None,
            soft_share: None,
            gate: false,
            doubly_stochastic: 0.0,
        }
    }
}

impl AttentionConfig {
    /// Attention as in Bahdanau et al. 2015.
    pub fn bahdanau() -> Self {
        Self {
            order: AttentionOrder::Bahdanau,
            ..Self::default()
        }
    }

    /// Whether the attentional state is an input of the next step.
    pub(crate) fn feeds(&self) -> bool {
        self.order == AttentionOrder::Luong && self.input_feeding.unwrap_or(true)
    }

    pub(crate) fn score(&self) -> ScoreKind {
        self.score.unwrap_or(match self.order {
            AttentionOrder::Bahdanau => ScoreKind::Additive,
            AttentionOrder::Luong => ScoreKind::General,
        })
    }

    pub(crate) fn positions(&self) -> usize {
        self.positions.unwrap_or(100)
    }

    pub(crate) fn score_options(&self) -> ScoreOptions {
        ScoreOptions {
            positions: self.positions(),
            activation: self.activation.unwrap_or_default(),
            sharpness: self.sharpness.unwrap_or_default(),
        }
    }

    pub(crate) fn window(&self) -> usize {
        self.window.unwrap_or(10)
    }

    pub(crate) fn deviation(&self) -> DeviationKind {
        self.deviation.unwrap_or_default()
    }

    pub(crate) fn hard(&self) -> HardConfig {
        HardConfig {
            reinforce: self.reinforce.unwrap_or(1.0),
            entropy: self.entropy.unwrap_or(0.01),
            soft_share: self.soft_share.unwrap_or(0.5),
        }
    }

    /// With the defaults of all keys that have an effect filled in, so that a saved config has them; except those
    /// that were added with the default that had no name before.
    fn resolved(mut self) -> Self {
        self.score = Some(self.score());
        if self.order == AttentionOrder::Luong {
            self.input_feeding = Some(self.feeds());
        }
        if self.score() == ScoreKind::Location {
            self.positions = Some(self.positions());
        }
        if self.align != AlignKind::Global {
            self.window = Some(self.window());
        }
        if self.align == AlignKind::LocalP {
            self.deviation = Some(self.deviation());
        }
        if self.context == ContextKind::Hard {
            let hard = self.hard();
            self.reinforce = Some(hard.reinforce);
            self.entropy = Some(hard.entropy);
            self.soft_share = Some(hard.soft_share);
        }
        self
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let unused = [
            (
                "model.recurrent.attention.input_feeding",
                self.input_feeding.is_some() && self.order == AttentionOrder::Bahdanau,
                "order = \"luong\"; with \"bahdanau\" the context is always an input",
            ),
            (
                "model.recurrent.attention.positions",
                self.positions.is_some() && self.score() != ScoreKind::Location,
                "score = \"location\"",
            ),
            (
                "model.recurrent.attention.activation",
                self.activation.is_some() && self.score() != ScoreKind::Additive,
                "score = \"additive\"",
            ),
            (
                "model.recurrent.attention.sharpness",
                self.sharpness.is_some() && self.score() != ScoreKind::Cosine,
                "score = \"cosine\"",
            ),
            (
                "model.recurrent.attention.deviation",
                self.deviation.is_some() && self.align != AlignKind::LocalP,
                "align = \"local-p\"",
            ),
            (
                "model.recurrent.attention.window",
                self.window.is_some() && self.align == AlignKind::Global,
                "align = \"local-m\" or \"local-p\"",
            ),
            (
                "model.recurrent.attention.entropy",
                self.entropy.is_some() && self.context != ContextKind::Hard,
                "context = \"hard\"",
            ),
            (
                "model.recurrent.attention.reinforce",
                self.reinforce.is_some() && self.context != ContextKind::Hard,
                "context = \"hard\"",
            ),
            (
                "model.recurrent.attention.soft_share",
                self.soft_share.is_some() && self.context != ContextKind::Hard,
                "context = \"hard\"",
            ),
        ];
        for (key, is_unused, of) in unused {
            if is_unused {
                let hint = format!("leave it out: it belongs to {of}");
                return Err(ConfigError::new(key, "has no effect here", hint));
            }
        }
        Ok(())
    }
}

impl From<AttentionConfig> for AttentionChoice {
    fn from(config: AttentionConfig) -> Self {
        AttentionChoice::Some(config.resolved())
    }
}

impl Serialize for AttentionChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            AttentionChoice::None => serializer.serialize_str("none"),
            AttentionChoice::Some(config) => config.clone().resolved().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AttentionChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = AttentionChoice;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("\"none\", \"bahdanau\", \"luong\" or a table")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<AttentionChoice, E> {
        match name {
            "none" => Ok(AttentionChoice::None),
            "bahdanau" => Ok(AttentionConfig::bahdanau().into()),
            "luong" => Ok(AttentionConfig::default().into()),
            _ => Err(E::unknown_variant(name, &["none", "bahdanau", "luong"])),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AttentionChoice, A::Error> {
        AttentionConfig::deserialize(MapAccessDeserializer::new(map)).map(AttentionChoice::from)
    }
}

impl JsonSchema for AttentionChoice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AttentionChoice".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "enum": ["none", "bahdanau", "luong"] },
                generator.subschema_for::<AttentionConfig>(),
            ]
        })
    }
}
