//! Tells an address, by a POST of JSON.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;

use super::Notice;
use super::stopper::Stopper;
use crate::config::Webhook;
use crate::health::Health;

/// Before the first retry; each next one waits twice as long.
const BACK_OFF: Duration = Duration::from_secs(1);

/// No retry waits longer.
const MAX_BACK_OFF: Duration = Duration::from_secs(60);

pub(super) struct Sender {
    agent: Agent,
    settings: Webhook,
    health: Arc<Health>,
}

/// Why an attempt failed. No sentence has the address in it: it may be a secret.
struct Failure {
    why: String,
    /// Whether another attempt may do better.
    may_pass: bool,
}

impl Sender {
    pub(super) fn new(settings: Webhook, health: Arc<Health>) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(settings.timeout))
            .user_agent(concat!("gemgauge/", env!("CARGO_PKG_VERSION")))
            // A notice goes where the configuration says, not where an answer does.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            // The environment is read in one place, and that is not here.
            .proxy(None)
            .build();
        Self { agent: config.into(), settings, health }
    }

    /// Whether somebody took the notice, after some attempts; `None`: stopped
    /// before that was known.
    pub(super) fn tell(&self, notice: &Notice, stopper: &Stopper) -> Option<bool> {
        let (counts, url, budget) = (&self.health.webhook, &self.settings.url, &notice.firing.budget);
        let threshold = notice.firing.threshold;
        let mut back_off = BACK_OFF;
        for left in (0..=self.settings.retries).rev() {
            let Failure { why, may_pass } = match self.attempt(&notice.payload) {
                Ok(()) => {
                    counts.ok.add(1);
                    tracing::info!(budget, %threshold, %url, "the webhook was told");
                    return Some(true);
                }
                Err(failure) => failure,
            };
            counts.failed.add(1);
            if left == 0 || !may_pass {
                counts.gave_up.add(1);
                tracing::error!(budget, %threshold, %url, why, "the webhook could not be told");
                return Some(false);
            }
            tracing::warn!(budget, %threshold, %url, why, retries = left, "the webhook did not take it");
            if stopper.wait(back_off) {
                return None;
            }
            back_off = (back_off * 2).min(MAX_BACK_OFF);
        }
        None
    }

    fn attempt(&self, payload: &str) -> Result<(), Failure> {
        let request = self.agent.post(self.settings.url.secret()).header("Content-Type", "application/json");
        let status = match request.send(payload) {
            Ok(answer) => answer.status().as_u16(),
            Err(error) => return Err(Failure { why: plain(&error), may_pass: true }),
        };
        match status {
            200..300 => Ok(()),
            // Asked to come again, or the receiver's own trouble.
            408 | 425 | 429 | 500.. => Err(Failure { why: format!("status {status}"), may_pass: true }),
            _ => Err(Failure { why: format!("status {status}"), may_pass: false }),
        }
    }
}

/// What is wrong, in words without the address.
fn plain(error: &ureq::Error) -> String {
    use ureq::Error;
    match error {
        Error::Timeout(_) => "it took too long".into(),
        Error::HostNotFound => "there is no such host".into(),
        Error::ConnectionFailed => "there is no connection".into(),
        Error::Io(error) => error.to_string(),
        Error::Rustls(error) => error.to_string(),
        Error::Tls(why) => (*why).to_owned(),
        Error::Protocol(_) => "that is no HTTP".into(),
        _ => "the request failed".into(),
    }
}
