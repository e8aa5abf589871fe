//! Names and labels of the counters table: the store moves them in the
//! transaction of the rows they count, the metrics room shows them.
//!
//! A counter is keyed by (name, label). Where a counter has no label, its
//! label is the empty string. Every value is a count, bytes for
//! [`JOURNAL_BYTES`]; none ever falls (accounting R69).

use crate::ledger::doors::Oddity;
use crate::ledger::evidence::{Anomalies, Broken, Failure, Skip};

/// Lines read from journals, by [`LINE_KINDS`].
pub const JOURNAL_LINES: &str = "journal_lines";
/// Bytes read from journals.
pub const JOURNAL_BYTES: &str = "journal_bytes";
/// Journals found rewritten and read from their start again.
pub const JOURNAL_REVISIONS: &str = "journal_revisions";
/// Journals deleted before they were read to their end.
pub const JOURNALS_LOST: &str = "journals_lost";
/// Attempts to read a journal that failed, by [`Failure`].
pub const JOURNAL_FAILED_READS: &str = "journal_failed_reads";
/// Things with a journal's name that are not opened, by [`Skip`].
pub const JOURNAL_SKIPPED: &str = "journal_skipped";
/// Oddities of records that change no figure silently, by [`Anomalies::KINDS`].
pub const JOURNAL_ANOMALIES: &str = "journal_anomalies";
/// Lines of unknown content, by [`Broken`].
pub const JOURNAL_UNDECODABLE: &str = "journal_undecodable";
/// Label sets that came after `metrics.max_tuples` and went to `other`.
pub const LABEL_OVERFLOW: &str = "label_overflow";

/// Shares of quota that were no number between 0 and 1 (quota Q10).
pub const QUOTA_CLAMPED: &str = "quota_clamped";

/// Oddities that front doors met, by [`Oddity`].
pub const DOOR_ODDITIES: &str = "door_oddities";
/// Sessions loaded in the minute they were made (accounting R43).
pub const SAME_MINUTE_LOADS: &str = "same_minute_loads";
/// Sessions whose agent is not the one its command names (accounting R8).
pub const RUNTIME_MISMATCHES: &str = "runtime_mismatches";
/// Events taken from front doors and telemetry, by source and result: [`event_label`].
pub const EVENTS: &str = "events";

/// Where events come from: the `source` label.
pub const EVENT_SOURCES: [&str; 4] = ["acp", "run", "http", "otlp"];
/// What becomes of an event: the `result` label.
pub const EVENT_RESULTS: [&str; 4] = ["accepted", "duplicate", "unknown", "invalid"];

/// Source and result of [`EVENTS`] in one label.
pub const EVENT_LABELS: [&str; 16] = [
    "acp accepted",
    "acp duplicate",
    "acp unknown",
    "acp invalid",
    "run accepted",
    "run duplicate",
    "run unknown",
    "run invalid",
    "http accepted",
    "http duplicate",
    "http unknown",
    "http invalid",
    "otlp accepted",
    "otlp duplicate",
    "otlp unknown",
    "otlp invalid",
];

/// The label of a source and a result.
///
/// # Panics
/// Where one of them is not in its list.
#[must_use]
pub fn event_label(source: &str, result: &str) -> &'static str {
    let place = |list: [&str; 4], name| list.into_iter().position(|known| known == name);
    let places = place(EVENT_SOURCES, source).zip(place(EVENT_RESULTS, result));
    let (source, result) = places.expect("sources and results of events are closed lists");
    EVENT_LABELS[source * EVENT_RESULTS.len() + result]
}

/// The stop reasons that stand in a label (accounting R47).
pub const STOP_REASONS: [&str; 7] =
    ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "other", "none"];
/// What can change of a turn that is final.
pub const REVISIONS: [&str; 3] = ["raised", "lowered", "demoted"];

// Of a home, by up to two labels; see `home_counters`.

/// Turns that became final, by project and bound.
pub const TURNS: &str = "turns";
/// The same, by stop reason.
pub const TURN_ENDINGS: &str = "turn_endings";
/// Reasons of turns that became final and not complete.
pub const TURN_REASONS: &str = "turn_reasons";
/// What changed after that: `raised` or `demoted`.
pub const TURN_REVISIONS: &str = "turn_revisions";
/// Tokens that came after that, by class.
pub const LATE_TOKENS: &str = "late_tokens";
/// Sessions that were prompted or made a request, by project.
pub const SESSIONS_STARTED: &str = "sessions_started";

/// The label of a counter that has none.
pub const NO_LABEL: &str = "";

/// A line that brought a request not read before.
pub const LINE_REQUEST: &str = "request";
/// A line that repeats a request already read.
pub const LINE_REPEAT: &str = "repeat";
/// `$set`, `$rewindTo`, `$patch` and headers.
pub const LINE_CONTROL: &str = "control";
/// Records that carry no tokens.
pub const LINE_OTHER: &str = "other";
/// Lines of unknown content.
pub const LINE_UNDECODABLE: &str = "undecodable";

/// The labels of [`JOURNAL_LINES`].
pub const LINE_KINDS: [&str; 5] = [LINE_REQUEST, LINE_REPEAT, LINE_CONTROL, LINE_OTHER, LINE_UNDECODABLE];

/// The closed list of labels of a counter; `None` for a name that is no counter.
#[must_use]
pub fn labels(name: &str) -> Option<Vec<&'static str>> {
    Some(match name {
        JOURNAL_LINES => LINE_KINDS.to_vec(),
        JOURNAL_FAILED_READS => Failure::ALL.map(Failure::as_str).to_vec(),
        JOURNAL_SKIPPED => Skip::ALL.map(Skip::as_str).to_vec(),
        JOURNAL_ANOMALIES => Anomalies::KINDS.to_vec(),
        JOURNAL_UNDECODABLE => Broken::ALL.map(Broken::as_str).to_vec(),
        DOOR_ODDITIES => Oddity::ALL.map(Oddity::as_str).to_vec(),
        EVENTS => EVENT_LABELS.to_vec(),
        JOURNAL_BYTES | JOURNAL_REVISIONS | JOURNALS_LOST | LABEL_OVERFLOW | SAME_MINUTE_LOADS
        | RUNTIME_MISMATCHES | QUOTA_CLAMPED => vec![NO_LABEL],
        _ => return None,
    })
}
