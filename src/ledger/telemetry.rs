//! What Gemini CLI's own OpenTelemetry log records say of model calls
//! (accounting R66). Plain data: text, addresses and resources are dropped by
//! the reader.

use std::collections::HashMap;
use std::path::PathBuf;

use super::hash::Wide;
use super::model::Role;
use super::quota::Rejection;
use super::tokens::Reading;

/// One log record that matters to the accounting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryRecord {
    /// The attribute `session.id` (not the resource's).
    pub session: String,
    /// The record's own time, unix ms.
    pub at: i64,
    pub kind: TelemetryKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TelemetryKind {
    /// `gemini_cli.user_prompt`: a person's prompt began.
    Prompt { prompt_id: String },
    /// `gemini_cli.api_request`: a call started, each attempt anew.
    Request { call: Call },
    /// `gemini_cli.api_response`: it was answered, and billed.
    Response {
        call: Call,
        duration_ms: u64,
        reading: Reading,
        /// `gen_ai.response.id` of the twin that followed, where it came along.
        response_id: Option<String>,
    },
    /// `gemini_cli.api_error`: it failed.
    Error {
        call: Call,
        duration_ms: u64,
        /// The HTTP status, where stated.
        status: Option<i64>,
        /// What the error says of quota (quota Q14).
        rejection: Option<Rejection>,
    },
    /// `gemini_cli.plan.approval_mode_duration`: the last record of a clean exit.
    CleanExit,
}

/// Which call a record is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    pub prompt_id: String,
    pub role: Role,
    /// As the record names it.
    pub model: Option<String>,
}

/// What one export, or one step through an outfile, held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TelemetryBatch {
    /// In the order in which they stood there.
    pub records: Vec<TelemetryRecord>,
    /// Records of the events above that could not be read: no figure, and what
    /// they stood for is missing.
    pub malformed: u64,
    /// Everything else that was there, left unread: other events, spans, metrics.
    pub dropped: u64,
}

/// Which record it is, whichever way and however often it comes (accounting
/// R66, identity). The hash is kept in the ledger's file, so what it covers may
/// never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    /// Of all that the record states.
    pub hash: u128,
    /// The how manieth of its equals within one batch, from 0: records equal in
    /// everything count as often as they stand in one batch.
    pub occurrence: u32,
}

impl RecordKey {
    /// The keys of a batch, in its order. A batch that comes again, in any
    /// order, has the same keys.
    #[must_use]
    pub fn of_batch(records: &[TelemetryRecord]) -> Vec<Self> {
        let mut seen = HashMap::<u128, u32>::with_capacity(records.len());
        let mut next = |hash| {
            let count = seen.entry(hash).or_default();
            let occurrence = *count;
            *count = occurrence.saturating_add(1);
            Self { hash, occurrence }
        };
        records.iter().map(|record| next(identity(record))).collect()
    }
}

/// The hash over session, kind, prompt id, role, model, time, duration, the
/// five counts and the response id where it is known (accounting R66).
#[must_use]
pub fn identity(record: &TelemetryRecord) -> u128 {
    let mut hash = Wide::default();
    hash.text(&record.session);
    hash.number(record.at.cast_unsigned());
    match &record.kind {
        TelemetryKind::Prompt { prompt_id } => {
            hash.number(0);
            hash.text(prompt_id);
        }
        TelemetryKind::Request { call } => {
            hash.number(1);
            hash_call(&mut hash, call);
        }
        TelemetryKind::Response { call, duration_ms, reading, response_id } => {
            hash.number(2);
            hash_call(&mut hash, call);
            hash.number(*duration_ms);
            for count in [reading.prompt, reading.cached, reading.tool, reading.output, reading.thoughts] {
                hash.number(count);
            }
            hash.optional(response_id.as_deref());
        }
        // What an error says of quota follows from its text, which is not kept.
        TelemetryKind::Error { call, duration_ms, status, rejection: _ } => {
            hash.number(3);
            hash_call(&mut hash, call);
            hash.number(*duration_ms);
            hash.number(status.map_or(u64::MAX, i64::cast_unsigned));
        }
        TelemetryKind::CleanExit => hash.number(4),
    }
    hash.finish()
}

fn hash_call(hash: &mut Wide, call: &Call) {
    hash.text(&call.prompt_id);
    hash.text(call.role.as_str());
    hash.optional(call.model.as_deref());
}

/// How far an outfile was read, with the proof that it still is that file
/// (architecture, house rule 2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutfileCursor {
    /// Behind the last value that was passed.
    pub offset: u64,
    /// The hash of the file's first bytes, and of how many.
    pub head: u64,
    pub head_len: u16,
    /// The hash of the bytes before the offset, and of how many.
    pub marker: u64,
    pub marker_len: u16,
}

/// One step through an outfile of Gemini CLI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutfileStep {
    pub path: PathBuf,
    /// Offset and marker of the cursor that the step starts from: compare and set.
    pub from: (u64, u64),
    pub to: OutfileCursor,
    /// The file is not what was read before: it was read from its start.
    /// Records known from before come again, and their keys with them.
    pub restarted: bool,
    pub batch: TelemetryBatch,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::tokens::Reading;

    fn call() -> Call {
        Call { prompt_id: "p".into(), role: Role::Main, model: Some("m".into()) }
    }

    fn record(kind: TelemetryKind) -> TelemetryRecord {
        TelemetryRecord { session: "s".into(), at: 7, kind }
    }

    fn response(reading: Reading, response_id: Option<&str>) -> TelemetryRecord {
        let response_id = response_id.map(str::to_owned);
        record(TelemetryKind::Response { call: call(), duration_ms: 3, reading, response_id })
    }

    const READING: Reading = Reading { prompt: 1, cached: 2, tool: 3, output: 4, thoughts: 5 };

    #[test]
    fn r66_every_part_of_the_identity_tells_records_apart() {
        let error = |status, duration_ms| {
            record(TelemetryKind::Error { call: call(), duration_ms, status, rejection: None })
        };
        let with = |change: fn(&mut Call)| {
            let mut call = call();
            change(&mut call);
            record(TelemetryKind::Request { call })
        };
        let mut all = vec![
            record(TelemetryKind::CleanExit),
            TelemetryRecord { at: 8, ..record(TelemetryKind::CleanExit) },
            TelemetryRecord { session: "t".into(), ..record(TelemetryKind::CleanExit) },
            record(TelemetryKind::Prompt { prompt_id: "p".into() }),
            record(TelemetryKind::Prompt { prompt_id: "q".into() }),
            record(TelemetryKind::Request { call: call() }),
            with(|call| call.prompt_id = "q".into()),
            with(|call| call.role = Role::Subagent),
            with(|call| call.model = None),
            with(|call| call.model = Some(String::new())),
            // Where one text ends and the next begins is part of it.
            with(|call| (call.prompt_id, call.model) = ("pm".into(), Some(String::new()))),
            error(Some(429), 3),
            error(Some(500), 3),
            error(None, 3),
            error(None, 4),
            response(READING, None),
            response(READING, Some("r")),
            response(READING, Some("")),
        ];
        for change in [
            Reading { prompt: 9, ..READING },
            Reading { cached: 9, ..READING },
            Reading { tool: 9, ..READING },
            Reading { output: 9, ..READING },
            Reading { thoughts: 9, ..READING },
            Reading { prompt: 2, cached: 1, ..READING },
        ] {
            all.push(response(change, None));
        }
        let hashes: std::collections::BTreeSet<u128> = all.iter().map(identity).collect();
        assert_eq!(hashes.len(), all.len());
    }

    #[test]
    fn r66_equal_records_of_one_batch_count_and_a_replay_adds_nothing() {
        let (a, b) = (response(READING, None), record(TelemetryKind::CleanExit));
        let batch = [a.clone(), b.clone(), a.clone(), a.clone()];
        let keys = RecordKey::of_batch(&batch);
        assert_eq!(keys.iter().map(|key| key.occurrence).collect::<Vec<_>>(), [0, 0, 1, 2]);
        let sorted = |mut keys: Vec<RecordKey>| {
            keys.sort_unstable();
            keys
        };
        let shuffled = RecordKey::of_batch(&[a.clone(), a.clone(), b, a]);
        assert_eq!(sorted(shuffled), sorted(keys));
    }

    /// The keys are in ledgers: they may not change.
    #[test]
    fn r66_the_hash_stays_what_it_is() {
        assert_eq!(
            format!("{:032x}", identity(&response(READING, Some("r")))),
            "0624400c48dcd7797ab282e35047ad39"
        );
    }
}
