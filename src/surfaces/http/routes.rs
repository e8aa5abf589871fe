//! Every route on one page.

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::routing::get;
use tower_http::compression::CompressionLayer;
use tower_http::limit::RequestBodyLimitLayer;

use crate::config::TelemetryPath;

use super::handlers::{self, MAX_BODY, Shared};
use super::{Hosts, Views, hosts};

/// What one listener's router is told.
#[derive(Clone, Debug)]
pub struct Options {
    pub telemetry_path: TelemetryPath,
    pub hosts: Hosts,
    /// Routes of sources that take data in. They bound their bodies themselves.
    pub inputs: Router,
}

/// The router of one listener. `get` answers `HEAD` too.
pub fn router(views: Arc<dyn Views>, options: Options) -> Router {
    let Options { telemetry_path, hosts, inputs } = options;
    let metrics = telemetry_path.as_str();
    let own = Router::new()
        .route("/", get(handlers::root))
        .route(metrics, get(handlers::metrics))
        .route("/-/healthy", get(handlers::healthy))
        .route("/-/ready", get(handlers::ready))
        .route("/api/v1/state", get(handlers::state))
        .route("/api/v1/report/{kind}", get(handlers::report))
        .route("/api/v1/sessions/{id}", get(handlers::session))
        .with_state(Shared::new(views, metrics))
        // The last layer sees a request first.
        .layer(RequestBodyLimitLayer::new(MAX_BODY))
        .layer(from_fn(handlers::bounded_body));
    guarded(own.merge(inputs), hosts)
}

/// The router of a listener that only takes data in.
pub fn inputs_alone(inputs: Router, hosts: Hosts) -> Router {
    guarded(inputs, hosts)
}

/// What holds for every route, and for what is none.
fn guarded(routes: Router, hosts: Hosts) -> Router {
    routes
        .fallback(handlers::not_found)
        .method_not_allowed_fallback(handlers::method_not_allowed)
        .layer(from_fn_with_state(Arc::new(hosts), hosts::guard))
        .layer(map_response(handlers::guarded_headers))
        .layer(CompressionLayer::new())
}
