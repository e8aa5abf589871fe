//! A web configuration's TLS as rustls takes it.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion, version};

use crate::config::web_config::tls::{CipherSuite, ClientAuth, Curve, Tls, TlsVersion};
use crate::config::{ConfigError, read_bounded};

/// A bundle of authorities is some hundred KiB.
const LIMIT: u64 = 4 << 20;

/// Reads certificate, key and authorities. `file` is the configuration, for errors.
pub(super) fn server_config(file: &Path, tls: &Tls) -> Result<ServerConfig, ConfigError> {
    let wrong = |key: &str, message: String| ConfigError::File {
        path: file.to_owned(),
        line: None,
        key: Some(format!("tls_server_config.{key}")),
        message,
    };
    let provider = Arc::new(provider(tls));
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions(tls))
        .map_err(|error| wrong("min_version", error.to_string()))?;
    let builder = match &tls.client_auth {
        ClientAuth::None => builder.with_no_client_auth(),
        ClientAuth::IfGiven(authorities) | ClientAuth::Required(authorities) => {
            let roots = roots(authorities).map_err(|why| wrong("client_ca_file", why))?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = match tls.client_auth {
                ClientAuth::IfGiven(_) => verifier.allow_unauthenticated().build(),
                _ => verifier.build(),
            };
            let verifier = verifier.map_err(|error| wrong("client_ca_file", error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let certificates = certificates(&tls.cert_file).map_err(|why| wrong("cert_file", why))?;
    let key = key(&tls.key_file).map_err(|why| wrong("key_file", why))?;
    let mut config = builder
        .with_single_cert(certificates, key)
        .map_err(|error| wrong("key_file", format!("certificate and key do not go together: {error}")))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.ignore_client_order = tls.prefer_server_cipher_suites;
    Ok(config)
}

fn versions(tls: &Tls) -> Vec<&'static SupportedProtocolVersion> {
    [(TlsVersion::V13, &version::TLS13), (TlsVersion::V12, &version::TLS12)]
        .into_iter()
        .filter(|(version, _)| (tls.min_version..=tls.max_version).contains(version))
        .map(|(_, version)| version)
        .collect()
}

/// ring, with the suites and curves that are wanted. As in Go, suites of TLS
/// 1.3 are not a choice.
fn provider(tls: &Tls) -> CryptoProvider {
    let mut provider = ring::default_provider();
    if !tls.cipher_suites.is_empty() {
        let wanted: Vec<_> = tls.cipher_suites.iter().filter_map(|suite| suite_of_12(*suite)).collect();
        provider.cipher_suites.retain(|suite| suite.tls13().is_some());
        provider.cipher_suites.extend(wanted);
    }
    if !tls.curves.is_empty() {
        provider.kx_groups = tls.curves.iter().map(|curve| group(*curve)).collect();
    }
    provider
}

fn suite_of_12(suite: CipherSuite) -> Option<SupportedCipherSuite> {
    use ring::cipher_suite as known;
    Some(match suite {
        CipherSuite::EcdsaAes128Gcm => known::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        CipherSuite::EcdsaAes256Gcm => known::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        CipherSuite::EcdsaChacha20 => known::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        CipherSuite::RsaAes128Gcm => known::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        CipherSuite::RsaAes256Gcm => known::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        CipherSuite::RsaChacha20 => known::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        CipherSuite::Tls13 => return None,
    })
}

fn group(curve: Curve) -> &'static dyn SupportedKxGroup {
    match curve {
        Curve::P256 => ring::kx_group::SECP256R1,
        Curve::P384 => ring::kx_group::SECP384R1,
        Curve::X25519 => ring::kx_group::X25519,
    }
}

fn text(file: &Path) -> Result<String, String> {
    read_bounded(file, LIMIT).map_err(|error| format!("{} could not be read: {error}", file.display()))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text(file)?.as_bytes()).collect();
    let found = found.map_err(|error| format!("{} is no PEM: {error}", file.display()))?;
    if found.is_empty() {
        return Err(format!("{} holds no certificate", file.display()));
    }
    Ok(found)
}

/// What is wrong is said without the key.
fn key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let key = PrivateKeyDer::from_pem_slice(text(file)?.as_bytes());
    key.map_err(|_| format!("{} holds no private key without a passphrase", file.display()))
}

fn roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        let added = roots.add(certificate);
        added.map_err(|error| format!("{} holds what is no authority: {error}", file.display()))?;
    }
    Ok(roots)
}
