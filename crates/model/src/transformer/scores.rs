use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{SeqAccessDeserializer, StrDeserializer};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ScoreKind;

/// `model.transformer.score`: one score for all heads, or a list with one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scores(pub Vec<ScoreKind>);

impl Default for Scores {
    fn default() -> Self {
        Self(vec![ScoreKind::ScaledDot])
    }
}

impl Scores {
    /// The score of a head.
    pub fn of(&self, head: usize) -> ScoreKind {
        match self.0.len() {
            1 => self.0[0],
            _ => self.0[head],
        }
    }
}

impl Serialize for Scores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(serializer),
            all => all.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Scores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrList)
    }
}

struct NameOrList;

impl<'de> Visitor<'de> for NameOrList {
    type Value = Scores;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the name of a score, or a list with one for each head")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Scores, E> {
        let score = ScoreKind::deserialize(StrDeserializer::new(name))?;
        Ok(Scores(vec![score]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Scores, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Scores)
    }
}

impl JsonSchema for Scores {
    fn schema_name() -> Cow<'static, str> {
        "Scores".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<ScoreKind>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}
