//! Names of the service's own counters, as rows of `counters` hold them and
//! as the metrics show them behind their prefix.

/// Label: `request`, `repeat`, `control`, `other`, `undecodable`.
pub const JOURNAL_LINES: &str = "journal_lines";
pub const JOURNAL_BYTES: &str = "journal_bytes";
pub const JOURNAL_REVISIONS: &str = "journal_revisions";
pub const JOURNALS_LOST: &str = "journals_lost";
/// Label: a `Failure`.
pub const JOURNAL_FAILED_READS: &str = "journal_failed_reads";
/// Label: a `Skip`.
pub const JOURNAL_SKIPPED: &str = "journal_skipped";
/// Label: one of `Anomalies::KINDS`.
pub const JOURNAL_ANOMALIES: &str = "journal_anomalies";
/// Label: a `Broken`.
pub const JOURNAL_UNDECODABLE: &str = "journal_undecodable";
pub const LABEL_OVERFLOW: &str = "label_overflow";
