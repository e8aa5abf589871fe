//! Whether evidence still comes in (instance metrics).

use super::family::{Descriptor, Family, Kind, Label};
use crate::health::{Health, SourceHealth};

/// Where evidence comes from: journals, the spools of front doors, what is
/// posted, telemetry.
const SOURCES: [&str; 4] = ["journal", "spool", "events", "otlp"];

/// Why a body of telemetry is refused.
const REFUSALS: [&str; 5] = ["undecodable", "too_large", "unsupported_type", "incomplete", "busy"];

fn refusals() -> Vec<&'static str> {
    REFUSALS.to_vec()
}

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

pub static REFUSED: Descriptor = Descriptor {
    name: "gemgauge_otlp_refused_total",
    kind: Kind::Counter,
    help: "Bodies of telemetry that were refused since the start",
    labels: &[Label::closed("reason", refusals)],
};

pub(super) static DESCRIPTORS: [&Descriptor; 5] = [&UP, &LAST_EVENT, &LAG, &WATCH_FALLBACK, &REFUSED];

pub(super) fn collect(health: &Health) -> [Family; 5] {
    let journal = (health.journal.up.get(), health.journal.last_event.get());
    let of = |source: &SourceHealth| (source.up.get(), source.last_event.get());
    let sources = [journal, of(&health.spool), of(&health.events), of(&health.otlp)];
    let mut up = Family::new(&UP);
    let mut last_event = Family::new(&LAST_EVENT);
    for (name, (is_up, last)) in SOURCES.into_iter().zip(sources) {
        up.add(&[name], f64::from(is_up));
        if let Some(at) = last {
            last_event.add(&[name], at as f64 / 1e3);
        }
    }
    let mut refused = Family::new(&REFUSED);
    for reason in REFUSALS {
        refused.add_count(&[reason], health.otlp_refusals(reason));
    }
    let lag = Family::single(&LAG, health.journal.lag_bytes.get() as f64);
    let fallback = Family::single(&WATCH_FALLBACK, f64::from(health.journal.watch_fallback.get()));
    [up, last_event, lag, fallback, refused]
}
