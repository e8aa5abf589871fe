//! Where clock, environment, chance and machine come in, so that a test brings
//! its own.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use super::keychain::{Keychain, SystemKeychain};
use crate::config::Env;

/// For one request, from the name of the host to the end of the answer (quota Q6).
const TIMEOUT: Duration = Duration::from_secs(10);

/// Everything the source knows besides the homes' files.
#[derive(Clone)]
pub struct Outside {
    /// The environment the agents are taken to be launched in.
    pub env: Env,
    /// Unix ms.
    pub now: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Waits; only for moments.
    pub sleep: Arc<dyn Fn(Duration) + Send + Sync>,
    /// Anything from 0 to 1.
    pub chance: Arc<dyn Fn() -> f64 + Send + Sync>,
    pub keychain: Arc<dyn Keychain>,
    /// The name of this machine, which an encrypted sign-in is tied to.
    pub host: String,
    /// For one request.
    pub timeout: Duration,
}

impl Outside {
    /// The real one; the clock is the caller's.
    #[must_use]
    pub fn of_system(env: Env, now: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self {
            now: Arc::new(now),
            sleep: Arc::new(std::thread::sleep),
            chance: Arc::new(chance),
            keychain: Arc::new(SystemKeychain::new(&env)),
            host: host(&env),
            timeout: TIMEOUT,
            env,
        }
    }
}

/// Each hasher of the standard library begins somewhere else.
#[expect(clippy::cast_precision_loss, reason = "jitter needs no precision")]
fn chance() -> f64 {
    RandomState::new().hash_one(()) as f64 / u64::MAX as f64
}

#[cfg(unix)]
fn host(_: &Env) -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host(env: &Env) -> String {
    env.var("COMPUTERNAME").unwrap_or_default().to_string_lossy().into_owned()
}
