//! The web configuration: TLS, headers and passwords, in the format of
//! Prometheus's exporter-toolkit. What `promtool check web-config` refuses is
//! refused here; what it accepts and this service cannot do is refused by name,
//! as a file that locks a door may not be taken for less than it says.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;

use super::error::ConfigError;
use super::read::read_bounded;
use super::yaml::parse;

pub mod tls;

use tls::{ClientAuth, Tls, WrittenTls};

/// No sane file is larger.
const LIMIT: u64 = 1 << 20;

/// The header names that the toolkit lets a file set, with the values allowed
/// where they are not free.
const HEADERS: [(&str, &[&str]); 5] = [
    ("Content-Security-Policy", &[]),
    ("Strict-Transport-Security", &[]),
    ("X-Content-Type-Options", &["nosniff"]),
    ("X-Frame-Options", &["deny", "sameorigin"]),
    ("X-XSS-Protection", &[]),
];

/// What a web configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebConfig {
    /// `None`: plain HTTP.
    pub tls: Option<Tls>,
    /// Set on every answer.
    pub headers: Vec<(&'static str, String)>,
    /// Who may ask; empty: everybody.
    pub users: BTreeMap<String, PasswordHash>,
}

/// A bcrypt hash of a password. Nothing prints it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PasswordHash(String);

impl PasswordHash {
    /// A check at the highest cost takes a few seconds.
    const MAX_COST: u32 = 16;

    /// The hash itself, for whoever checks a password.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// A check takes 2 to the power of it.
    #[must_use]
    pub fn cost(&self) -> u32 {
        // Two digits, checked when it was made.
        self.0[4..6].parse().unwrap_or(Self::MAX_COST)
    }
}

impl TryFrom<String> for PasswordHash {
    type Error = String;

    /// What is wrong is said without the hash.
    fn try_from(text: String) -> Result<Self, String> {
        let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'.' || c == b'/';
        let bytes = text.as_bytes();
        let form = bytes.len() == 60
            && ["$2a$", "$2b$", "$2x$", "$2y$"].iter().any(|version| text.starts_with(version))
            && bytes[4..6].iter().all(u8::is_ascii_digit)
            && bytes[6] == b'$'
            && bytes[7..].iter().copied().all(plain)
            // Salt and hash end within their last letters; what no bcrypt
            // writes into the rest of these could never be compared.
            && b".Oeu".contains(&bytes[28])
            && b".CGKOSWaeimquy26".contains(&bytes[59]);
        if !form {
            return Err("this is no bcrypt hash: write one as `htpasswd -nBC 10 NAME` prints it".into());
        }
        let hash = Self(text);
        match hash.cost() {
            4..=Self::MAX_COST => Ok(hash),
            0..4 => Err("a bcrypt hash of a cost below 4 is none: make it with a cost of 10".into()),
            cost => Err(format!(
                "a bcrypt cost of {cost} is not supported, as each check would take many seconds; the highest \
                 is {}",
                Self::MAX_COST
            )),
        }
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    tls_server_config: Option<WrittenTls>,
    http_server_config: Option<WrittenHttp>,
    basic_auth_users: Option<BTreeMap<String, PasswordHash>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHttp {
    /// HTTP/1.1 is spoken either way: clients agree on it when they connect.
    #[serde(rename = "http2")]
    _http2: Option<bool>,
    headers: Option<BTreeMap<String, String>>,
}

impl WebConfig {
    /// Reads a web configuration. The files it names are not read here.
    ///
    /// # Errors
    /// What cannot be used, with its line or its key.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let read = read_bounded(path, LIMIT);
        let text = read.map_err(|error| ConfigError::ReadWebConfig { path: path.to_owned(), error })?;
        let written: Written = parse(path, &text)?;
        let wrong = |key: &str, message: String| ConfigError::File {
            path: path.to_owned(),
            line: None,
            key: Some(key.to_owned()),
            message,
        };
        let directory = path.parent().unwrap_or(Path::new(""));
        let tls = written.tls_server_config.unwrap_or_default().read(directory);
        let tls = tls.map_err(|(key, message)| wrong(&format!("tls_server_config.{key}"), message))?;
        let mut headers = Vec::new();
        for (name, value) in written.http_server_config.and_then(|http| http.headers).unwrap_or_default() {
            let header = header(&name, value);
            headers.push(header.map_err(|why| wrong(&format!("http_server_config.headers.{name}"), why))?);
        }
        let users = written.basic_auth_users.unwrap_or_default();
        if let Some(user) = users.keys().find(|user| user.contains(':')) {
            let message = "no name with a colon can ever sign in: HTTP puts one between name and password";
            return Err(wrong(&format!("basic_auth_users.{user}"), message.into()));
        }
        Ok(Self { tls, headers, users })
    }

    /// Whether nobody reads without a password or a certificate.
    #[must_use]
    pub fn authenticates(&self) -> bool {
        !self.users.is_empty() || self.requires_certificates()
    }

    /// Whether nobody connects without a certificate.
    #[must_use]
    pub fn requires_certificates(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| matches!(tls.client_auth, ClientAuth::Required(_)))
    }

    /// The files that it names: what they hold is in force with it.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.tls.iter().flat_map(|tls| {
            let own = [tls.cert_file.as_path(), &tls.key_file];
            own.into_iter().chain(tls.client_auth.authorities())
        })
    }
}

fn header(name: &str, value: String) -> Result<(&'static str, String), String> {
    let Some((name, allowed)) = HEADERS.iter().find(|(known, _)| *known == name) else {
        return Err(format!("this header cannot be set; {} can", HEADERS.map(|(name, _)| name).join(", ")));
    };
    if !allowed.is_empty() && !allowed.contains(&value.as_str()) {
        return Err(format!("`{value}` is not allowed: write {}", allowed.join(" or ")));
    }
    if !value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
        return Err("a header is one line of plain ASCII".into());
    }
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::tls::TlsVersion;
    use super::*;

    /// Of no password.
    const HASH: &str = "$2y$05$.....................................................";

    fn read(text: &str) -> Result<WebConfig, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("web.yml");
        std::fs::write(&path, text).unwrap();
        let root = dir.path().display().to_string();
        WebConfig::read(&path).map_err(|error| error.to_string().replace(&root, ""))
    }

    #[test]
    fn a_full_file_is_read_and_its_paths_are_relative_to_it() {
        let hash = HASH;
        let config = read(&format!(
            "tls_server_config:\n  cert_file: tls/c.pem\n  key_file: /etc/k.pem\n  client_auth_type: \
             RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n  max_version: TLS12\n  cipher_suites: \
             [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n  curve_preferences: [X25519, CurveP256]\n\
             http_server_config:\n  http2: false\n  headers: {{X-Frame-Options: deny}}\nbasic_auth_users:\n  \
             ana: {hash}\n"
        ))
        .unwrap();
        let tls = config.tls.as_ref().unwrap();
        assert!(tls.cert_file.is_absolute() && tls.cert_file.ends_with("tls/c.pem"));
        assert_eq!(tls.key_file, Path::new("/etc/k.pem"));
        assert!(matches!(&tls.client_auth, ClientAuth::Required(ca) if ca.ends_with("ca.pem")));
        assert_eq!((tls.min_version, tls.max_version), (TlsVersion::V12, TlsVersion::V12));
        assert_eq!(config.headers, [("X-Frame-Options", "deny".to_owned())]);
        assert_eq!((config.users["ana"].secret(), config.users["ana"].cost()), (hash, 5));
        assert!(config.authenticates());
        assert_eq!(config.files().count(), 3);
        assert!(!format!("{config:?}").contains(hash), "no hash is printed");
    }

    #[test]
    fn a_file_may_say_nothing() {
        for text in [
            "",
            "# nothing\n",
            "{}",
            "tls_server_config:\n",
            "basic_auth_users: {}",
            "tls_server_config: {cert_file: ''}",
        ] {
            assert_eq!(read(text).unwrap(), WebConfig::default(), "{text}");
        }
        assert!(!WebConfig::default().authenticates());
    }

    #[test]
    fn only_certificates_that_are_required_authenticate() {
        for (kind, authenticates) in
            [("VerifyClientCertIfGiven", false), ("RequireAndVerifyClientCert", true)]
        {
            let config = read(&format!(
                "tls_server_config: {{cert_file: c, key_file: k, client_ca_file: a, client_auth_type: {kind}}}"
            ));
            assert_eq!(config.unwrap().authenticates(), authenticates, "{kind}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_by_its_member() {
        for (text, expected) in [
            ("rate_limit: {burst: 1}", "/web.yml, line 1, rate_limit: unknown field"),
            (
                "tls_server_config:\n  client_allowed_sans: [a]",
                "/web.yml, line 2, tls_server_config.client_allowed_sans: ",
            ),
            (
                "tls_server_config:\n  min_version: TLS10",
                "/web.yml, line 2, tls_server_config.min_version: TLS10 is not supported",
            ),
            (
                "tls_server_config: {min_version: TLS13}",
                "/web.yml, tls_server_config.cert_file: TLS needs a certificate",
            ),
            ("tls_server_config: {cert_file: c}", "/web.yml, tls_server_config.key_file: TLS needs"),
            (
                "tls_server_config: {cert_file: c, key_file: k, min_version: TLS13, max_version: TLS12}",
                "/web.yml, tls_server_config.min_version: it is above",
            ),
            (
                "tls_server_config: {cert_file: c, key_file: k, max_version: TLS12, cipher_suites: [TLS_AES_128_GCM_SHA256]}",
                "/web.yml, tls_server_config.cipher_suites: none of them",
            ),
            (
                "tls_server_config: {cert_file: c, key_file: k, client_auth_type: RequireAnyClientCert}",
                "/web.yml, tls_server_config.client_auth_type: RequireAnyClientCert is not supported",
            ),
            (
                "tls_server_config: {cert_file: c, key_file: k, client_auth_type: RequireAndVerifyClientCert}",
                "/web.yml, tls_server_config.client_ca_file: name the authorities",
            ),
            (
                "http_server_config: {headers: {X-Frame-Options: DENY}}",
                "/web.yml, http_server_config.headers.X-Frame-Options: `DENY` is not allowed",
            ),
            (
                "http_server_config:\n  headers: {Content-Security-Policy: \"a\\nb\"}",
                "/web.yml, http_server_config.headers.Content-Security-Policy: a header is one line",
            ),
            (
                "basic_auth_users:\n  ana: s3cret",
                "/web.yml, line 2, basic_auth_users.ana: this is no bcrypt hash",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_hash_has_a_cost_that_a_check_can_bear() {
        let hash = |cost: &str| PasswordHash::try_from(HASH.replace("$05$", cost));
        assert!(hash("$04$").is_ok() && hash("$16$").is_ok());
        for (at, letter) in [(28, "A"), (59, "A"), (2, "z"), (30, "!")] {
            let mut text = HASH.to_owned();
            text.replace_range(at..=at, letter);
            assert!(PasswordHash::try_from(text.clone()).is_err(), "{text}");
        }
        assert!(hash("$03$").unwrap_err().contains("below 4"));
        assert!(hash("$17$").unwrap_err().contains("cost of 17 is not supported"));
    }
}
