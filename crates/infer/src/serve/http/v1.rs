use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::body::{parse_object, read, require_json};
use super::keys::bearer;
use super::reply::{Work, ok, translated};
use super::{App, Fault};
use crate::serve::{AlternativesAsk, Ask, Served, Texts, language};
use crate::{Error, Result as OurResult};

/// What `GET /v1/models` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct ModelsAnswer {
    /// Of several with the same languages, the first is used if a request names none.
    models: Vec<ModelAnswer>,
    limits: LimitsAnswer,
    /// Whether `Authorization: Bearer KEY` is needed to translate.
    key_required: bool,
}

#[derive(Serialize, JsonSchema)]
struct ModelAnswer {
    name: String,
    /// The code of a language, such as `en`.
    source: String,
    target: String,
    source_name: String,
    target_name: String,
    /// Null for a model without attention to the source.
    attention: Option<AttentionAnswer>,
    /// How wide its beam is, where a request does not say otherwise.
    beam: usize,
}

#[derive(Serialize, JsonSchema)]
struct AttentionAnswer {
    layers: usize,
    heads: usize,
}

/// How much one request may ask for.
#[derive(Serialize, JsonSchema)]
struct LimitsAnswer {
    /// Of all texts together.
    characters: usize,
    texts: usize,
    beam: usize,
    /// The body, in bytes.
    body: usize,
}

pub(super) async fn models(State(app): State<Arc<App>>) -> Response {
    let limits = app.catalogue.limits();
    ok(&ModelsAnswer {
        models: app.catalogue.models().iter().map(model).collect(),
        limits: LimitsAnswer {
            characters: limits.characters,
            texts: limits.texts,
            beam: limits.beam,
            body: app.options.max_body,
        },
        key_required: !app.options.keys.is_empty(),
    })
}

fn model(served: &Served) -> ModelAnswer {
    let attention = served.attention();
    ModelAnswer {
        name: served.name.clone(),
        source: served.source.clone(),
        target: served.target.clone(),
        source_name: language::name(&served.source),
        target_name: language::name(&served.target),
        attention: attention.map(|(layers, heads)| AttentionAnswer { layers, heads }),
        beam: served.decode().beam,
    }
}

pub(super) async fn translate(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Fault> {
    check_key(&app, request.headers())?;
    require_json(request.headers())?;
    let ask: Ask = parse_object(&read(request, &app.options).await?)?;
    app.catalogue.limits().check_texts(&ask.text)?;
    let characters = ask.text.characters();
    let catalogue = app.catalogue.clone();
    let work = app.gate.run(move |watch| {
        let answer = catalogue.translate(&ask, watch)?;
        Ok((written(&answer)?, answer.model))
    });
    let (bytes, model) = work.await?;
    Ok(translated(bytes, Work { characters, model }))
}

pub(super) async fn alternatives(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Fault> {
    check_key(&app, request.headers())?;
    require_json(request.headers())?;
    let ask: AlternativesAsk = parse_object(&read(request, &app.options).await?)?;
    let text = Texts::One(ask.text.clone());
    app.catalogue.limits().check_texts(&text)?;
    let characters = text.characters();
    let catalogue = app.catalogue.clone();
    let work = app.gate.run(move |watch| {
        let answer = catalogue.alternatives(&ask, watch)?;
        Ok((written(&answer)?, answer.model))
    });
    let (bytes, model) = work.await?;
    Ok(translated(bytes, Work { characters, model }))
}

fn check_key(app: &App, headers: &HeaderMap) -> Result<(), Fault> {
    let missing = Fault::new(StatusCode::UNAUTHORIZED, "this server needs an API key")
        .with_hint("send `Authorization: Bearer KEY`");
    app.check_key(bearer(headers), missing)
}

/// As JSON. Attention has so many numbers that this is no work for a thread that others wait for.
pub(super) fn written(answer: &impl Serialize) -> OurResult<Vec<u8>> {
    serde_json::to_vec(answer).map_err(|error| Error::Write {
        path: "an answer".into(),
        source: error.into(),
    })
}
