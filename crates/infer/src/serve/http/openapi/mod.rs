//! The OpenAPI document of a server, from the types that its answers are made of.

mod narrow;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::Options;
use super::fault::ErrorAnswer;
use super::libretranslate::{DetectAsk, LanguageAnswer, TranslateAnswer, TranslateAsk};
use super::v1::ModelsAnswer;
use crate::serve::language::Detected;
use crate::serve::{AlternativesAnswer, AlternativesAsk, Answer, Ask, Catalogue};
use narrow::narrow;

struct Operation {
    path: &'static str,
    summary: &'static str,
    tag: &'static str,
    /// For `POST`: what is asked, as which types of content.
    body: Option<(Schema, &'static [&'static str])>,
    content: &'static str,
    answer: Value,
    /// Statuses of errors that it may have, beside those that all have.
    errors: &'static [u16],
}

const JSON: &str = "application/json";
const FORMS: &[&str] = &[
    JSON,
    "application/x-www-form-urlencoded",
    "multipart/form-data",
];

/// What the server answers, for models and limits as they are.
pub(super) fn document(catalogue: &Catalogue, options: &Options) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut asks = settings.clone().for_deserialize().into_generator();
    let mut answers = settings.for_serialize().into_generator();
    let operations = operations(&mut asks, &mut answers);
    let error = answers.subschema_for::<ErrorAnswer>();
    let mut schemas = asks.take_definitions(true);
    schemas.extend(answers.take_definitions(true));
    narrow(&mut schemas, catalogue);
    let mut paths = Map::new();
    for operation in &operations {
        let method = if operation.body.is_some() {
            "post"
        } else {
            "get"
        };
        let described = json!({ method: described(operation, &error, options) });
        paths.insert(operation.path.into(), described);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Attend",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Translates text. Every error is JSON: {\"error\": \"what is wrong\", \"hint\": \"how \
                            to fix it\"}.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operations(asks: &mut SchemaGenerator, answers: &mut SchemaGenerator) -> Vec<Operation> {
    fn get(
        path: &'static str,
        tag: &'static str,
        summary: &'static str,
        answer: Value,
    ) -> Operation {
        Operation {
            path,
            summary,
            tag,
            body: None,
            content: JSON,
            answer,
            errors: &[],
        }
    }
    const WORK: &[u16] = &[400, 401, 403, 408, 413, 415, 500, 503];
    const FORM_WORK: &[u16] = &[400, 403, 408, 413, 415, 500, 503];
    let post = |path, tag, summary, body, answer| {
        let (types, errors): (&'static [&'static str], _) = match tag {
            "v1" => (&[JSON], WORK),
            _ => (FORMS, FORM_WORK),
        };
        Operation {
            path,
            summary,
            tag,
            body: Some((body, types)),
            content: JSON,
            answer,
            errors,
        }
    };
    fn of<T: JsonSchema>(answers: &mut SchemaGenerator) -> Value {
        answers.subschema_for::<T>().into()
    }
    let object = json!({"type": "object"});
    let text = json!({"type": "string"});
    vec![
        post(
            "/v1/translate",
            "v1",
            "Translates texts",
            asks.subschema_for::<Ask>(),
            of::<Answer>(answers),
        ),
        post(
            "/v1/alternatives",
            "v1",
            "What else could come after the first words of a translation",
            asks.subschema_for::<AlternativesAsk>(),
            of::<AlternativesAnswer>(answers),
        ),
        get(
            "/v1/models",
            "v1",
            "The models, and limits of requests",
            of::<ModelsAnswer>(answers),
        ),
        post(
            "/translate",
            "LibreTranslate",
            "Translates one text or several",
            asks.subschema_for::<TranslateAsk>(),
            of::<TranslateAnswer>(answers),
        ),
        post(
            "/detect",
            "LibreTranslate",
            "Says which language a text is in",
            asks.subschema_for::<DetectAsk>(),
            of::<Vec<Detected>>(answers),
        ),
        get(
            "/languages",
            "LibreTranslate",
            "The languages that are translated, and into which",
            of::<Vec<LanguageAnswer>>(answers),
        ),
        get(
            "/frontend/settings",
            "LibreTranslate",
            "What a page should know",
            object.clone(),
        ),
        get(
            "/health",
            "LibreTranslate",
            "Whether the server runs",
            object.clone(),
        ),
        get("/spec", "LibreTranslate", "This document", object.clone()),
        get(
            "/healthz",
            "operation",
            "Whether the server runs",
            object.clone(),
        ),
        get("/openapi.json", "operation", "This document", object),
        Operation {
            content: "application/openmetrics-text",
            ..get("/metrics", "operation", "Counters for Prometheus", text)
        },
    ]
}

fn described(operation: &Operation, error: &Schema, options: &Options) -> Value {
    let mut responses = Map::new();
    let success = json!({
        "description": "Done",
        "content": {operation.content: {"schema": operation.answer}},
    });
    responses.insert("200".into(), success);
    let needs_key = !options.keys.is_empty();
    for status in operation
        .errors
        .iter()
        .filter(|it| needs_key || **it != 401)
    {
        let why = match status {
            400 => "Something in the request is wrong",
            401 => "A key is needed",
            403 => "The key is wrong, or a page of another site asks",
            408 => "The body did not arrive in time",
            413 => "The body is too large",
            415 => "The body is of another type",
            500 => "An error of the server",
            _ => {
                "Too many requests are waiting, this one took too long, or the server is shutting down"
            }
        };
        let response = json!({"description": why, "content": {JSON: {"schema": error}}});
        responses.insert(status.to_string(), response);
    }
    let mut described = json!({
        "summary": operation.summary,
        "tags": [operation.tag],
        "operationId": operation.path.trim_matches('/').replace(['/', '.'], "_"),
        "responses": responses,
    });
    if let Some((schema, types)) = &operation.body {
        let content = types.iter();
        let content = content.map(|kind| {
            let mut schema = schema.clone().to_value();
            if *kind != JSON
                && let Some(name) = schema["$ref"].as_str()
            {
                schema["$ref"] = name.replace("Ask", "Form").into();
            }
            (kind.to_string(), json!({ "schema": schema }))
        });
        let content: Map<String, Value> = content.collect();
        described["requestBody"] = json!({"required": true, "content": content});
        if operation.tag == "v1" && needs_key {
            described["security"] = json!([{"key": []}]);
        }
    }
    described
}
