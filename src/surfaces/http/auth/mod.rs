//! Who may ask: the web configuration in force, and what is checked by it.
//!
//! A [`Gate`] holds the last web configuration that could be used. Whoever asks
//! for it looks first whether one of its files has changed, so that a new
//! password or a renewed certificate needs no restart. A change that cannot be
//! used, or that would open what a start would have refused, is said and passed
//! over: the door stays locked as it was.

mod guard;
mod listener;
mod origin;
mod password;
mod stamp;
mod tls;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::header::{HeaderName, HeaderValue};
use rustls::ServerConfig;
use subtle::ConstantTimeEq as _;

use crate::config::{ConfigError, WebConfig, WriteToken};
use crate::health::Health;

use password::{Passwords, Users};
use stamp::Stamp;

pub(super) use guard::{Guard, guard, headers};
pub use listener::TlsListener;

/// What of a web configuration is in force.
pub struct InForce {
    headers: Vec<(HeaderName, HeaderValue)>,
    users: Arc<Users>,
    tls: Option<Arc<ServerConfig>>,
    authenticates: bool,
    certificates: bool,
}

impl InForce {
    /// Whether TLS is spoken.
    #[must_use]
    pub fn tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether nobody reads without a password or a certificate.
    #[must_use]
    pub fn authenticates(&self) -> bool {
        self.authenticates
    }

    /// Whether passwords are asked for.
    #[must_use]
    pub fn asks_passwords(&self) -> bool {
        !self.users.is_empty()
    }

    /// Whether nobody connects without a certificate.
    #[must_use]
    pub fn requires_certificates(&self) -> bool {
        self.certificates
    }
}

/// What all listeners of a service are locked with.
pub struct Gate {
    file: Option<PathBuf>,
    token: Option<WriteToken>,
    passwords: Passwords,
    held: RwLock<Held>,
    health: Arc<Health>,
}

/// The configuration in force, and how its files looked when it was read, or
/// when they were last found to be no good.
struct Held {
    stamps: Vec<(PathBuf, Stamp)>,
    in_force: Arc<InForce>,
}

impl Gate {
    /// Without a file there is no TLS and nobody is asked for a password.
    ///
    /// # Errors
    /// The file, or one that it names, cannot be used.
    pub fn open(
        file: Option<&Path>,
        token: Option<WriteToken>,
        health: Arc<Health>,
    ) -> Result<Self, ConfigError> {
        let mut stamps = Vec::new();
        let in_force = match file {
            Some(file) => load(file, &mut stamps)?,
            None => in_force(&WebConfig::default(), None),
        };
        Ok(Self {
            file: file.map(Path::to_owned),
            token,
            passwords: Passwords::new(),
            held: RwLock::new(Held { stamps, in_force: Arc::new(in_force) }),
            health,
        })
    }

    /// What is in force now. A few looks at the metadata of files; a file is
    /// read only where one has changed.
    #[must_use]
    pub fn in_force(&self) -> Arc<InForce> {
        let Some(file) = &self.file else { return self.held().in_force.clone() };
        let held = self.held();
        if held.is_fresh() {
            return held.in_force.clone();
        }
        drop(held);
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        // Another request may have been faster.
        if !held.is_fresh() {
            self.reload(file, &mut held);
        }
        held.in_force.clone()
    }

    fn held(&self) -> std::sync::RwLockReadGuard<'_, Held> {
        // Whoever panicked while it held this left the configuration before or after.
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn reload(&self, file: &Path, held: &mut Held) {
        let mut stamps = Vec::new();
        let loaded = load(file, &mut stamps).map_err(|error| error.to_string()).and_then(|new| {
            match (&new, &*held.in_force) {
                (new, old) if new.tls() != old.tls() => {
                    Err("TLS is switched on or off by a restart only".to_owned())
                }
                (new, old) if old.authenticates && !new.authenticates => {
                    Err("authentication is switched off by a restart only".to_owned())
                }
                _ => Ok(new),
            }
        });
        match loaded {
            Ok(new) => {
                held.in_force = Arc::new(new);
                tracing::info!(file = %file.display(), "the web configuration was read again");
                self.health.web_config_broken.set(false);
            }
            Err(why) => {
                // Those of the configuration in force may come right again, too.
                let known = |path: &Path| stamps.iter().any(|(stamped, _)| stamped == path);
                let also: Vec<_> = held.stamps.iter().filter(|(path, _)| !known(path)).collect();
                let also: Vec<_> = also.into_iter().map(|(path, _)| stamped(path)).collect();
                stamps.extend(also);
                tracing::error!(
                    file = %file.display(),
                    why,
                    "the web configuration has changed and cannot be used; the one before stays in force"
                );
                self.health.web_config_broken.set(true);
            }
        }
        held.stamps = stamps;
    }

    /// Whether `presented` is the token for writes; `None` where there is none.
    fn is_token(&self, presented: &[u8]) -> Option<bool> {
        use sha2::{Digest as _, Sha256};
        // Digests, as they have one length whatever was presented.
        let (wanted, got) = (Sha256::digest(self.token.as_ref()?.secret()), Sha256::digest(presented));
        Some(bool::from(wanted.as_slice().ct_eq(got.as_slice())))
    }

    /// Whether anybody can write where others reach the listener.
    #[must_use]
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }
}

impl Held {
    fn is_fresh(&self) -> bool {
        self.stamps.iter().all(|(path, stamp)| Stamp::of(path) == *stamp)
    }
}

fn stamped(path: &Path) -> (PathBuf, Stamp) {
    (path.to_owned(), Stamp::of(path))
}

/// Reads the file and those that it names. Each is stamped before it is read:
/// what changes in between is read again.
fn load(file: &Path, stamps: &mut Vec<(PathBuf, Stamp)>) -> Result<InForce, ConfigError> {
    stamps.push(stamped(file));
    let config = WebConfig::read(file)?;
    stamps.extend(config.files().map(stamped));
    let tls = config.tls.as_ref().map(|tls| tls::server_config(file, tls)).transpose()?;
    Ok(in_force(&config, tls.map(Arc::new)))
}

fn in_force(config: &WebConfig, tls: Option<Arc<ServerConfig>>) -> InForce {
    let header = |(name, value): &(&'static str, String)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value).ok()?))
    };
    InForce {
        headers: config.headers.iter().filter_map(header).collect(),
        users: Arc::new(Users::new(config.users.clone())),
        tls,
        authenticates: config.authenticates(),
        certificates: config.requires_certificates(),
    }
}
