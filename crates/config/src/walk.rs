use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::range::Range;
use crate::{ConfigError, schema};

/// Checks every number in `value` against the range in the schema of its type, and reports the first
/// that is outside by its dotted key, which begins with `prefix`.
///
/// Numbers that are not finite are refused. serde_json writes them as `null`, so a field of type
/// `Option<f32>` or `Option<f64>` must be skipped when it is `None`:
/// `#[serde(skip_serializing_if = "Option::is_none")]`.
///
/// # Panics
/// If the value cannot be written as JSON.
pub fn check_ranges<T: Serialize + JsonSchema>(value: &T, prefix: &str) -> Result<(), ConfigError> {
    let schema = schema::<T>().to_value();
    // By way of text: 0.6_f32 stays 0.6, and is not widened.
    let text = serde_json::to_string(value).expect("a config can be written as JSON");
    let value = serde_json::from_str(&text).expect("serde_json reads what it wrote");
    Walk { root: &schema }.check(&schema, &value, prefix)
}

/// A walk through a value and its schema side by side.
struct Walk<'a> {
    /// The whole schema, to which references point.
    root: &'a Value,
}

impl Walk<'_> {
    fn check(&self, schema: &Value, value: &Value, key: &str) -> Result<(), ConfigError> {
        if let Some(target) = self.target(schema) {
            self.check(target, value, key)?;
        }
        for keyword in ["anyOf", "oneOf"] {
            let branch = list(&schema[keyword]).find(|branch| self.fits(branch, value));
            if let Some(branch) = branch {
                self.check(branch, value, key)?;
            }
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let schema = &schema["properties"][name];
                    self.check(schema, value, &join(key, name))?;
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.check(&schema["items"], item, key)?;
                }
            }
            Value::Number(number) => {
                let range = Range::of(schema);
                if !range.contains(number) {
                    return Err(ConfigError::new(key, format!("is {number}"), range.hint()));
                }
            }
            Value::Null if types(schema).any(|kind| kind == "number") => {
                let hint = Range::of(schema).hint();
                return Err(ConfigError::new(key, "is not a finite number", hint));
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
        Ok(())
    }

    /// Whether a value has the form of this branch, whatever its numbers are.
    fn fits(&self, schema: &Value, value: &Value) -> bool {
        if let Some(target) = self.target(schema)
            && !self.fits(target, value)
        {
            return false;
        }
        for keyword in ["anyOf", "oneOf"] {
            let mut branches = list(&schema[keyword]).peekable();
            if branches.peek().is_some() && !branches.any(|branch| self.fits(branch, value)) {
                return false;
            }
        }
        let mut kinds = types(schema).peekable();
        if kinds.peek().is_some() && !kinds.any(|kind| is_of(kind, value)) {
            return false;
        }
        if let Some(only) = schema.get("const")
            && only != value
        {
            return false;
        }
        if let Some(names) = schema.get("enum")
            && !list(names).any(|name| name == value)
        {
            return false;
        }
        let Value::Object(fields) = value else {
            return true;
        };
        let closed = schema["additionalProperties"] == Value::Bool(false);
        let known = |name: &String| schema["properties"].get(name).is_some();
        list(&schema["required"]).all(|name| name.as_str().is_some_and(|n| fields.contains_key(n)))
            && (!closed || fields.keys().all(known))
    }

    /// What `$ref` points to, such as `#/$defs/AdamConfig`.
    fn target(&self, schema: &Value) -> Option<&Value> {
        let reference = schema["$ref"].as_str()?;
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_string()
    } else {
        format!("{prefix}.{name}")
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The type or types of a schema.
fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let kinds = &schema["type"];
    kinds
        .as_str()
        .into_iter()
        .chain(list(kinds).filter_map(Value::as_str))
}

fn is_of(kind: &str, value: &Value) -> bool {
    match value {
        Value::Null => kind == "null" || kind == "number",
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => kind == "number" || kind == "integer" && !number.is_f64(),
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default, Serialize, JsonSchema)]
    struct Config {
        #[schemars(range(min = 1, max = 10))]
        size: usize,
        #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
        rate: f32,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        clip: Option<f64>,
        any: f64,
        inner: Inner,
        #[serde(skip_serializing_if = "Option::is_none")]
        optional: Option<Inner>,
        choice: Choice,
        list: Vec<Inner>,
    }

    #[derive(Clone, Default, Serialize, JsonSchema)]
    struct Inner {
        #[schemars(range(min = 2))]
        width: u64,
    }

    #[derive(Clone, Default, Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        #[default]
        None,
        Narrow(Inner),
        Wide(Wide),
    }

    #[derive(Clone, Default, Serialize, JsonSchema)]
    struct Wide {
        #[schemars(range(min = 100))]
        width: u64,
    }

    fn good() -> Config {
        Config {
            size: 1,
            inner: Inner { width: 2 },
            ..Config::default()
        }
    }

    type Change = fn(&mut Config);

    #[test]
    fn a_value_inside_every_range_is_accepted() {
        let changes: [Change; 8] = [
            |_| (),
            |c| c.size = 10,
            |c| c.rate = 1.0 - f32::EPSILON / 2.0,
            |c| c.clip = Some(f64::MIN_POSITIVE),
            |c| c.any = f64::MIN,
            |c| c.optional = Some(Inner { width: 2 }),
            |c| c.choice = Choice::Narrow(Inner { width: 2 }),
            |c| c.choice = Choice::Wide(Wide { width: 100 }),
        ];
        for change in changes {
            let mut config = good();
            change(&mut config);
            assert_eq!(check_ranges(&config, ""), Ok(()));
        }
    }

    #[test]
    fn a_value_outside_its_range_is_reported_by_its_key() {
        let changes: [(Change, &str, &str); 14] = [
            (|c| c.size = 0, "size: is 0", "from 1 to 10"),
            (|c| c.size = 11, "size: is 11", "from 1 to 10"),
            (|c| c.rate = 1.1, "rate: is 1.1", "at least 0 and below 1"),
            (|c| c.rate = -0.1, "rate: is -0.1", "at least 0 and below 1"),
            (|c| c.rate = f32::NAN, "rate: is not a finite", "below 1"),
            (|c| c.clip = Some(0.0), "clip: is 0.0", "above 0"),
            (
                |c| c.clip = Some(f64::NAN),
                "clip: is not a finite",
                "above 0",
            ),
            (|c| c.any = f64::INFINITY, "any: is not a finite", "finite"),
            (|c| c.inner.width = 1, "inner.width: is 1", "at least 2"),
            (
                |c| c.optional = Some(Inner { width: 1 }),
                "optional.width: is 1",
                "at least 2",
            ),
            (
                |c| c.choice = Choice::Narrow(Inner { width: 1 }),
                "choice.narrow.width: is 1",
                "at least 2",
            ),
            (
                |c| c.choice = Choice::Wide(Wide { width: 99 }),
                "choice.wide.width: is 99",
                "at least 100",
            ),
            (
                |c| c.list = vec![Inner { width: 2 }, Inner { width: 0 }],
                "list.width: is 0",
                "at least 2",
            ),
            (
                |c| c.any = f64::NEG_INFINITY,
                "any: is not a finite",
                "finite",
            ),
        ];
        for (change, message, hint) in changes {
            let mut config = good();
            change(&mut config);
            let error = check_ranges(&config, "").unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
            assert!(error.hint.contains(hint), "{}", error.hint);
            let error = check_ranges(&config, "a.b").unwrap_err();
            assert!(error.key.starts_with("a.b."), "{error}");
        }
    }
}
