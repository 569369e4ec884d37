use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::attention::HardConfig;
use crate::config::{check_sizes, error};
use crate::{AlignKind, ConfigError, ContextKind, ScoreKind};

/// `model.recurrent.attention`: a name or a table.
#[derive(Clone, Debug, PartialEq)]
pub enum AttentionChoice {
    None,
    Some(AttentionConfig),
}

/// `[model.recurrent.attention]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AttentionConfig {
    /// Whether the decoder attends before its step or after it.
    pub order: Order,
    /// Whether what Luong's order makes of a context is fed into the next step; true if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_feeding: Option<bool>,
    /// How well a state of the decoder fits one of the encoder; if not given, "additive" in Bahdanau's order
    /// and "general" in Luong's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<ScoreKind>,
    /// How many places of the source `score = "location"` knows; 100 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<usize>,
    /// Which states of the encoder get weight.
    pub align: AlignKind,
    /// How far from its centre the window of a local alignment reaches; 10 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// The mean of the encoder's states by weight, or one of them.
    pub context: ContextKind,
    /// How much `context = "hard"` is kept undecided: a factor on the entropy of its weights; 0.01 if not
    /// given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy: Option<f32>,
    /// λ of the gradient by which the weights of `context = "hard"` learn from their draws; 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reinforce: Option<f32>,
    /// How many of the sentences that `context = "hard"` trains on take the mean instead, from which its
    /// weights learn directly (Xu et al. 2015, §4.1); 0.5 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_share: Option<f32>,
    /// Whether the decoder says at every step how much of the context it takes (Xu et al. 2015).
    pub gate: bool,
    /// λ of the penalty on source tokens that are attended to more or less than once in all (Xu et al.
    /// 2015).
    pub doubly_stochastic: f32,
}

/// Whether the decoder attends before its step or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Before: from the previous state, and the context is fed into the step (Bahdanau et al. 2015).
    Bahdanau,
    /// After: from the new state, and both together predict the token (Luong et al. 2015).
    Luong,
}

impl Default for AttentionConfig {
    fn default() -> Self {
        Self {
            order: Order::Luong,
            input_feeding: None,
            score: None,
            positions: None,
            align: AlignKind::Global,
            window: None,
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
    /// Bahdanau's own.
    pub fn bahdanau() -> Self {
        Self {
            order: Order::Bahdanau,
            ..Self::default()
        }
    }

    /// Luong's order with input feeding.
    pub(crate) fn feeds(&self) -> bool {
        self.order == Order::Luong && self.input_feeding.unwrap_or(true)
    }

    pub(crate) fn score(&self) -> ScoreKind {
        self.score.unwrap_or(match self.order {
            Order::Bahdanau => ScoreKind::Additive,
            Order::Luong => ScoreKind::General,
        })
    }

    pub(crate) fn positions(&self) -> usize {
        self.positions.unwrap_or(100)
    }

    pub(crate) fn window(&self) -> usize {
        self.window.unwrap_or(10)
    }

    pub(crate) fn hard(&self) -> HardConfig {
        HardConfig {
            reinforce: self.reinforce.unwrap_or(1.0),
            entropy: self.entropy.unwrap_or(0.01),
            soft_share: self.soft_share.unwrap_or(0.5),
        }
    }

    /// Numbers that are kept for each token of the target, and for it and each place in the source.
    pub(super) fn activations(&self, h: usize) -> (usize, usize) {
        let places = match self.score() {
            ScoreKind::Location => 3 * self.positions(),
            _ => 0,
        };
        let align = if self.align == AlignKind::LocalP {
            12
        } else {
            6
        };
        let context = if self.context == ContextKind::Hard {
            14
        } else {
            0
        };
        (12 * h + places, align + context)
    }

    /// With every default filled in that has a meaning, so that whoever keeps the config keeps them.
    fn resolved(mut self) -> Self {
        self.score = Some(self.score());
        if self.order == Order::Luong {
            self.input_feeding = Some(self.feeds());
        }
        if self.score() == ScoreKind::Location {
            self.positions = Some(self.positions());
        }
        if self.align != AlignKind::Global {
            self.window = Some(self.window());
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
                self.input_feeding.is_some() && self.order == Order::Bahdanau,
                "order = \"luong\"; Bahdanau's always feeds the context in",
            ),
            (
                "model.recurrent.attention.positions",
                self.positions.is_some() && self.score() != ScoreKind::Location,
                "score = \"location\"",
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
                let message = "has no meaning here".to_string();
                let hint = format!("leave it out: it belongs to {of}");
                return Err(ConfigError { key, message, hint });
            }
        }
        let sizes = [
            ("model.recurrent.attention.positions", self.positions()),
            ("model.recurrent.attention.window", self.window()),
        ];
        check_sizes(&sizes)?;
        let HardConfig {
            reinforce,
            entropy,
            soft_share,
        } = self.hard();
        if !(0.0..=1.0).contains(&soft_share) {
            return error(
                "model.recurrent.attention.soft_share",
                format!("is {soft_share}"),
                "it must be from 0 to 1",
            );
        }
        let factors = [
            ("model.recurrent.attention.reinforce", reinforce),
            ("model.recurrent.attention.entropy", entropy),
            (
                "model.recurrent.attention.doubly_stochastic",
                self.doubly_stochastic,
            ),
        ];
        for (key, factor) in factors {
            if !(factor >= 0.0 && factor.is_finite()) {
                return error(key, format!("is {factor}"), "it must be 0 or more");
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
            AttentionChoice::Some(config) => config.serialize(serializer),
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
