//! What Prometheus scrapes.
//!
//! - **In**: rows of one read snapshot ([`LedgerRows`], service metrics), the
//!   service's own instruments ([`crate::health::Health`], instance metrics), `/proc`.
//! - **Out**: metric families, built anew at each scrape, as text or OpenMetrics.
//! - **Never**: keep a value of the ledger between scrapes, let a counter fall,
//!   or fail a scrape because a part of it failed.
//! - **Look first** at [`tokens`] for a subject (its descriptors and its
//!   collection stand together), then [`Exporter::scrape`], which puts them together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::health::Health;
use crate::store::StoreError;
use crate::store::read::{CounterRow, HomeRow, QuotaRows, SessionSpend, Snapshot, TupleRow};

pub mod budgets;
pub mod calendar;
pub mod docs;
pub mod doors;
pub mod exposition;
pub mod family;
pub mod journals;
pub mod ledger;
pub mod money;
pub mod process;
pub mod quota;
pub mod service;
pub mod sessions;
pub mod sources;
pub mod tokens;
pub mod turns;
pub mod zero_first;

#[cfg(test)]
mod tests;

pub use calendar::{Calendar, CalendarRow};
pub use exposition::Format;
pub use money::{HomeInfo, MoneyInfo};
pub use quota::QuotaScrape;
pub use service::{BuildInfo, Collector};
pub use zero_first::Receipt;

use super::budget::Board;
use super::quota::Quota;
use family::{Descriptor, Family};
use service::Fared;
use zero_first::{Set, ZeroFirst};

/// Every metric there is, by subject, in the order of the documentation.
fn subjects() -> [(&'static str, &'static [&'static Descriptor]); 13] {
    [
        ("Spend", &tokens::DESCRIPTORS),
        ("Turns", &turns::DESCRIPTORS),
        ("Money", &money::DESCRIPTORS),
        ("Calendar", &calendar::DESCRIPTORS),
        ("Budgets", &budgets::DESCRIPTORS),
        ("Quota", &quota::DESCRIPTORS),
        ("Sessions", &sessions::DESCRIPTORS),
        ("Journals", &journals::DESCRIPTORS),
        ("Sources", &sources::DESCRIPTORS),
        ("Doors", &doors::DESCRIPTORS),
        ("Ledger", &ledger::DESCRIPTORS),
        ("Service", &service::DESCRIPTORS),
        ("Process", &process::DESCRIPTORS),
    ]
}

/// What a scrape needs of the ledger: everything from one snapshot, so that
/// all families agree with each other.
#[derive(Clone, Debug, Default)]
pub struct LedgerRows {
    pub homes: Vec<HomeRow>,
    pub tuples: Vec<TupleRow>,
    /// (name, label) to value, names of [`crate::store::counter_names`].
    pub counters: BTreeMap<(String, String), u64>,
    /// Counters of homes by up to two labels.
    pub home_counters: Vec<CounterRow>,
    /// Journals by state.
    pub journal_states: BTreeMap<String, u64>,
    /// Live sessions by home label.
    pub live_sessions: BTreeMap<String, u64>,
    /// What live sessions spent, at most `metrics.max_sessions` of them.
    pub session_spend: Vec<SessionSpend>,
    /// Today's and this month's sums of homes whose first import is done.
    pub calendar: Vec<CalendarRow>,
    pub quota: QuotaScrape,
}

impl LedgerRows {
    /// Reads them at `now` (unix ms).
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn read(
        snapshot: &Snapshot<'_>,
        now: i64,
        calendar: &Calendar,
        max_sessions: usize,
    ) -> Result<Self, StoreError> {
        let homes = snapshot.homes()?;
        let mut live_sessions: BTreeMap<String, u64> = BTreeMap::new();
        let live = snapshot.live_sessions(sessions::window(now))?;
        for home in live.values() {
            if let Some(home) = homes.get(home) {
                *live_sessions.entry(home.name.clone()).or_default() += 1;
            }
        }
        let quota_rows = snapshot.quota(now)?;
        let quota = Quota::of(&quota_rows, &homes, &live.values().copied().collect(), now);
        let tuples = snapshot.tuples()?;
        let mut calendar = calendar.rows(snapshot, &tuples, now)?;
        calendar.retain(|row| homes.values().any(|home| home.imported && home.name == row.home));
        Ok(Self {
            homes: homes.into_values().collect(),
            tuples,
            calendar,
            counters: snapshot.counters()?,
            home_counters: snapshot.home_counters()?,
            session_spend: snapshot.session_spend(live.keys().copied(), max_sessions)?,
            journal_states: snapshot.journal_states()?,
            live_sessions,
            quota: QuotaScrape { rows: quota_rows, quota },
        })
    }

    /// Labels of the homes whose first import is done.
    fn imported(&self) -> BTreeSet<&str> {
        self.homes.iter().filter(|home| home.imported).map(|home| home.name.as_str()).collect()
    }
}

/// What one scrape came to.
pub struct Gathered {
    /// Sorted by name, each with at least one sample.
    pub families: Vec<Family>,
    /// Hand it to [`Exporter::confirm`] once the answer is on its way.
    pub receipt: Receipt,
    /// What failed, for the log; the scrape itself succeeded.
    pub failures: Vec<(Collector, String)>,
}

/// Answers scrapes of one `serve`. Share it; scrapes may run at the same time.
pub struct Exporter {
    health: Arc<Health>,
    build: BuildInfo,
    db: PathBuf,
    money: MoneyInfo,
    budgets: Arc<Board>,
    zero_first: Mutex<ZeroFirst>,
}

impl Exporter {
    /// `db` is the ledger's file; `existing` are its label sets when the
    /// process begins to serve, read before the sources start.
    #[must_use]
    pub fn new(
        health: Arc<Health>,
        build: BuildInfo,
        db: PathBuf,
        money: MoneyInfo,
        existing: &[TupleRow],
    ) -> Self {
        let zero_first = Mutex::new(ZeroFirst::new(existing));
        Self { health, build, db, money, budgets: Arc::default(), zero_first }
    }

    /// Takes the counters of homes that the ledger holds when the process
    /// begins to serve: they show their values at once.
    #[must_use]
    pub fn with_counters(self, existing: &[CounterRow]) -> Self {
        self.zero_first().release(existing.iter().map(|row| (Set::HomeCounter, row.id)));
        self
    }

    /// Shows the budgets of this board, too.
    #[must_use]
    pub fn with_budgets(self, budgets: Arc<Board>) -> Self {
        Self { budgets, ..self }
    }

    /// What of quota the ledger holds when the process begins to serve: it was
    /// exposed before, and shows its value at once.
    #[must_use]
    pub fn with_quota(self, existing: &QuotaRows) -> Self {
        let buckets = existing.buckets.iter().map(|row| (Set::Bucket, row.id));
        let models = existing.models.iter().map(|row| (Set::QuotaModel, row.id));
        self.zero_first().release(buckets.chain(models));
        self
    }

    /// Builds all families at `now` (unix ms). `monotonic` is the clock that
    /// durations are taken from: the time since any fixed moment. `read` reads
    /// the ledger; it blocks, so the whole call belongs on a blocking thread.
    pub fn scrape(
        &self,
        now: i64,
        monotonic: impl Fn() -> Duration,
        read: impl FnOnce() -> Result<LedgerRows, StoreError>,
    ) -> Gathered {
        let timed = Timed { monotonic };
        self.gather(
            now,
            Readings {
                ledger: timed.run(|| read().map_err(|error| error.to_string())),
                files: timed.run(|| ledger::file_sizes(&self.db).map_err(|error| error.to_string())),
                process: timed.run(|| process::read().map_err(|error| error.to_string())),
            },
        )
    }

    /// Notes that the receipt's scrape got its answer: the label sets it saw
    /// at 0 show their values from now on. Not for `HEAD`, nor for an answer
    /// whose client has gone.
    pub fn confirm(&self, receipt: Receipt) {
        self.zero_first().confirm(receipt);
    }

    fn gather(&self, now: i64, readings: Readings) -> Gathered {
        let Readings { ledger, files, process } = readings;
        let mut receipt = Receipt::default();
        let mut families: Vec<Family> = Vec::new();
        if let Ok(rows) = &ledger.result {
            let imported = rows.imported();
            let shown = tokens::shown(&rows.tuples, &imported, &mut self.zero_first(), now, &mut receipt);
            families.extend(tokens::collect(&shown));
            families.extend(turns::settled(&shown));
            families.extend(money::collect(&shown));
            let (counters, mut zero_first) = (&rows.home_counters, self.zero_first());
            families.extend(turns::collect(counters, &imported, &mut zero_first, now, &mut receipt));
            drop(zero_first);
            families.extend(doors::collect(&rows.counters));
            families.extend(sessions::spend(&rows.session_spend, &imported));
            families.extend(calendar::collect(&rows.calendar));
            families.push(sessions::collect(&rows.live_sessions, &imported));
            families.extend(budgets::collect(&self.budgets.read(now)));
            families.extend(journals::collect(&rows.counters, &rows.journal_states));
            let mut zero_first = self.zero_first();
            families.extend(quota::collect(
                &rows.quota,
                &rows.homes,
                &rows.counters,
                &mut zero_first,
                now,
                &mut receipt,
            ));
        }
        families.extend(money::info(&self.money));
        families.push(budgets::deliveries(&self.health.webhook));
        families.extend(sources::collect(&self.health));
        families.extend(ledger::collect(&self.health.writer, files.result.as_ref().ok().copied()));
        families.extend(process::collect(process.result.as_ref().ok().and_then(Option::as_ref)));
        let fared = [
            ledger.fared(Collector::Ledger),
            files.fared(Collector::LedgerFiles),
            process.fared(Collector::Process),
        ];
        families.extend(service::collect(fared, &self.build));

        families.retain(|family| !family.lines().is_empty());
        families.sort_by_key(|family| family.descriptor().name);
        let failures = [
            ledger.result.err().map(|why| (Collector::Ledger, why)),
            files.result.err().map(|why| (Collector::LedgerFiles, why)),
            process.result.err().map(|why| (Collector::Process, why)),
        ];
        Gathered { families, receipt, failures: failures.into_iter().flatten().collect() }
    }

    fn zero_first(&self) -> std::sync::MutexGuard<'_, ZeroFirst> {
        // Each change is one insertion: a panic elsewhere leaves nothing half done.
        self.zero_first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the collectors that can fail brought.
struct Readings {
    ledger: Reading<LedgerRows>,
    files: Reading<ledger::FileSizes>,
    process: Reading<Option<process::Sample>>,
}

struct Reading<T> {
    result: Result<T, String>,
    took: Duration,
}

impl<T> Reading<T> {
    fn fared(&self, collector: Collector) -> Fared {
        Fared { collector, success: self.result.is_ok(), took: self.took }
    }
}

struct Timed<C> {
    monotonic: C,
}

impl<C: Fn() -> Duration> Timed<C> {
    fn run<T>(&self, read: impl FnOnce() -> Result<T, String>) -> Reading<T> {
        let begin = (self.monotonic)();
        let result = read();
        Reading { result, took: (self.monotonic)().saturating_sub(begin) }
    }
}
