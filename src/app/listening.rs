//! Where `serve` listens and what it asks there, as `doctor` tells it.

use std::sync::Arc;

use super::serve::gate;
use crate::config::{Config, ListenAddress};
use crate::surfaces::doctor::listeners::{Listener, Reads, Writes};
use crate::surfaces::http::Gate;

/// The listeners, or why there would be none.
#[derive(Default)]
pub(super) struct Listening {
    pub(super) listeners: Vec<Listener>,
    pub(super) refused: Option<String>,
    pub(super) lock_broken: Option<String>,
}

impl Listening {
    pub(super) fn of(config: &Config) -> Self {
        let gate = match gate(config, &Arc::default()) {
            Ok(gate) => gate,
            Err(why) => return Self { lock_broken: Some(format!("{why:#}")), ..Self::default() },
        };
        match config.web.listen_addresses(gate.in_force().authenticates()) {
            Err(why) => Self { refused: Some(why.to_string()), ..Self::default() },
            Ok(addresses) => {
                let listeners = addresses.iter().map(|address| listener(address, &gate)).collect();
                Self { listeners, ..Self::default() }
            }
        }
    }
}

fn listener(address: &ListenAddress, gate: &Gate) -> Listener {
    let in_force = gate.in_force();
    Listener {
        address: address.to_string(),
        loopback: address.is_loopback(),
        tls: in_force.tls(),
        reads: match (in_force.requires_certificates(), in_force.asks_passwords()) {
            (false, false) => Reads::Anyone,
            (false, true) => Reads::Password,
            (true, false) => Reads::Certificate,
            (true, true) => Reads::CertificateAndPassword,
        },
        writes: match (address.is_loopback(), gate.has_token()) {
            (true, _) => Writes::WhoReads,
            (false, true) => Writes::Token,
            (false, false) => Writes::Nobody,
        },
    }
}
