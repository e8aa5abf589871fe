//! Whether and how the quota of a Google sign-in is polled (docs/quota.md).

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::Deserialize;

pub use crate::ledger::quota::RISK as QUOTA_RISK;

/// What was said about polling; nothing is polled unless `enabled`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    pub enabled: bool,
    pub project: ProjectRule,
    /// `None`: as Gemini CLI has it, `$CODE_ASSIST_ENDPOINT` or Google's own.
    pub endpoint: Option<Endpoint>,
    /// `None`: as Gemini CLI has it, `$CODE_ASSIST_API_VERSION` or `v1internal`.
    pub api_version: Option<ApiVersion>,
    /// Names for the hashes that accounts are known by.
    pub accounts: BTreeMap<String, String>,
}

/// Which Cloud project is asked about (quota Q7).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum ProjectRule {
    /// The one Google assigned, else that of the environment: as Gemini CLI does it.
    #[default]
    Auto,
    /// That of the environment, else the one Google assigned.
    Env,
    Pinned(ProjectId),
}

/// The bare id of a Cloud project, never its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectId(String);

impl ProjectId {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProjectId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        if text.is_empty() || text.len() > 64 || !text.chars().all(plain) {
            return Err("this is no project id: write it bare, such as my-project-123".into());
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("this is a project's number: write its id, such as my-project-123".into());
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for ProjectRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "env" => Ok(Self::Env),
            id => id.parse().map(Self::Pinned).map_err(|error| format!("{error}; or auto, or env")),
        }
    }
}

impl TryFrom<String> for ProjectRule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for ProjectRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Env => "env",
            Self::Pinned(id) => id.as_str(),
        })
    }
}

/// Where the token of a sign-in may go: https, or this machine (quota Q6).
/// Without credentials, query or trailing slash.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Endpoint(String);

impl Endpoint {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `host`, `host:port`, `[::1]:port` → the host.
fn host(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => authority.find(':').map_or((authority, ""), |at| authority.split_at(at)),
    };
    let port_is_fine = match port.strip_prefix(':') {
        Some(number) => number.bytes().all(|byte| byte.is_ascii_digit()) && number.parse::<u16>().is_ok(),
        None => port.is_empty(),
    };
    (port_is_fine && !host.is_empty()).then_some(host)
}

impl FromStr for Endpoint {
    type Err = String;

    /// What is wrong is said without the address: it may hold a secret.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "this is no address: write one such as https://cloudcode-pa.googleapis.com".to_owned();
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        // Nothing that two parsers of addresses could read in two ways.
        let plain = |c: char, more: &str| c.is_ascii_alphanumeric() || more.contains(c);
        if !authority.chars().all(|c| plain(c, ".-_:[]")) || !path.chars().all(|c| plain(c, "/.-_~")) {
            return Err(wrong());
        }
        let host = host(authority).ok_or_else(wrong)?;
        let here = host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
        match scheme.to_ascii_lowercase().as_str() {
            "https" => {}
            "http" if here => {}
            "http" => return Err("a token goes out by https only, except to this machine itself".into()),
            _ => return Err(wrong()),
        }
        Ok(Self(format!("{}://{authority}{}", scheme.to_ascii_lowercase(), path.trim_end_matches('/'))))
    }
}

impl TryFrom<String> for Endpoint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The part of the path before the colon: `v1internal`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ApiVersion(String);

impl ApiVersion {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ApiVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let fits =
            (1..=32).contains(&text.len()) && text.chars().all(plain) && text.contains(char::is_alphabetic);
        fits.then(|| Self(text.to_owned()))
            .ok_or_else(|| "this is no version: write one such as v1internal".to_owned())
    }
}

impl TryFrom<String> for ApiVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q1_the_risk_is_two_sentences() {
        assert_eq!(QUOTA_RISK.matches(". ").count() + 1, 2, "two sentences");
        assert!(QUOTA_RISK.ends_with('.') && !QUOTA_RISK.contains("  "), "{QUOTA_RISK}");
    }

    #[test]
    fn q6_a_token_goes_out_by_https_or_stays_here() {
        for (text, read) in [
            ("https://cloudcode-pa.googleapis.com", "https://cloudcode-pa.googleapis.com"),
            ("HTTPS://staging.example:8443/base/", "https://staging.example:8443/base"),
            ("http://127.0.0.1:8899/", "http://127.0.0.1:8899"),
            ("http://LocalHost:1", "http://LocalHost:1"),
            ("http://[::1]:2", "http://[::1]:2"),
            ("http://127.8.9.1", "http://127.8.9.1"),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().as_str(), read);
        }
        for text in [
            "",
            "cloudcode-pa.googleapis.com",
            "http://cloudcode-pa.googleapis.com",
            "http://127.0.0.1.example",
            "http://localhost.example",
            "http://127.0.0.1@example.com",
            "http://127.0.0.1\\.example.com",
            "http://127.0.0.1#.example.com/",
            "https://user:s3cret@host",
            "https://host?x=s3cret",
            "https://host/a b",
            "https://host:99999",
            "https://host:+1",
            "https://[::1",
            "https://",
            "https:///x",
            "ftp://localhost",
            "http://0.0.0.0:1",
            "http://[::]:1",
        ] {
            let error = text.parse::<Endpoint>().unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn q7_a_project_is_an_id_and_never_a_number() {
        assert_eq!("auto".parse(), Ok(ProjectRule::Auto));
        assert_eq!("env".parse(), Ok(ProjectRule::Env));
        let rule: ProjectRule = "example.com:my-project-1".parse().unwrap();
        assert_eq!(rule.to_string(), "example.com:my-project-1");
        for text in ["", "123456789012", "projects/my-project", "a b", "ä"] {
            assert!(text.parse::<ProjectRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_version_stays_within_its_part_of_the_path() {
        assert_eq!("v1internal".parse::<ApiVersion>().unwrap().as_str(), "v1internal");
        for text in ["", "..", "v1/x", "v1:x", "v 1", "v1?x"] {
            assert!(text.parse::<ApiVersion>().is_err(), "{text}");
        }
    }
}
