//! What the routes ask for. The app implements it; tests have a fake.

use super::{ApiError, Query, Readiness};
use crate::surfaces::metrics::{Format, Receipt};

/// One answered scrape.
pub struct Scrape {
    /// The exposition in the format that was asked for.
    pub body: String,
    pub receipt: Receipt,
}

/// The answers behind the routes. Each call may block on the ledger: the
/// routes call them on blocking threads, several at a time.
///
/// Documents are whole JSON texts: the same bytes the command line prints.
pub trait Views: Send + Sync + 'static {
    /// `/api/v1/state`; [`super::state::State`] has its shape.
    ///
    /// # Errors
    /// The ledger cannot be read.
    fn state(&self) -> Result<String, ApiError>;

    /// `/api/v1/report/{kind}`. Names of parameters are known ones; their
    /// values are not looked at yet.
    ///
    /// # Errors
    /// 404 for an unknown kind, 400 for a bad value, 503 for an unreadable ledger.
    fn report(&self, kind: &str, query: &Query) -> Result<String, ApiError>;

    /// `/api/v1/sessions/{id}`; `id` as the command line takes it.
    ///
    /// # Errors
    /// 404 for an unknown session, 400 for a prefix of several, 503 for an unreadable ledger.
    fn session(&self, id: &str) -> Result<String, ApiError>;

    /// `/api/v1/quota`: the limits with their histories.
    ///
    /// # Errors
    /// The ledger cannot be read.
    fn quota(&self) -> Result<String, ApiError>;

    /// `/metrics`. Cannot fail: a broken ledger is a metric.
    fn scrape(&self, format: Format) -> Scrape;

    /// The answer of the scrape is on its way. Does not block.
    fn scraped(&self, receipt: Receipt);

    /// `/-/ready`.
    fn ready(&self) -> Readiness;
}
