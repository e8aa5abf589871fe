//! Whether evidence still comes in (instance metrics).

use super::family::{Descriptor, Family, Kind, Label};
use crate::health::Health;

/// The sources this version has. More doors add their names here.
const SOURCES: [&str; 1] = ["journal"];

fn sources() -> Vec<&'static str> {
    SOURCES.to_vec()
}

pub static UP: Descriptor = Descriptor {
    name: "gemgauge_source_up",
    kind: Kind::Gauge,
    help: "Whether the source works (1) or not (0)",
    labels: &[Label::closed("source", sources)],
};

pub static LAST_EVENT: Descriptor = Descriptor {
    name: "gemgauge_source_last_event_timestamp_seconds",
    kind: Kind::Gauge,
    help: "When the source last handed evidence to the ledger, unix time; absent before the first",
    labels: &[Label::closed("source", sources)],
};

pub static LAG: Descriptor = Descriptor {
    name: "gemgauge_journal_lag_bytes",
    kind: Kind::Gauge,
    help: "Bytes noticed in journals and not read yet",
    labels: &[],
};

pub static WATCH_FALLBACK: Descriptor = Descriptor {
    name: "gemgauge_watch_fallback",
    kind: Kind::Gauge,
    help: "Whether file events cannot be had, so that journals are looked at by interval only (1)",
    labels: &[],
};

pub(super) static DESCRIPTORS: [&Descriptor; 4] = [&UP, &LAST_EVENT, &LAG, &WATCH_FALLBACK];

pub(super) fn collect(health: &Health) -> [Family; 4] {
    let [journal] = SOURCES;
    let mut up = Family::new(&UP);
    up.add(&[journal], f64::from(health.journal.up.get()));
    let mut last_event = Family::new(&LAST_EVENT);
    if let Some(at) = health.journal.last_event.get() {
        last_event.add(&[journal], at as f64 / 1e3);
    }
    let lag = Family::single(&LAG, health.journal.lag_bytes.get() as f64);
    let fallback = Family::single(&WATCH_FALLBACK, f64::from(health.journal.watch_fallback.get()));
    [up, last_event, lag, fallback]
}
