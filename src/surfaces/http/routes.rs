//! Every route on one page.

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::routing::get;
use tower_http::compression::CompressionLayer;
use tower_http::limit::RequestBodyLimitLayer;

use super::handlers::{self, MAX_BODY, Shared};
use super::{Hosts, Views, hosts};

/// What one listener's router is told.
#[derive(Clone, Debug)]
pub struct Options {
    pub telemetry_path: TelemetryPath,
    pub hosts: Hosts,
}

/// The router of one listener. `get` answers `HEAD` too.
pub fn router(views: Arc<dyn Views>, options: Options) -> Router {
    let Options { telemetry_path, hosts } = options;
    let metrics = telemetry_path.as_str();
    Router::new()
        .route("/", get(handlers::root))
        .route(metrics, get(handlers::metrics))
        .route("/-/healthy", get(handlers::healthy))
        .route("/-/ready", get(handlers::ready))
        .route("/api/v1/state", get(handlers::state))
        .route("/api/v1/report/{kind}", get(handlers::report))
        .route("/api/v1/sessions/{id}", get(handlers::session))
        .fallback(handlers::not_found)
        .method_not_allowed_fallback(handlers::method_not_allowed)
        .with_state(Shared::new(views, metrics))
        // The last layer sees a request first.
        .layer(RequestBodyLimitLayer::new(MAX_BODY))
        .layer(from_fn(handlers::bounded_body))
        .layer(from_fn_with_state(Arc::new(hosts), hosts::guard))
        .layer(map_response(handlers::guarded_headers))
        .layer(CompressionLayer::new())
}

/// Where the metrics are: `/metrics`, or what `--web.telemetry-path` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryPath(String);

impl Default for TelemetryPath {
    fn default() -> Self {
        Self("/metrics".to_owned())
    }
}

impl TelemetryPath {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for TelemetryPath {
    type Err = String;

    /// Takes an absolute path of plain characters that is not one of ours.
    fn from_str(path: &str) -> Result<Self, String> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~".contains(&b);
        if !path.starts_with('/') || !path.bytes().all(plain) {
            return Err(format!("the telemetry path `{path}` must be a path such as /metrics"));
        }
        if path == "/" || ["/api/", "/-/"].iter().any(|ours| path.starts_with(ours)) {
            return Err(format!("the telemetry path `{path}` is taken by something else"));
        }
        Ok(Self(path.to_owned()))
    }
}
