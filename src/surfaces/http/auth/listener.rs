//! Connections over TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Gate;

/// Handshakes under way; further clients wait to be accepted.
const HANDSHAKES: usize = 256;

/// A client that has not said who it is by then is let go.
const PATIENCE: Duration = Duration::from_secs(10);

/// Accepts connections and speaks TLS on them, as the gate says at that moment.
/// Handshakes have tasks of their own: a client that is silent stops nobody.
pub struct TlsListener {
    tcp: TcpListener,
    gate: Arc<Gate>,
    handshakes: JoinSet<Option<Connection>>,
}

type Connection = (TlsStream<TcpStream>, SocketAddr);

impl TlsListener {
    #[must_use]
    pub fn new(tcp: TcpListener, gate: Arc<Gate>) -> Self {
        Self { tcp, gate, handshakes: JoinSet::new() }
    }

    fn shake_hands(&mut self, stream: TcpStream, peer: SocketAddr) {
        // A gate with TLS keeps it: see `Gate::reload`.
        let Some(config) = self.gate.in_force().tls.clone() else { return };
        self.handshakes.spawn(async move {
            let handshake = TlsAcceptor::from(config).accept(stream);
            match tokio::time::timeout(PATIENCE, handshake).await {
                Ok(Ok(stream)) => Some((stream, peer)),
                Ok(Err(error)) => {
                    tracing::debug!(%peer, %error, "no TLS with a client");
                    None
                }
                Err(_) => {
                    tracing::debug!(%peer, "a client was silent for too long");
                    None
                }
            }
        });
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    /// What is under way stays in the set where this is dropped half done.
    async fn accept(&mut self) -> Connection {
        loop {
            let has_room = self.handshakes.len() < HANDSHAKES;
            tokio::select! {
                (stream, peer) = Listener::accept(&mut self.tcp), if has_room => {
                    self.shake_hands(stream, peer);
                }
                Some(done) = self.handshakes.join_next() => {
                    if let Ok(Some(connection)) = done {
                        return connection;
                    }
                }
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}
