use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::reply::Work;
use super::{App, Fault};

/// One line of the log, and one entry of the metrics, for each request. Neither has what a client sent.
struct Record {
    app: Arc<App>,
    method: &'static str,
    route: String,
    started: Instant,
    status: u16,
    work: Option<Work>,
}

/// As nginx says it: the client did not wait for the answer.
const GONE: u16 = 499;

pub(super) async fn record(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let mut record = Record {
        route: route.map_or("other", |route| route.as_str()).to_string(),
        method: name(request.method()),
        started: Instant::now(),
        status: GONE,
        work: None,
        app: app.clone(),
    };
    app.metrics.in_flight.inc();
    let response = match app.shutdown.is_draining() {
        true => Fault::shutting_down().into_response(),
        false => next.run(request).await,
    };
    record.status = response.status().as_u16();
    record.work = response.extensions().get::<Work>().cloned();
    response
}

impl Drop for Record {
    fn drop(&mut self) {
        let time = self.started.elapsed();
        let (method, route, status) = (self.method, &*self.route, self.status);
        let ms = time.as_millis();
        let metrics = &self.app.metrics;
        metrics.in_flight.dec();
        metrics.answered(method, route, status, time);
        match &self.work {
            Some(Work { characters, model }) => {
                metrics.translated(model, *characters);
                tracing::info!(method, route, status, ms, characters, model, "request");
            }
            None => tracing::info!(method, route, status, ms, "request"),
        }
    }
}

/// Only so many names, however a client spells its methods.
fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
