use serde_json::{Number, Value};

/// The range of a number, from the keywords of its schema.
pub(crate) struct Range<'a> {
    lowest: Option<Bound<'a>>,
    highest: Option<Bound<'a>>,
}

struct Bound<'a> {
    number: &'a Number,
    inclusive: bool,
}

impl<'a> Range<'a> {
    pub(crate) fn of(schema: &'a Value) -> Self {
        // The exclusive keyword goes first: the type may imply the other one, as u64 implies minimum = 0.
        let exclusive = |keyword| Bound::of(schema, keyword, false);
        let inclusive = |keyword| Bound::of(schema, keyword, true);
        Self {
            lowest: exclusive("exclusiveMinimum").or_else(|| inclusive("minimum")),
            highest: exclusive("exclusiveMaximum").or_else(|| inclusive("maximum")),
        }
    }

    pub(crate) fn contains(&self, number: &Number) -> bool {
        let Some(value) = number.as_f64() else {
            return false;
        };
        let lowest = self.lowest.as_ref();
        let highest = self.highest.as_ref();
        lowest.is_none_or(|bound| value > bound.value() || bound.includes(value))
            && highest.is_none_or(|bound| value < bound.value() || bound.includes(value))
    }

    /// The range in words.
    pub(crate) fn hint(&self) -> String {
        let lowest = self.lowest.as_ref().map(|bound| {
            let word = if bound.inclusive { "at least" } else { "above" };
            format!("{word} {}", bound.number)
        });
        let highest = self.highest.as_ref().map(|bound| {
            let word = if bound.inclusive { "at most" } else { "below" };
            format!("{word} {}", bound.number)
        });
        if let (Some(low), Some(high)) = (&self.lowest, &self.highest)
            && low.inclusive
            && high.inclusive
        {
            return format!("it must be from {} to {}", low.number, high.number);
        }
        match (lowest, highest) {
            (Some(lowest), Some(highest)) => format!("it must be {lowest} and {highest}"),
            (Some(bound), None) | (None, Some(bound)) => format!("it must be {bound}"),
            (None, None) => "it must be a finite number".to_string(),
        }
    }
}

impl<'a> Bound<'a> {
    fn of(schema: &'a Value, keyword: &str, inclusive: bool) -> Option<Self> {
        let Value::Number(number) = &schema[keyword] else {
            return None;
        };
        Some(Self { number, inclusive })
    }

    fn value(&self) -> f64 {
        self.number.as_f64().unwrap_or(f64::NAN)
    }

    /// Whether a value is this bound, and the bound belongs to the range.
    fn includes(&self, value: f64) -> bool {
        self.inclusive && value == self.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_range_is_named_in_words_and_has_the_bounds_it_names() {
        for (schema, hint, inside, outside) in [
            (
                json!({"minimum": 1}),
                "it must be at least 1",
                vec![1.0, 2.0],
                vec![0.0],
            ),
            (
                json!({"minimum": 1, "maximum": 100_000}),
                "it must be from 1 to 100000",
                vec![1.0, 1e5],
                vec![0.0, 100_001.0],
            ),
            (
                json!({"minimum": 0, "exclusiveMaximum": 1}),
                "it must be at least 0 and below 1",
                vec![0.0, 0.999],
                vec![-0.1, 1.0],
            ),
            (
                json!({"exclusiveMinimum": 0}),
                "it must be above 0",
                vec![1e-300],
                vec![0.0, -1.0],
            ),
            (
                json!({"minimum": 0, "exclusiveMinimum": 1}),
                "it must be above 1",
                vec![1.5],
                vec![1.0],
            ),
            (
                json!({"exclusiveMinimum": 0, "maximum": 1}),
                "it must be above 0 and at most 1",
                vec![1.0],
                vec![0.0, 1.1],
            ),
            (
                json!({"maximum": 5}),
                "it must be at most 5",
                vec![-9.0, 5.0],
                vec![6.0],
            ),
            (
                json!({}),
                "it must be a finite number",
                vec![-1e300],
                vec![],
            ),
        ] {
            let range = Range::of(&schema);
            assert_eq!(range.hint(), hint);
            let contains = |value: &f64| range.contains(&Number::from_f64(*value).unwrap());
            assert!(inside.iter().all(contains), "{schema}: {inside:?}");
            assert!(!outside.iter().any(contains), "{schema}: {outside:?}");
        }
    }
}
