use schemars::{JsonSchema, Schema};
use serde_json::{Number, Value};

/// The JSON schema of a config, with numbers as they are written in Rust: 0.6 for `0.6_f32`.
pub fn schema<T: JsonSchema>() -> Schema {
    let mut schema = schemars::schema_for!(T);
    if let Some(fields) = schema.as_object_mut() {
        fields.values_mut().for_each(shorten);
    }
    schema
}

/// Undoes the widening of `f32`: schemars gives the default 0.6 as 0.6000000238418579. A number that is
/// no `f32`, or has the same digits in both types, stays as it is.
fn shorten(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Number(number) if number.is_f64() => {
            let widened = number.as_f64().unwrap_or_default();
            let narrow = widened as f32;
            if f64::from(narrow) == widened
                && let Some(short) = narrow.to_string().parse().ok().and_then(Number::from_f64)
            {
                *number = short;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::JsonSchema;
    use serde::Serialize;
    use serde_json::json;

    #[derive(Serialize, JsonSchema)]
    #[serde(default)]
    struct Config {
        narrow: f32,
        wide: f64,
        half: f64,
        tiny: f64,
        count: u64,
    }

    impl Default for Config {
        fn default() -> Self {
            Self {
                narrow: 0.6,
                wide: 0.98,
                half: 0.5,
                tiny: 1e-9,
                count: 16_777_217,
            }
        }
    }

    #[test]
    fn defaults_are_shown_as_they_are_written() {
        let schema = schema::<Config>().to_value();
        let default = |key: &str| schema["properties"][key]["default"].clone();
        assert_eq!(default("narrow"), json!(0.6));
        assert_eq!(default("wide"), json!(0.98));
        assert_eq!(default("half"), json!(0.5));
        assert_eq!(default("tiny"), json!(1e-9));
        assert_eq!(default("count"), json!(16_777_217));
    }
}
