//! How TLS is spoken: what a file may say of it.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// How TLS is spoken. Paths are absolute, or as good as the file's own path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    pub client_auth: ClientAuth,
    pub min_version: TlsVersion,
    pub max_version: TlsVersion,
    /// For TLS 1.2; empty: all that are known. Those of 1.3 are not a choice.
    pub cipher_suites: Vec<CipherSuite>,
    /// In the order of preference; empty: all that are known.
    pub curves: Vec<Curve>,
    pub prefer_server_cipher_suites: bool,
}

/// What is asked of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    None,
    /// A certificate is verified where there is one; none is fine.
    IfGiven(PathBuf),
    /// No connection without a certificate of these authorities.
    Required(PathBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub enum TlsVersion {
    V12,
    V13,
}

impl TryFrom<String> for TlsVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "TLS12" => Ok(Self::V12),
            "TLS13" => Ok(Self::V13),
            "TLS10" | "TLS11" => {
                Err(format!("{text} is not supported, as nobody should speak it: write TLS12 or TLS13"))
            }
            _ => Err(format!("`{text}` is no version of TLS: write TLS12 or TLS13")),
        }
    }
}

/// A suite of TLS 1.2 that is still sound, by the names of Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CipherSuite {
    EcdsaAes128Gcm,
    EcdsaAes256Gcm,
    EcdsaChacha20,
    RsaAes128Gcm,
    RsaAes256Gcm,
    RsaChacha20,
    /// One of TLS 1.3, which may be named and changes nothing.
    Tls13,
}

const SUITES: [(&str, CipherSuite); 9] = [
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", CipherSuite::EcdsaAes128Gcm),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", CipherSuite::EcdsaAes256Gcm),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", CipherSuite::EcdsaChacha20),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", CipherSuite::RsaAes128Gcm),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", CipherSuite::RsaAes256Gcm),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", CipherSuite::RsaChacha20),
    ("TLS_AES_128_GCM_SHA256", CipherSuite::Tls13),
    ("TLS_AES_256_GCM_SHA384", CipherSuite::Tls13),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::Tls13),
];

impl<'de> Deserialize<'de> for CipherSuite {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let known = SUITES.iter().find(|(name, _)| *name == text);
        known.map(|(_, suite)| *suite).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "the cipher suite `{text}` is not supported; those with ECDHE and AES-GCM or CHACHA20 are"
            ))
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Curve {
    P256,
    P384,
    X25519,
}

impl TryFrom<String> for Curve {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "CurveP256" => Ok(Self::P256),
            "CurveP384" => Ok(Self::P384),
            "X25519" => Ok(Self::X25519),
            _ => Err(format!("the curve `{text}` is not supported: write CurveP256, CurveP384 or X25519")),
        }
    }
}

impl ClientAuth {
    /// The file of the authorities whose certificates count.
    #[must_use]
    pub fn authorities(&self) -> Option<&Path> {
        match self {
            Self::None => None,
            Self::IfGiven(file) | Self::Required(file) => Some(file),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenTls {
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    client_auth_type: Option<String>,
    client_ca_file: Option<PathBuf>,
    min_version: Option<TlsVersion>,
    max_version: Option<TlsVersion>,
    cipher_suites: Option<Vec<CipherSuite>>,
    curve_preferences: Option<Vec<Curve>>,
    prefer_server_cipher_suites: Option<bool>,
}

impl WrittenTls {
    /// What is said of TLS, or the member that is wrong and why.
    pub(super) fn read(self, directory: &Path) -> Result<Option<Tls>, (&'static str, String)> {
        // As in the toolkit, nothing between the quotes is nothing.
        let path = |path: &Option<PathBuf>| {
            path.as_ref().filter(|path| !path.as_os_str().is_empty()).map(|path| directory.join(path))
        };
        let (cert, key, authorities) =
            (path(&self.cert_file), path(&self.key_file), path(&self.client_ca_file));
        let auth = self.client_auth_type.as_deref().unwrap_or_default();
        if cert.is_none() && key.is_none() && authorities.is_none() && auth.is_empty() {
            // Empty names are how the toolkit writes no TLS. The rest says how to
            // speak it, so whoever wrote that wants it spoken.
            let rest = self.min_version.is_some()
                || self.max_version.is_some()
                || self.cipher_suites.is_some()
                || self.curve_preferences.is_some()
                || self.prefer_server_cipher_suites.is_some();
            if !rest {
                return Ok(None);
            }
        }
        let missing = |key| (key, "TLS needs a certificate and its key: name both files".to_owned());
        let cert_file = cert.ok_or_else(|| missing("cert_file"))?;
        let key_file = key.ok_or_else(|| missing("key_file"))?;
        let client_auth = match (auth, authorities) {
            ("" | "NoClientCert", None) => ClientAuth::None,
            ("" | "NoClientCert", Some(_)) => {
                let message = "authorities for clients need a client_auth_type that asks for certificates";
                return Err(("client_ca_file", message.into()));
            }
            ("VerifyClientCertIfGiven", Some(file)) => ClientAuth::IfGiven(file),
            ("RequireAndVerifyClientCert", Some(file)) => ClientAuth::Required(file),
            ("VerifyClientCertIfGiven" | "RequireAndVerifyClientCert", None) => {
                let message =
                    "name the authorities whose certificates count; those of the system are not used";
                return Err(("client_ca_file", message.into()));
            }
            ("RequestClientCert" | "RequireAnyClientCert" | "RequireClientCert", _) => {
                let message = format!(
                    "{auth} is not supported, as a certificate that nobody verifies proves nothing: write \
                 RequireAndVerifyClientCert or VerifyClientCertIfGiven"
                );
                return Err(("client_auth_type", message));
            }
            _ => {
                let message = format!(
                    "`{auth}` is none: write NoClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert"
                );
                return Err(("client_auth_type", message));
            }
        };
        let min_version = self.min_version.unwrap_or(TlsVersion::V12);
        let max_version = self.max_version.unwrap_or(TlsVersion::V13);
        if min_version > max_version {
            return Err(("min_version", "it is above max_version: no client could connect".into()));
        }
        let cipher_suites = self.cipher_suites.unwrap_or_default();
        let only_13 =
            !cipher_suites.is_empty() && cipher_suites.iter().all(|suite| *suite == CipherSuite::Tls13);
        if only_13 && max_version == TlsVersion::V12 {
            return Err(("cipher_suites", "none of them is of TLS 1.2: no client could connect".into()));
        }
        Ok(Some(Tls {
            cert_file,
            key_file,
            client_auth,
            // Without a suite of 1.2 nobody can speak it.
            min_version: if only_13 { TlsVersion::V13 } else { min_version },
            max_version,
            cipher_suites,
            curves: self.curve_preferences.unwrap_or_default(),
            prefer_server_cipher_suites: self.prefer_server_cipher_suites.unwrap_or(true),
        }))
    }
}
