//! Certificates made on the spot, and a client that speaks TLS.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};

use super::service::Answer;

/// Somebody whose word a test takes.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
pub(crate) struct Papers {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn issue(&self, purpose: ExtendedKeyUsagePurpose) -> Papers {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost".into(), "127.0.0.1".into()]).unwrap();
        params.extended_key_usages = vec![purpose];
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Papers { certificate, key: key.serialize_pem() }
    }

    /// For a server on this machine.
    pub(crate) fn server(&self) -> Papers {
        self.issue(ExtendedKeyUsagePurpose::ServerAuth)
    }

    pub(crate) fn client(&self) -> Papers {
        self.issue(ExtendedKeyUsagePurpose::ClientAuth)
    }
}

impl Papers {
    /// Writes `c.pem` and `k.pem`.
    pub(crate) fn write(&self, dir: &Path) {
        std::fs::write(dir.join("c.pem"), &self.certificate).unwrap();
        std::fs::write(dir.join("k.pem"), &self.key).unwrap();
    }
}

/// A client that trusts one authority.
pub(crate) struct Client(Arc<ClientConfig>);

impl Client {
    pub(crate) fn trusting(authority: &Authority) -> Self {
        Self::with(authority, None, &[&rustls::version::TLS13, &rustls::version::TLS12])
    }

    pub(crate) fn with(
        authority: &Authority,
        papers: Option<&Papers>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
        let builder = builder.with_root_certificates(roots);
        let config = match papers {
            None => builder.with_no_client_auth(),
            Some(papers) => {
                let certificate = CertificateDer::from_pem_slice(papers.certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(papers.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        Self(Arc::new(config))
    }

    /// A GET over a connection of its own; the connection may be refused.
    pub(crate) fn get(&self, to: SocketAddr, path: &str, headers: &str) -> std::io::Result<Answer> {
        let name = ServerName::try_from(to.ip().to_string()).unwrap();
        let connection = ClientConnection::new(self.0.clone(), name).map_err(std::io::Error::other)?;
        let tcp = TcpStream::connect(to)?;
        tcp.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut stream = StreamOwned::new(connection, tcp);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n{headers}\r\n")?;
        Answer::read(&mut stream)
    }
}
