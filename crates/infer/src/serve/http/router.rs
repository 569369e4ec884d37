use std::any::Any;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{Any as AnyOrigin, CorsLayer};

use super::assets::ASSETS;
use super::reply::ok;
use super::{App, Fault, access, guard, libretranslate, v1};
use crate::Error;

/// For the page: nothing comes from elsewhere, and nobody may frame it.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";

/// What is answered where.
pub(super) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/v1/models", get(v1::models))
        .route("/v1/translate", post(v1::translate))
        .route("/v1/alternatives", post(v1::alternatives))
        .route("/translate", post(libretranslate::translate))
        .route("/translate_file", post(libretranslate::translate_file))
        .route("/detect", post(libretranslate::detect))
        .route("/languages", get(libretranslate::languages))
        .route("/frontend/settings", get(libretranslate::settings))
        .route("/health", get(health))
        .route("/healthz", get(health))
        .route("/openapi.json", get(openapi))
        .route("/spec", get(openapi))
        .route("/metrics", get(metrics));
    for asset in ASSETS {
        let answer = async move |headers: HeaderMap| asset.answer(&headers);
        router = router.route(asset.path, get(answer));
    }
    router = router
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(app.clone(), guard::check));
    if let Some(cors) = cors(&app.options.cors_origins) {
        router = router.layer(cors);
    }
    router
        .layer(CatchPanicLayer::custom(panicked))
        .layer(map_response(secured))
        .layer(from_fn_with_state(app.clone(), access::record))
        .with_state(app)
}

async fn health() -> Response {
    ok(&serde_json::json!({ "status": "ok" }))
}

async fn openapi(State(app): State<Arc<App>>) -> Response {
    with_type("application/json", app.openapi.clone())
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    with_type(kind, app.metrics.text())
}

fn with_type(kind: &'static str, text: String) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

async fn unknown() -> Fault {
    Fault::new(StatusCode::NOT_FOUND, "there is nothing at this path")
        .with_hint("the document at /openapi.json lists the paths")
}

async fn wrong_method() -> Fault {
    let message = "this path does not answer this method";
    Fault::new(StatusCode::METHOD_NOT_ALLOWED, message)
        .with_hint("the Allow header lists those that it answers")
}

/// Outside of the work of models, which has a guard of its own.
fn panicked(panic: Box<dyn Any + Send>) -> Response {
    tracing::error!("a request panicked: {}", Error::panicked(&*panic));
    Fault::internal().into_response()
}

async fn secured(mut response: Response) -> Response {
    let headers: [(HeaderName, &'static str); 3] = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CONTENT_SECURITY_POLICY, POLICY),
    ];
    for (name, value) in headers {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

fn cors(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let layer = CorsLayer::new()
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([CONTENT_TYPE, axum::http::header::AUTHORIZATION]);
    if origins.iter().any(|origin| origin == "*") {
        return Some(layer.allow_origin(AnyOrigin));
    }
    let origins = origins.iter().filter_map(|origin| origin.parse().ok());
    Some(layer.allow_origin(origins.collect::<Vec<HeaderValue>>()))
}
