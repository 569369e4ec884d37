//! How much longer a tokenizer can make a text before it splits it. A few replacements of one character by ten
//! fill any memory, so a file that has them is refused.

use super::words::value;
use serde_json::Value;

/// The most that text may grow. Replacements usually put one character in place of one or more.
const MOST: f64 = 1024.0;

/// Refuses a tokenizer whose steps can make text too long.
pub(super) fn check(inner: &tokenizers::Tokenizer) -> Result<(), String> {
    let encoding =
        growth(&value(inner.get_normalizer())) * growth(&value(inner.get_pre_tokenizer()));
    let decoding = growth(&value(inner.get_decoder()));
    if encoding.max(decoding) <= MOST {
        return Ok(());
    }
    Err(format!(
        "its replacements can make text more than {MOST} times as long"
    ))
}

/// How many times as long the steps of a part of a tokenizer can make a text, one after the other.
fn growth(part: &Value) -> f64 {
    match part {
        Value::Array(steps) => steps.iter().map(growth).product(),
        Value::Object(fields) => match fields.get("type").and_then(Value::as_str) {
            Some("Replace") => replacement(&part["pattern"], &part["content"]),
            Some("ByteLevel") => 2.0, // a byte becomes a character of one or two bytes
            _ => fields.values().map(growth).product(),
        },
        _ => 1.0,
    }
}

fn replacement(pattern: &Value, content: &Value) -> f64 {
    let bytes = |text: &Value| text.as_str().map_or(0, str::len) as f64;
    let new = bytes(content);
    match bytes(&pattern["String"]) {
        // A regular expression can match between any two characters.
        0.0 => new + 1.0,
        old => (new / old).max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn growth_is_multiplied_over_the_steps() {
        let replace = |pattern: Value, content: &str| json!({"type": "Replace", "pattern": pattern, "content": content});
        let space = replace(json!({"String": " "}), "▁");
        let quotes = replace(json!({"String": "``"}), "\"");
        let tens = replace(json!({"Regex": "."}), "aaaaaaaaa");
        let sequence = |steps: &[&Value]| json!({"type": "Sequence", "normalizers": steps});
        for (part, expected) in [
            (Value::Null, 1.0),
            (json!({"type": "NFC"}), 1.0),
            (space.clone(), 3.0),
            (sequence(&[&quotes, &quotes]), 1.0),
            (sequence(&[&tens, &space, &tens]), 300.0),
            (sequence(&[&sequence(&[&tens, &tens]), &tens]), 1000.0),
            (sequence(&[&json!({"type": "ByteLevel"}), &tens]), 20.0),
        ] {
            assert_eq!(growth(&part), expected, "{part}");
        }
    }
}
