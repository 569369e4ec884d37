use serde_json::{Map, Value, json};

use crate::serve::{Catalogue, Served};

/// Keys of `[decode]` that a server sets.
const OURS: [&str; 2] = ["batch_tokens", "max_source_length"];

/// Says what this server accepts, where its types would accept more.
pub(super) fn narrow(schemas: &mut Map<String, Value>, catalogue: &Catalogue) {
    let limits = catalogue.limits();
    let models = || catalogue.models().iter();
    let beam = models().map(|model| model.decode().beam).max();
    let beam = limits.beam.max(beam.unwrap_or(1));
    if let Some(decode) = schemas.get_mut("DecodeConfig") {
        if let Some(properties) = decode["properties"].as_object_mut() {
            properties.retain(|key, _| !OURS.contains(&&**key));
        }
        decode["description"] =
            "Search options: what is not given is as in the model's config.".into();
        decode["properties"]["beam"]["maximum"] = beam.into();
        let longest = models().map(|model| model.decode().max_length).max();
        decode["properties"]["max_length"]["maximum"] = longest.into();
        let ratio = models().map(|model| model.decode().max_length_ratio);
        decode["properties"]["max_length_ratio"]["maximum"] = ratio.fold(0.0, f32::max).into();
        for (key, least, most) in [
            ("length_penalty", -10.0, 10.0),
            ("repetition_penalty", 0.01, 100.0),
        ] {
            decode["properties"][key]["minimum"] = least.into();
            decode["properties"][key]["maximum"] = most.into();
        }
    }
    let (all, one) = (limits.texts, limits.characters);
    let text = json!({"type": "string", "maxLength": one});
    let texts = json!({"type": "array", "items": text, "maxItems": all});
    schemas.insert("Texts".into(), json!({"anyOf": [text, texts]}));
    let names = models().map(|model| Some(&*model.name)).chain([None]);
    let names: Vec<Option<&str>> = names.collect();
    let codes = |code: fn(&Served) -> &str, more: &[Option<&'static str>]| {
        let mut codes: Vec<Option<String>> = Vec::new();
        for code in models().map(code) {
            if !codes.iter().flatten().any(|it| it == code) {
                codes.push(Some(code.into()));
            }
        }
        codes.extend(more.iter().map(|it| it.map(String::from)));
        json!(codes)
    };
    for ask in ["Ask", "AlternativesAsk"] {
        let Some(properties) = schemas.get_mut(ask).map(|it| &mut it["properties"]) else {
            continue;
        };
        properties["model"]["enum"] = json!(names);
        properties["source"]["enum"] = codes(|it| &it.source, &[Some("auto"), None]);
        properties["target"]["enum"] = codes(|it| &it.target, &[None]);
        if ask == "Ask" {
            properties["n_best"]["maximum"] = beam.into();
        } else {
            properties["text"]["maxLength"] = one.into();
        }
    }
    for (ask, form) in [
        ("TranslateAsk", "TranslateForm"),
        ("DetectAsk", "DetectForm"),
    ] {
        let Some(ask) = schemas.get_mut(ask) else {
            continue;
        };
        let text = json!({"type": "string", "minLength": 1, "maxLength": one});
        let texts = json!({"type": "array", "items": {"type": "string"}, "minItems": 1,
                           "maxItems": all});
        if form == "TranslateForm" {
            let properties = &mut ask["properties"];
            properties["source"]["enum"] = codes(|it| &it.source, &[Some("auto")]);
            properties["target"]["enum"] = codes(|it| &it.target, &[]);
            properties["alternatives"] = json!({
                "description": "How many other translations are wanted.",
                "type": ["integer", "null"], "minimum": 0, "maximum": limits.beam - 1,
            });
        }
        ask["properties"]["q"] = json!({"anyOf": [text, texts]});
        let mut fields = ask.clone();
        fields["properties"]["q"] = text;
        for field in ["format", "api_key", "alternatives"] {
            // What a form leaves out is not null.
            if let Some(field) = fields["properties"].get_mut(field) {
                field["type"] = field["type"][0].clone();
                if let Some(values) = field.get_mut("enum").and_then(Value::as_array_mut) {
                    values.retain(|it| !it.is_null());
                }
            }
        }
        schemas.insert(form.into(), fields);
    }
}
