//! Which names a listener answers to.
//!
//! A page in a browser can make a name of its own point at 127.0.0.1 and then
//! read what listens there as if it were its own (DNS rebinding). Its requests
//! still carry that name: a loopback listener answers to its own names only.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::ApiError;

/// The names one listener answers to, whatever the port.
#[derive(Clone, Debug)]
pub enum Hosts {
    /// Every name: a listener that others reach, behind authentication.
    Any,
    /// These only, in lower case; literal IPv6 addresses in brackets.
    Only(BTreeSet<String>),
}

impl Hosts {
    /// Of a loopback listener: its three names, and the configured ones.
    #[must_use]
    pub fn loopback<S: AsRef<str>>(configured: impl IntoIterator<Item = S>) -> Self {
        let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        let more = configured.into_iter().map(|name| normal(name.as_ref()));
        Self::Only(own.into_iter().chain(more).collect())
    }

    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let Self::Only(names) = self else { return Ok(()) };
        let mut values = headers.get_all(HOST).iter();
        let authority = match (values.next(), values.next(), uri.authority()) {
            (Some(value), None, _) => value.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
            // HTTP/2 names the host beside the path.
            (None, _, Some(authority)) => Some(authority.clone()),
            _ => return Err(ApiError::bad_request("bad_host", "the request must have one Host header")),
        };
        let Some(authority) = authority.filter(|authority| !authority.as_str().contains('@')) else {
            return Err(ApiError::bad_request("bad_host", "the Host header is no host name"));
        };
        // A request may name a host in both places.
        for host in uri.host().into_iter().chain([authority.host()]) {
            if !names.contains(&normal(host)) {
                return Err(ApiError::new(
                    StatusCode::MISDIRECTED_REQUEST,
                    "wrong_host",
                    format!(
                        "gemgauge does not answer to the name `{host}`; use localhost, or configure the name"
                    ),
                ));
            }
        }
        Ok(())
    }
}

fn normal(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Refuses requests for other names before anything looks at them.
pub(super) async fn guard(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    match hosts.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loopback_listener_answers_to_its_own_names_only() {
        let hosts = Hosts::loopback(["Gauge.lan"]);
        for (host, want) in [
            ("localhost:10436", None),
            ("LocalHost.", None),
            ("127.0.0.1", None),
            ("[::1]:10436", None),
            ("gauge.lan:80", None),
            ("evil.example:10436", Some(421)),
            ("localhost.evil.example", Some(421)),
            ("127.0.0.1.evil.example", Some(421)),
            ("127.0.0.2", Some(421)),
            ("evil.example@localhost", Some(400)),
            ("localhost, evil.example", Some(400)),
            ("", Some(400)),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().expect("a header value"));
            let got = hosts.check(&Uri::from_static("/metrics"), &headers);
            assert_eq!(got.err().map(|error| error.status.as_u16()), want, "{host:?}");
        }
    }

    #[test]
    fn no_host_two_hosts_and_another_host_in_the_first_line_are_refused() {
        let hosts = Hosts::loopback([""; 0]);
        let path = Uri::from_static("/");
        let status =
            |uri: &Uri, headers: &HeaderMap| hosts.check(uri, headers).err().map(|e| e.status.as_u16());
        let mut headers = HeaderMap::new();
        assert_eq!(status(&path, &headers), Some(400));
        assert_eq!(status(&Uri::from_static("http://localhost:4317/"), &headers), None);
        assert_eq!(status(&Uri::from_static("http://evil.example:4317/"), &headers), Some(421));
        assert_eq!(status(&Uri::from_static("http://evil@localhost:4317/"), &headers), Some(400));
        headers.append(HOST, "localhost".parse().expect("a header value"));
        assert_eq!(status(&path, &headers), None);
        assert_eq!(status(&Uri::from_static("http://evil.example/"), &headers), Some(421));
        headers.append(HOST, "localhost".parse().expect("a header value"));
        assert_eq!(status(&path, &headers), Some(400));
    }

    #[test]
    fn a_listener_for_others_answers_to_every_name() {
        assert_eq!(Hosts::Any.check(&Uri::from_static("/"), &HeaderMap::new()), Ok(()));
    }
}
