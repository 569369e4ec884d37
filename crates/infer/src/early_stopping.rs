use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// When a beam search ends, once as many translations as the beam is wide have ended. Written as in Hugging
/// Face's `generate`: `true`, `false` or `"never"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyStopping {
    /// `false`: when the likeliest one that has not ended would rank below all of these if it ended now.
    #[default]
    No,
    /// `true`: at once.
    Yes,
    /// `"never"`: when the likeliest one that has not ended would rank below all of these at the length that is
    /// best for it.
    Never,
}

const NEVER: &str = "never";

impl From<bool> for EarlyStopping {
    fn from(stops: bool) -> Self {
        if stops { Self::Yes } else { Self::No }
    }
}

impl FromStr for EarlyStopping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "true" => Ok(Self::Yes),
            "false" => Ok(Self::No),
            NEVER => Ok(Self::Never),
            _ => Err("it must be true, false or never".into()),
        }
    }
}

impl Serialize for EarlyStopping {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::No => serializer.serialize_bool(false),
            Self::Yes => serializer.serialize_bool(true),
            Self::Never => serializer.serialize_str(NEVER),
        }
    }
}

impl<'de> Deserialize<'de> for EarlyStopping {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BoolOrNever)
    }
}

struct BoolOrNever;

impl Visitor<'_> for BoolOrNever {
    type Value = EarlyStopping;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "true, false or \"{NEVER}\"")
    }

    fn visit_bool<E: de::Error>(self, stops: bool) -> Result<EarlyStopping, E> {
        Ok(stops.into())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<EarlyStopping, E> {
        match text {
            NEVER => Ok(EarlyStopping::Never),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}

impl JsonSchema for EarlyStopping {
    fn schema_name() -> Cow<'static, str> {
        "EarlyStopping".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "boolean" }, { "const": NEVER }] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_is_written_as_hugging_face_writes_it_and_nothing_else_is_read() {
        for (value, json) in [
            (EarlyStopping::No, json!(false)),
            (EarlyStopping::Yes, json!(true)),
            (EarlyStopping::Never, json!("never")),
        ] {
            assert_eq!(serde_json::to_value(value).unwrap(), json);
            assert_eq!(
                serde_json::from_value::<EarlyStopping>(json.clone()).unwrap(),
                value
            );
            let text = json.to_string();
            assert_eq!(text.trim_matches('"').parse(), Ok(value));
        }
        for wrong in [json!("always"), json!("true"), json!(1), json!(null)] {
            let error = serde_json::from_value::<EarlyStopping>(wrong).unwrap_err();
            assert!(
                error.to_string().contains("true, false or \"never\""),
                "{error}"
            );
        }
    }
}
