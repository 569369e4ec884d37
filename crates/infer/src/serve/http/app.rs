use std::sync::Arc;

use super::gate::Gate;
use super::guard::Guard;
use super::openapi;
use super::shutdown::Shutdown;
use super::{Fault, Metrics, Options};
use crate::serve::Catalogue;

/// What all requests share.
pub(super) struct App {
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) options: Options,
    pub(super) metrics: Arc<Metrics>,
    pub(super) gate: Gate,
    pub(super) guard: Guard,
    pub(super) shutdown: Shutdown,
    /// The document at `/openapi.json`.
    pub(super) openapi: String,
}

impl App {
    pub(super) fn new(catalogue: Catalogue, options: Options, is_loopback: bool) -> Self {
        let models = catalogue.models().iter();
        let models: Vec<String> = models.map(|model| model.name.clone()).collect();
        let metrics = Arc::new(Metrics::new(&models));
        let shutdown = Shutdown::default();
        Self {
            gate: Gate::new(&options, shutdown.cancelled(), metrics.clone()),
            guard: Guard::new(&options, is_loopback),
            openapi: openapi::document(&catalogue, &options).to_string(),
            catalogue: Arc::new(catalogue),
            options,
            metrics,
            shutdown,
        }
    }

    /// Checks a key; `missing` is the answer if there is none and one is needed.
    pub(super) fn check_key(&self, key: Option<&str>, missing: Fault) -> Result<(), Fault> {
        let keys = &self.options.keys;
        match key {
            _ if keys.is_empty() => Ok(()),
            None | Some("") => Err(missing),
            Some(key) if keys.contains(key) => Ok(()),
            Some(_) => Err(Fault::new(
                axum::http::StatusCode::FORBIDDEN,
                "Invalid API key",
            )),
        }
    }
}
