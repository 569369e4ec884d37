use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// In seconds: from a page to a long document.
const BUCKETS: [f64; 12] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 120.0,
];

/// What `GET /metrics` tells. No label has a value that a client chooses.
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    seconds: Family<Route, Histogram>,
    pub(super) in_flight: Gauge,
    pub(super) waiting: Gauge,
    pub(super) connections: Gauge,
    characters: Family<Model, Counter>,
    failures: Family<Kind, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Request {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Route {
    route: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Model {
    model: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kind {
    kind: String,
}

impl Metrics {
    /// Of a server with these models.
    pub(super) fn new(models: &[String]) -> Self {
        let mut registry = Registry::with_prefix("attend");
        let requests = Family::default();
        registry.register(
            "requests",
            "Requests by method, route and status; 499 if the client did not wait",
            requests.clone(),
        );
        let seconds: Family<Route, Histogram> =
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        registry.register(
            "request_seconds",
            "Time from a request's head to its answer",
            seconds.clone(),
        );
        let in_flight = Gauge::default();
        registry.register(
            "requests_in_flight",
            "Requests that are being answered",
            in_flight.clone(),
        );
        let waiting = Gauge::default();
        registry.register(
            "requests_waiting",
            "Requests that wait to be translated",
            waiting.clone(),
        );
        let connections = Gauge::default();
        registry.register("connections", "Open connections", connections.clone());
        let characters = Family::<Model, Counter>::default();
        for model in models {
            let model = model.clone();
            drop(characters.get_or_create(&Model { model }));
        }
        registry.register(
            "translated_characters",
            "Characters of the texts that were translated, by model",
            characters.clone(),
        );
        let failures = Family::<Kind, Counter>::default();
        for kind in ["panic", "queue", "timeout"] {
            drop(failures.get_or_create(&Kind { kind: kind.into() }));
        }
        registry.register(
            "failures",
            "Requests that failed in the server: a panic, a full queue, a time-out",
            failures.clone(),
        );
        Self {
            registry,
            requests,
            seconds,
            in_flight,
            waiting,
            connections,
            characters,
            failures,
        }
    }

    pub(super) fn answered(&self, method: &str, route: &str, status: u16, time: Duration) {
        let (method, route) = (method.to_string(), route.to_string());
        let seconds = self.seconds.get_or_create(&Route {
            route: route.clone(),
        });
        seconds.observe(time.as_secs_f64());
        drop(seconds);
        let request = Request {
            method,
            route,
            status,
        };
        self.requests.get_or_create(&request).inc();
    }

    pub(super) fn translated(&self, model: &str, characters: usize) {
        let model = model.to_string();
        let counter = self.characters.get_or_create(&Model { model });
        counter.inc_by(characters as u64);
    }

    /// `kind` is one of panic, queue and timeout.
    pub(super) fn failed(&self, kind: &str) {
        self.failures
            .get_or_create(&Kind { kind: kind.into() })
            .inc();
    }

    /// In the text format of OpenMetrics.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}
