//! OTLP/HTTP: `POST /v1/logs`, and metrics and traces, which are let in and
//! dropped unread. With the feature `grpc` the same routes answer OTLP/gRPC.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;

use super::answer::Form;
use super::deliver::{Delivery, Packing, discard};
use super::{Refusal, TelemetryIntake, json, proto};

/// The routes of the receiver. They bound their bodies themselves
/// ([`super::MAX_BODY`]); who may reach them is the listener's matter.
///
/// A web page cannot use them from another origin: JSON and protobuf are types
/// that browsers ask leave for, and nothing here gives it.
pub fn routes(intake: Arc<dyn TelemetryIntake>) -> Router {
    let delivery = Delivery::to(intake);
    let routes = Router::new()
        .route("/v1/logs", post(logs))
        .route("/v1/metrics", post(drop_unread))
        .route("/v1/traces", post(drop_unread));
    #[cfg(feature = "grpc")]
    let routes = routes.merge(super::grpc::routes());
    routes.with_state(delivery)
}

async fn logs(State(delivery): State<Delivery>, headers: HeaderMap, body: Body) -> Response {
    let packing = Packing::named(the_only(&headers, &CONTENT_ENCODING));
    let (Some(form), Some(packing)) = (form(&headers), packing) else {
        return refused(Form::Json, delivery.refused(Refusal::UnsupportedType));
    };
    let decode = move |body: &[u8]| {
        let plain = packing.unpack(body)?;
        Ok(match form {
            Form::Json => json::logs(&plain),
            Form::Protobuf => proto::logs(&plain),
        }?)
    };
    match delivery.deliver(body, decode).await {
        Ok(malformed) => answer(StatusCode::OK, form, form.taken(malformed)),
        Err(refusal) => refused(form, refusal),
    }
}

/// Exporters come in threes: a CLI that sends logs sends metrics and traces
/// too, and complains where they are not taken.
async fn drop_unread(headers: HeaderMap, body: Body) -> Response {
    let form = form(&headers).unwrap_or(Form::Json);
    match discard(body).await {
        Ok(()) => answer(StatusCode::OK, form, form.taken(0)),
        Err(refusal) => refused(form, refusal),
    }
}

fn form(headers: &HeaderMap) -> Option<Form> {
    the_only(headers, &CONTENT_TYPE).and_then(Form::of_content_type)
}

/// The value of a header that is there once.
pub(super) fn the_only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h [u8]> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none()).map(|value| value.as_bytes())
}

fn refused(form: Form, refusal: Refusal) -> Response {
    let status = match refusal {
        Refusal::Undecodable => StatusCode::BAD_REQUEST,
        Refusal::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::UnsupportedType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Refusal::Incomplete => StatusCode::REQUEST_TIMEOUT,
        Refusal::Busy => StatusCode::SERVICE_UNAVAILABLE,
    };
    let answer = answer(status, form, form.refused(refusal));
    if refusal == Refusal::Busy { ([(RETRY_AFTER, "1")], answer).into_response() } else { answer }
}

fn answer(status: StatusCode, form: Form, body: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, form.content_type())], body).into_response()
}
