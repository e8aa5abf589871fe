//! OTLP/gRPC: unary calls, written out over the HTTP/2 that axum speaks.
//!
//! A call is a POST whose body is one message behind five bytes (packed or not,
//! length); the answer is the same, with the status in the trailers. That is
//! all of gRPC that an exporter needs.

use std::future::ready;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http_body_util::{BodyExt, Full};

use super::answer::{Form, grpc_code, message};
use super::deliver::{Delivery, Packing, discard};
use super::http::the_only;
use super::{Refusal, proto};

const TYPE: &str = "application/grpc";
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

pub(super) fn routes() -> Router<Delivery> {
    let service = |signal: &str, service: &str| {
        format!("/opentelemetry.proto.collector.{signal}.v1.{service}Service/Export")
    };
    Router::new()
        .route(&service("logs", "Logs"), post(logs))
        .route(&service("metrics", "Metrics"), post(drop_unread))
        .route(&service("trace", "Trace"), post(drop_unread))
}

async fn logs(
    State(delivery): State<Delivery>,
    version: Version,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, StatusCode> {
    check(version, &headers)?;
    let Some(packing) = Packing::named(the_only(&headers, &ENCODING)) else {
        return Ok(refused(delivery.refused(Refusal::UnsupportedType)));
    };
    let decode = move |body: &[u8]| {
        let (packed, message) = unframe(body).ok_or(Refusal::Undecodable)?;
        let packing = if packed { packing } else { Packing::Plain };
        Ok(proto::logs(&packing.unpack(message)?)?)
    };
    Ok(match delivery.deliver(body, decode).await {
        Ok(malformed) => taken(&Form::Protobuf.taken(malformed)),
        Err(refusal) => refused(refusal),
    })
}

async fn drop_unread(version: Version, headers: HeaderMap, body: Body) -> Result<Response, StatusCode> {
    check(version, &headers)?;
    Ok(match discard(body).await {
        Ok(()) => taken(&[]),
        Err(refusal) => refused(refusal),
    })
}

fn check(version: Version, headers: &HeaderMap) -> Result<(), StatusCode> {
    let content_type = the_only(headers, &CONTENT_TYPE).unwrap_or_default();
    match content_type.strip_prefix(TYPE.as_bytes()) {
        _ if version != Version::HTTP_2 => Err(StatusCode::HTTP_VERSION_NOT_SUPPORTED),
        Some([] | [b';', ..] | b"+proto") => Ok(()),
        _ => Err(StatusCode::UNSUPPORTED_MEDIA_TYPE),
    }
}

/// The one message of a unary call, and whether it is packed.
fn unframe(body: &[u8]) -> Option<(bool, &[u8])> {
    let (head, message) = body.split_at_checked(5)?;
    let len = u32::from_be_bytes(head[1..].try_into().ok()?);
    let packed = match head[0] {
        0 => false,
        1 => true,
        _ => return None,
    };
    (usize::try_from(len) == Ok(message.len())).then_some((packed, message))
}

fn taken(message: &[u8]) -> Response {
    let mut framed = vec![0];
    let len = u32::try_from(message.len()).expect("an answer is a few bytes");
    framed.extend_from_slice(&len.to_be_bytes());
    framed.extend_from_slice(message);
    let trailers = HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))]);
    let body = Full::new(Bytes::from(framed)).with_trailers(ready(Some(Ok(trailers))));
    ([(CONTENT_TYPE, TYPE)], Body::new(body)).into_response()
}

/// An answer of headers alone.
fn refused(refusal: Refusal) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(TYPE)),
        (STATUS, HeaderValue::from(grpc_code(refusal))),
        (MESSAGE, HeaderValue::from_static(message(refusal))),
    ];
    (headers, Body::empty()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_whole_message_or_none() {
        assert_eq!(unframe(&[0, 0, 0, 0, 0]), Some((false, &[][..])));
        assert_eq!(unframe(&[1, 0, 0, 0, 2, 7, 8]), Some((true, &[7, 8][..])));
        for body in [&[][..], &[0, 0, 0, 0], &[0, 0, 0, 0, 1], &[0, 0, 0, 0, 0, 1], &[2, 0, 0, 0, 0]] {
            assert_eq!(unframe(body), None, "{body:?}");
        }
    }
}
