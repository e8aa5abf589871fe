//! Every route on one page.

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::routing::get;
use tower_http::compression::CompressionLayer;
use tower_http::limit::RequestBodyLimitLayer;

use crate::config::TelemetryPath;

use super::auth::{self, Guard};
use super::handlers::{self, MAX_BODY, Shared};
use super::{Gate, Hosts, Live, Views, hosts, page};

/// What one listener's router is told.
#[derive(Clone)]
pub struct Options {
    pub telemetry_path: TelemetryPath,
    pub hosts: Hosts,
    pub gate: Arc<Gate>,
    /// Whether only this machine reaches the listener.
    pub loopback: bool,
    /// Of all listeners together.
    pub live: Live,
    /// Routes of sources that take data in. They bound their bodies themselves.
    pub inputs: Router,
}

/// The router of one listener. `get` answers `HEAD` too.
pub fn router(views: Arc<dyn Views>, options: Options) -> Router {
    let Options { telemetry_path, hosts, gate, loopback, inputs, live } = options;
    let metrics = telemetry_path.as_str();
    let own = Router::new()
        .merge(page::routes(metrics))
        .route(metrics, get(handlers::metrics))
        .route("/-/healthy", get(handlers::healthy))
        .route("/-/ready", get(handlers::ready))
        .route("/api/v1/state", get(handlers::state))
        .route("/api/v1/live", get(handlers::live))
        .route("/api/v1/report/{kind}", get(handlers::report))
        .route("/api/v1/sessions/{id}", get(handlers::session))
        .route("/api/v1/quota", get(handlers::quota))
        // Below the layers, so that a body is bounded before it is refused for its method.
        .method_not_allowed_fallback(handlers::method_not_allowed)
        .with_state(Shared::new(views, live))
        // The last layer sees a request first.
        .layer(RequestBodyLimitLayer::new(MAX_BODY))
        .layer(from_fn(handlers::bounded_body));
    guarded(own.merge(inputs), hosts, gate, loopback)
}

/// The router of a listener that only takes data in.
pub fn inputs_alone(inputs: Router, hosts: Hosts, gate: Arc<Gate>, loopback: bool) -> Router {
    guarded(inputs, hosts, gate, loopback)
}

/// What holds for every route, and for what is none.
fn guarded(routes: Router, hosts: Hosts, gate: Arc<Gate>, loopback: bool) -> Router {
    routes
        .fallback(handlers::not_found)
        .method_not_allowed_fallback(handlers::method_not_allowed)
        .layer(from_fn_with_state(Guard { gate: gate.clone(), loopback }, auth::guard))
        .layer(from_fn_with_state(Arc::new(hosts), hosts::guard))
        .layer(map_response(handlers::guarded_headers))
        .layer(from_fn_with_state(gate, auth::headers))
        .layer(CompressionLayer::new())
}
