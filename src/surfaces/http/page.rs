//! The files of the page: kept by browsers, asked for anew each time.

use std::sync::Arc;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::handlers::Shared;
use crate::surfaces::page::{Asset, POLICY, assets};

pub(super) fn routes(metrics: &str) -> Router<Shared> {
    assets(metrics).into_iter().map(Arc::new).fold(Router::new(), |router, asset| {
        let path = asset.path;
        router.route(path, get(async move |headers: HeaderMap| answer(&asset, &headers)))
    })
}

fn answer(asset: &Asset, headers: &HeaderMap) -> Response {
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let known = known.flat_map(|value| value.split(',')).any(|tag| is(tag.trim(), &asset.etag));
    let caching =
        [(ETAG, asset.etag.as_str()), (CACHE_CONTROL, "no-cache"), (CONTENT_SECURITY_POLICY, POLICY)];
    if known {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(CONTENT_TYPE, asset.content_type)], asset.body.clone()).into_response()
}

/// The weak comparison of entity tags.
fn is(tag: &str, ours: &str) -> bool {
    let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    tag == "*" || opaque(tag) == opaque(ours)
}
