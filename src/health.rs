//! How the service itself is doing: instruments that the sources and the
//! writer move as things happen (instance metrics). What the ledger holds is
//! not here: that is read from it when somebody asks (service metrics).
//!
//! - **In**: the sources and the store's writer, from any thread, without waiting.
//! - **Out**: single readings for the metrics, `/-/ready` and `/api/v1/state`.
//! - **Never**: hold a figure of the ledger, or block whoever reports.
//! - **Look first** at [`Health`]. Plain `std`, so that every room may share it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The instruments of one `serve`.
#[derive(Debug, Default)]
pub struct Health {
    pub journal: JournalHealth,
    pub writer: WriterHealth,
    pub webhook: WebhookHealth,
    /// The web configuration has changed and cannot be used; the one before is in force.
    pub web_config_broken: Flag,
    pub spool: SourceHealth,
    pub events: SourceHealth,
    pub otlp: SourceHealth,
    refused: Mutex<BTreeMap<&'static str, u64>>,
    homes: Mutex<BTreeMap<String, Option<String>>>,
}

/// The journal watcher's instruments.
#[derive(Debug, Default)]
pub struct JournalHealth {
    /// The watcher runs and could look at every home at its last round.
    pub up: Flag,
    /// When it last handed evidence to the ledger.
    pub last_event: Timestamp,
    /// Bytes noticed in journals and not read yet.
    pub lag_bytes: Gauge,
    /// File events cannot be had, so it looks by itself at intervals.
    pub watch_fallback: Flag,
}

/// A source without instruments of its own.
#[derive(Debug, Default)]
pub struct SourceHealth {
    /// It runs, and could look at everything at its last round.
    pub up: Flag,
    /// When it last handed evidence to the ledger.
    pub last_event: Timestamp,
}

/// The writer thread's instruments.
#[derive(Debug, Default)]
pub struct WriterHealth {
    /// Steps that wait for the writer.
    pub queue_length: Gauge,
    /// The writer cannot commit (another process holds the ledger, or the disk is full).
    pub blocked: Flag,
    /// How long commits take.
    pub commits: DurationHistogram,
    /// Rings after each commit that changed a row, and when the writer is blocked or no longer is.
    pub changed: Bell,
}

/// What became of notices to the webhook.
#[derive(Debug, Default)]
pub struct WebhookHealth {
    pub ok: Gauge,
    /// Attempts that failed.
    pub failed: Gauge,
    /// Notices that nobody took in the end.
    pub gave_up: Gauge,
}

impl Health {
    /// Names a home as served and sound. Called for each configured home
    /// before the service answers requests, under the home's label.
    pub fn home_ok(&self, home: &str) {
        self.homes().insert(home.to_owned(), None);
    }

    /// Marks a home as degraded: it works in part or not at all, everything
    /// else goes on (accounting R74). `why` is a sentence for a person.
    pub fn home_degraded(&self, home: &str, why: impl Into<String>) {
        self.homes().insert(home.to_owned(), Some(why.into()));
    }

    /// Counts a body of telemetry that was refused, by its reason.
    pub fn otlp_refused(&self, reason: &'static str) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
    }

    /// How many bodies of telemetry were refused for a reason.
    #[must_use]
    pub fn otlp_refusals(&self, reason: &str) -> u64 {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).get(reason).copied().unwrap_or(0)
    }

    /// The homes served, each with what is wrong with it, if something is.
    #[must_use]
    pub fn home_states(&self) -> BTreeMap<String, Option<String>> {
        self.homes().clone()
    }

    fn homes(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Option<String>>> {
        // Every change is one insert: a panic elsewhere leaves nothing half done.
        self.homes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number that moves both ways.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub fn add(&self, amount: u64) {
        let _ = self.0.fetch_update(Relaxed, Relaxed, |value| Some(value.saturating_add(amount)));
    }

    /// Subtracts; stops at 0.
    pub fn sub(&self, amount: u64) {
        let _ = self.0.fetch_update(Relaxed, Relaxed, |value| Some(value.saturating_sub(amount)));
    }

    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Something that is so or not; not so at first.
#[derive(Debug, Default)]
pub struct Flag(AtomicBool);

impl Flag {
    pub fn set(&self, value: bool) {
        self.0.store(value, Relaxed);
    }

    #[must_use]
    pub fn get(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// The latest time of something, unix ms; none before the first.
#[derive(Debug)]
pub struct Timestamp(AtomicI64);

impl Default for Timestamp {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }
}

impl Timestamp {
    /// Moves to `at` (unix ms) unless it is later already.
    pub fn advance(&self, at: i64) {
        self.0.fetch_max(at, Relaxed);
    }

    #[must_use]
    pub fn get(&self) -> Option<i64> {
        Some(self.0.load(Relaxed)).filter(|at| *at != i64::MIN)
    }
}

/// Tells one listener that something has changed. Whoever rings waits for nobody.
#[derive(Default)]
pub struct Bell {
    rung: AtomicU64,
    listener: OnceLock<Box<dyn Fn(u64) + Send + Sync>>,
}

impl Bell {
    /// Tells the listener how often it has rung by now.
    pub fn ring(&self) {
        let rung = self.rung.fetch_add(1, Relaxed) + 1;
        if let Some(listener) = self.listener.get() {
            listener(rung);
        }
    }

    /// Sets who is told, which must not block. The first one stays.
    pub fn connect(&self, listener: impl Fn(u64) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }
}

impl std::fmt::Debug for Bell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Bell").field(&self.rung).finish()
    }
}

/// Durations by upper bounds in seconds.
#[derive(Debug, Default)]
pub struct DurationHistogram {
    /// Not cumulative; the last one has no upper bound.
    buckets: [AtomicU64; Self::BOUNDS.len() + 1],
    sum_ns: AtomicU64,
}

/// A reading of a [`DurationHistogram`]. The cumulative counts end with all observations.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationReading {
    pub cumulative: [u64; DurationHistogram::BOUNDS.len() + 1],
    pub sum_seconds: f64,
}

impl DurationReading {
    /// How many observations there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.cumulative[DurationHistogram::BOUNDS.len()]
    }
}

impl DurationHistogram {
    /// Upper bounds in seconds. None is a whole number: text and OpenMetrics
    /// would spell it differently, and one bucket would become two series.
    pub const BOUNDS: [f64; 11] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 2.5];

    pub fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = Self::BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(Self::BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    #[must_use]
    pub fn get(&self) -> DurationReading {
        let mut sum = 0;
        let cumulative = std::array::from_fn(|i| {
            sum += self.buckets[i].load(Relaxed);
            sum
        });
        DurationReading { cumulative, sum_seconds: self.sum_ns.load(Relaxed) as f64 / 1e9 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let histogram = DurationHistogram::default();
        for ms in [0, 1, 3, 9_000] {
            histogram.observe(Duration::from_millis(ms));
        }
        let reading = histogram.get();
        assert_eq!(reading.cumulative, [1, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4]);
        assert_eq!(reading.count(), 4);
        assert!((reading.sum_seconds - 9.004).abs() < 1e-9);
    }

    #[test]
    fn bounds_rise_and_none_is_a_whole_number() {
        assert!(DurationHistogram::BOUNDS.is_sorted());
        assert!(DurationHistogram::BOUNDS.iter().all(|bound| bound.fract() != 0.0));
    }

    #[test]
    fn gauges_stop_at_zero_and_times_never_go_back() {
        let gauge = Gauge::default();
        gauge.add(2);
        gauge.sub(5);
        assert_eq!(gauge.get(), 0);
        let time = Timestamp::default();
        assert_eq!(time.get(), None);
        time.advance(20);
        time.advance(10);
        assert_eq!(time.get(), Some(20));
    }

    #[test]
    fn a_degraded_home_recovers() {
        let health = Health::default();
        health.home_ok("ana");
        health.home_degraded("ana", "no permission to read it");
        assert_eq!(health.home_states()["ana"].as_deref(), Some("no permission to read it"));
        health.home_ok("ana");
        assert_eq!(health.home_states()["ana"], None);
    }
}
