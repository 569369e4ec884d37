use serde_json::{Deserializer, Value};

/// The JSON values of a log or a state without the times in them, which differ between equal runs, and without
/// sample translations, whose number may be changed at any time. Ends before the first value that is not valid JSON.
pub(super) fn without_times(json: &[u8]) -> Vec<Value> {
    let values = Deserializer::from_slice(json).into_iter::<Value>();
    let mut values: Vec<Value> = values.map_while(|value| value.ok()).collect();
    values.iter_mut().for_each(remove_times);
    values
}

const VARYING: [&str; 4] = ["seconds", "tokens_per_second", "time", "samples"];

fn remove_times(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|key, _| !VARYING.contains(&&**key));
        fields.values_mut().for_each(remove_times);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_and_samples_are_removed_at_every_depth_and_nothing_else_is() {
        let text = br#"{"step":1,"seconds":2.5,"unlogged":{"loss":3.5,"seconds":1.0}}
            {"event":"step","tokens":9,"tokens_per_second":7.5,"time":1.5,"samples":[]}
            {"event":"st"#;
        assert_eq!(
            without_times(text),
            [
                json!({"step": 1, "unlogged": {"loss": 3.5}}),
                json!({"event": "step", "tokens": 9}),
            ]
        );
    }
}
