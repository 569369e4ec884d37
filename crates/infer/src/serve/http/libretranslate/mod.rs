//! The paths of LibreTranslate, with its answers and its errors, for the clients that exist for it.
//!
//! | file | contents |
//! |---|---|
//! | `fields` | the fields of forms, query strings and JSON |
//! | `asked` | what `POST /translate` asks for, and its answer |
//! | `alternatives` | other translations of a whole text |

mod alternatives;
mod asked;
mod fields;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::keys::bearer;
use super::reply::{Work, ok, translated};
use super::v1::written;
use super::{App, Fault, Options};
use crate::serve::Texts;
use crate::serve::language::{detect as detect_language, name};
use asked::{Asked, texts};
pub(super) use asked::{TranslateAnswer, TranslateAsk};
use fields::fields;

/// What is asked of `POST /detect`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct DetectAsk {
    #[schemars(required)]
    q: Option<Texts>,
    api_key: Option<String>,
}

/// A source language that `GET /languages` tells of.
#[derive(Serialize, JsonSchema)]
pub(super) struct LanguageAnswer {
    code: String,
    name: String,
    /// The languages that it can be translated to.
    targets: Vec<String>,
}

pub(super) async fn translate(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Fault> {
    let key = bearer(request.headers()).map(String::from);
    let (ask, is_json): (TranslateAsk, bool) = fields(request, &app.options).await?;
    let own = ask.api_key.clone().filter(|it| !it.is_empty());
    check_key(&app, own.or(key))?;
    let asked = Asked::new(ask, is_json, &app.catalogue)?;
    let characters = asked.texts.characters();
    let catalogue = app.catalogue.clone();
    let work = app.gate.run(move |watch| {
        let (answer, model) = asked.translate(&catalogue, watch)?;
        Ok((written(&answer)?, model))
    });
    let (bytes, model) = work.await?;
    Ok(translated(bytes, Work { characters, model }))
}

fn check_key(app: &App, key: Option<String>) -> Result<(), Fault> {
    let missing = Fault::bad("Please contact the server operator to get an API key")
        .with_hint("send it in the field api_key");
    app.check_key(key.as_deref(), missing)
}

pub(super) async fn detect(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Fault> {
    let key = bearer(request.headers()).map(String::from);
    let (ask, is_json): (DetectAsk, bool) = fields(request, &app.options).await?;
    check_key(&app, ask.api_key.filter(|it| !it.is_empty()).or(key))?;
    let texts = texts(ask.q, is_json)?;
    app.catalogue.limits().check_texts(&texts)?;
    let models = app.catalogue.models().iter();
    let mut codes: Vec<&str> = models.clone().map(|model| &*model.source).collect();
    codes.extend(models.map(|model| &*model.target));
    Ok(ok(&detect_language(&texts.as_slice().join("\n"), &codes)))
}

pub(super) async fn languages(State(app): State<Arc<App>>) -> Response {
    let languages = app.catalogue.languages().into_iter();
    let languages = languages.map(|(code, targets)| LanguageAnswer {
        code: code.into(),
        name: name(code),
        targets: targets.into_iter().map(String::from).collect(),
    });
    ok(&languages.collect::<Vec<_>>())
}

/// What LibreTranslate's own page and some clients ask for first.
pub(super) async fn settings(State(app): State<Arc<App>>) -> Response {
    let Options {
        keys,
        request_timeout,
        ..
    } = &app.options;
    let target = app.catalogue.models().first();
    let target = target.map_or("", |model| &model.target);
    ok(&serde_json::json!({
        "apiKeys": !keys.is_empty(),
        "charLimit": app.catalogue.limits().characters,
        "filesTranslation": false,
        "frontendTimeout": request_timeout.as_millis() as u64,
        "keyRequired": !keys.is_empty(),
        "language": {
            "source": {"code": "auto", "name": "Auto Detect"},
            "target": {"code": target, "name": name(target)},
        },
        "suggestions": false,
        "supportedFilesFormat": [],
    }))
}

pub(super) async fn translate_file() -> Fault {
    Fault::new(
        StatusCode::NOT_IMPLEMENTED,
        "this server translates no files",
    )
    .with_hint("send the text of the file to /translate")
    .closing()
}
