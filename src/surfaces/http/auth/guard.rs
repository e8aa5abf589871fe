//! What every request is asked before a route sees it.
//!
//! Whatever is neither GET nor HEAD writes. Passwords, where there are some,
//! are asked for everywhere; a write may show the token in their place, and
//! must show it where others reach the listener (accounting R72).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::password::{Credentials, Verdict};
use super::{Gate, InForce, origin};
use crate::surfaces::http::ApiError;

const BASIC: &str = r#"Basic realm="gemgauge", charset="UTF-8""#;
const BEARER: &str = r#"Bearer realm="gemgauge""#;

/// What one listener asks.
#[derive(Clone)]
pub(in crate::surfaces::http) struct Guard {
    pub(in crate::surfaces::http) gate: Arc<Gate>,
    /// Whether only this machine reaches the listener.
    pub(in crate::surfaces::http) loopback: bool,
}

/// An error, and the header that says how to do better.
struct Refusal(ApiError, Option<(axum::http::HeaderName, &'static str)>);

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self(error, None)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.0.into_response();
        if let Some((name, value)) = self.1 {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

fn unauthorized(challenge: &'static str, message: &str) -> Refusal {
    let error = ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message);
    Refusal(error, Some((WWW_AUTHENTICATE, challenge)))
}

impl Guard {
    async fn admit(&self, in_force: &InForce, method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            origin::check(headers)?;
            match token(headers).and_then(|token| self.gate.is_token(token)) {
                Some(true) => return Ok(()),
                Some(false) => return Err(unauthorized(BEARER, "this is not the token for writes")),
                None if self.loopback => {}
                None if self.gate.has_token() => {
                    return Err(unauthorized(BEARER, "whoever writes shows the token for writes"));
                }
                None => {
                    let message = "nobody writes here until web.write_token is configured";
                    return Err(unauthorized(BEARER, message));
                }
            }
        }
        if in_force.users.is_empty() {
            return Ok(());
        }
        let wrong = || unauthorized(BASIC, "a name and its password are needed");
        let who = credentials(headers).ok_or_else(wrong)?;
        match self.gate.passwords.check(&in_force.users, who).await {
            Verdict::Right => Ok(()),
            Verdict::Wrong => Err(wrong()),
            Verdict::Busy => {
                let message = "too many passwords are being checked; come again";
                let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message);
                Err(Refusal(error, Some((RETRY_AFTER, "1"))))
            }
        }
    }
}

/// What stands behind the scheme in the one Authorization header.
fn authorization<'h>(headers: &'h HeaderMap, scheme: &str) -> Option<&'h [u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (said, rest) = value.as_bytes().split_at_checked(scheme.len())?;
    let rest = rest.strip_prefix(b" ").filter(|_| said.eq_ignore_ascii_case(scheme.as_bytes()))?;
    Some(rest.trim_ascii())
}

fn token(headers: &HeaderMap) -> Option<&[u8]> {
    authorization(headers, "Bearer")
}

fn credentials(headers: &HeaderMap) -> Option<Credentials> {
    let decoded = STANDARD.decode(authorization(headers, "Basic")?).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let name = String::from_utf8(decoded[..colon].to_vec()).ok()?;
    Some(Credentials { name, password: decoded[colon + 1..].to_vec() })
}

/// Refuses whoever may not ask.
pub(in crate::surfaces::http) async fn guard(
    State(guard): State<Guard>,
    request: Request,
    next: Next,
) -> Response {
    let in_force = guard.gate.in_force();
    match guard.admit(&in_force, request.method(), request.headers()).await {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// Sets the headers of the web configuration on every answer.
pub(in crate::surfaces::http) async fn headers(
    State(gate): State<Arc<Gate>>,
    request: Request,
    next: Next,
) -> Response {
    let in_force = gate.in_force();
    let mut response = next.run(request).await;
    for (name, value) in &in_force.headers {
        response.headers_mut().insert(name, value.clone());
    }
    response
}
