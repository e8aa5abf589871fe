//! Which web pages may write: none but our own.
//!
//! A page can send a POST to any address its reader reaches, this service on
//! loopback included, even where it may not see the answer. Browsers say where
//! such a request comes from; programs that are no browser say nothing.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};

use crate::surfaces::http::ApiError;

/// Refuses a write on behalf of another page.
pub(super) fn check(headers: &HeaderMap) -> Result<(), ApiError> {
    let foreign = ApiError::new(
        StatusCode::FORBIDDEN,
        "cross_origin",
        "a page of another site may not write here; programs send neither Origin nor Sec-Fetch-Site",
    );
    // `none`: the user asked for it, no page did.
    let site = |value: &axum::http::HeaderValue| value == "same-origin" || value == "none";
    if !headers.get_all("sec-fetch-site").iter().all(site) {
        return Err(foreign);
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let ours = |origin: &axum::http::HeaderValue| {
        // `null` and other texts have no authority.
        let origin: Option<Uri> = origin.to_str().ok().and_then(|origin| origin.parse().ok());
        let authority = origin.as_ref().and_then(|origin| Some((origin.scheme_str()?, origin.authority()?)));
        authority.zip(host).is_some_and(|((scheme, authority), host)| {
            let default = if scheme == "https" { ":443" } else { ":80" };
            let bare = |name: &str| name.strip_suffix(default).unwrap_or(name).to_ascii_lowercase();
            bare(authority.as_str()) == bare(host)
        })
    };
    if headers.get_all(ORIGIN).iter().all(ours) { Ok(()) } else { Err(foreign) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_page_and_programs_write() {
        let own = "localhost:10436";
        for (host, origin, site, passes) in [
            (own, None, None, true),
            (own, Some("http://localhost:10436"), None, true),
            (own, Some("http://LOCALHOST:10436"), Some("same-origin"), true),
            ("gauge.example", Some("https://gauge.example"), Some("same-origin"), true),
            ("gauge.example:443", Some("https://gauge.example"), None, true),
            (own, None, Some("none"), true),
            (own, None, Some("cross-site"), false),
            (own, None, Some("same-site"), false),
            (own, Some("http://localhost:10436"), Some("cross-site"), false),
            (own, Some("http://localhost:3000"), None, false),
            (own, Some("http://localhost"), None, false),
            (own, Some("https://evil.example"), None, false),
            (own, Some("https://localhost:10436.evil.example"), None, false),
            (own, Some("https://localhost:10436@evil.example"), None, false),
            (own, Some("null"), None, false),
            (own, Some(""), None, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().expect("a value"));
            for (name, value) in [("origin", origin), ("sec-fetch-site", site)] {
                if let Some(value) = value {
                    headers.insert(name, value.parse().expect("a value"));
                }
            }
            let error = check(&headers).err();
            assert_eq!(error.is_none(), passes, "{host} {origin:?} {site:?}");
            assert!(error.is_none_or(|error| error.status == 403 && error.code == "cross_origin"));
        }
    }

    #[test]
    fn of_two_origins_both_count() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost".parse().expect("a value"));
        headers.append(ORIGIN, "http://localhost".parse().expect("a value"));
        assert!(check(&headers).is_ok());
        headers.append(ORIGIN, "http://evil.example".parse().expect("a value"));
        assert!(check(&headers).is_err());
    }
}
