//! What a front door saw of a session: the facts that journals lack
//! (accounting 3). The proxy and the headless wrapper append these, one JSON
//! object a line, to their spool file; an orchestrator posts the same.
//!
//! Plain data: no prompt, answer, parameter or error text is in here.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::quota::Rejection;

/// Where an event was seen, in the order of whose word on endings and models
/// counts first (accounting 3, precedence).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    /// The transparent Agent Client Protocol proxy.
    Acp,
    /// `POST /api/v1/events`.
    Http,
    /// The wrapper of a headless run.
    Run,
}

impl Door {
    pub const ALL: [Self; 3] = [Self::Acp, Self::Http, Self::Run];

    /// The value of the `source` label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::Http => "http",
            Self::Run => "run",
        }
    }
}

/// One thing that a door saw, in the order it saw them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoorEvent {
    /// Unix ms, by the clock of the agent's host.
    pub at: i64,
    #[serde(flatten)]
    pub kind: EventKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "the large one, a turn's end, is what these are for")]
pub enum EventKind {
    /// A process was started behind the door. Always the first event of a spool.
    ProcessStarted {
        door: Door,
        /// The directory that holds its `.gemini`, as the process resolves it (accounting R11).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        home: Option<String>,
        /// Which runtime its command names, if any (accounting R2): `gemini` or another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        configured_runtime: Option<String>,
        /// The agent runs on another host: its journal is not here (accounting R62).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        remote: bool,
        /// Of the door itself: a spool whose process is gone gets no more events.
        pid: u32,
    },
    /// The agent's answer to `initialize`: who it says it is (accounting R1).
    Handshake {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
    /// `session/new`, `session/load` or `session/resume` succeeded, or a
    /// headless run named its session.
    SessionOpened {
        session_id: String,
        /// `models.currentModelId` of the result, or the run's model; `None`:
        /// not named (accounting R33).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The session existed before (accounting R41).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        resumed: bool,
        /// What an orchestrator says the session is for (accounting R45).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_role: Option<String>,
    },
    /// A load failed: the session's journals may be deleted soon (accounting R43).
    LoadFailed {
        session_id: String,
        /// It was tried in the UTC minute of the session's `session/new`.
        same_minute: bool,
    },
    /// The session's model was changed and the agent agreed (accounting R36).
    ModelSet {
        session_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A prompt was sent. `turn` names it among those of its door's process.
    TurnStarted { session_id: String, turn: String },
    /// A cancel was sent to the session, or for the one turn (accounting 2.4).
    CancelSent {
        session_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<String>,
    },
    /// The answer to a prompt, or the end of a headless run.
    TurnEnded {
        session_id: String,
        turn: String,
        #[serde(flatten)]
        result: TurnResult,
    },
    /// Frames or events were lost up to now: what is missing is not known.
    Lost {
        /// How many, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
    },
    /// Something odd that changes no figure and is counted: see [`Oddity`].
    Odd { oddity: Oddity },
    /// The process ended, or the connection to it did.
    ProcessEnded {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    },
    /// The session ended, says an orchestrator.
    SessionEnded { session_id: String },
}

impl EventKind {
    /// The session that it is about.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        match self {
            Self::SessionOpened { session_id, .. }
            | Self::LoadFailed { session_id, .. }
            | Self::ModelSet { session_id, .. }
            | Self::TurnStarted { session_id, .. }
            | Self::CancelSent { session_id, .. }
            | Self::TurnEnded { session_id, .. }
            | Self::SessionEnded { session_id } => Some(session_id),
            Self::ProcessStarted { .. }
            | Self::Handshake { .. }
            | Self::Lost { .. }
            | Self::Odd { .. }
            | Self::ProcessEnded { .. } => None,
        }
    }

    /// What `kind` can be.
    pub const NAMES: [&'static str; 12] = [
        "process_started",
        "handshake",
        "session_opened",
        "load_failed",
        "model_set",
        "turn_started",
        "cancel_sent",
        "turn_ended",
        "lost",
        "odd",
        "process_ended",
        "session_ended",
    ];
}

/// One event that somebody posted, with what a spool says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedEvent {
    /// Its identity: the same again changes nothing (accounting R71).
    pub event_id: String,
    /// The host that the agent runs on, as the sender calls it.
    pub host: String,
    /// The directory that holds its `.gemini` there, as the sender knows it.
    pub home: Option<String>,
    /// Which runtime the agent's command names, where it was posted and names one (accounting R2).
    pub configured_runtime: Option<String>,
    /// The agent runs on another host than the sender says (accounting R7, R62).
    pub remote: bool,
    /// The command could not be split (accounting R6).
    pub odd: Option<Oddity>,
    pub event: DoorEvent,
}

/// How far a spool file was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpoolCursor {
    /// Bytes read; past complete lines only, until the process is gone.
    pub offset: u64,
    /// Its process ended.
    pub ended: bool,
}

/// One step of one spool file: what stands between two cursors.
///
/// The ledger takes it if it still holds `from` as the file's offset (a file it
/// does not know is at 0), and a step with `from == to` only if the process has
/// not ended there yet: such a step says that it did, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolStep {
    /// The file's name in the spool directory: the identity of the process behind a door.
    pub name: Arc<str>,
    pub from: u64,
    pub to: u64,
    pub events: Vec<DoorEvent>,
    /// Lines that cannot be decoded.
    pub broken: u64,
    /// Lines of a kind or a version that this build does not know.
    pub unknown: u64,
    /// The process ended: it said so, or it is gone and everything that it
    /// left was read.
    pub ended: bool,
}

/// What somebody posted, item by item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostedBatch {
    pub events: Vec<PostedEvent>,
    /// Items of a kind that this build does not know.
    pub unknown: u64,
    /// Items that cannot be used.
    pub refused: u64,
}

/// What became of posted events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    pub accepted: u64,
    /// Known by their ids.
    pub duplicate: u64,
}

/// How a prompt was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnResult {
    /// As the agent wrote it, at most 64 characters (accounting R47).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The code of a JSON-RPC error (accounting 2.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<i64>,
    /// What an error says of quota (quota Q14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Rejection>,
    #[serde(default, skip_serializing_if = "Usage::is_absent")]
    pub usage: Usage,
    /// `_meta.quota.token_count`: (input, output) tokens (accounting R30).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<(u64, u64)>,
    /// A headless run's own statistics (accounting R63, R65).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headless: Option<Headless>,
    /// The answer may have been among frames that could not be read: the
    /// ending is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
}

/// The `usage` member of a prompt result (accounting R25–R29).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Usage {
    /// No such member.
    #[default]
    Absent,
    /// It states no figure: a counter is missing, null or no integer.
    Malformed,
    Figure {
        input: u64,
        output: u64,
        thoughts: u64,
        /// `None`: not stated; read as 0, but then a cost is an estimate.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cached_read: Option<u64>,
        /// A fact of its own; no token class (accounting 2.2).
        #[serde(default)]
        cached_write: u64,
    },
}

impl Usage {
    fn is_absent(&self) -> bool {
        *self == Self::Absent
    }
}

/// What a headless run says of itself at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headless {
    pub form: HeadlessForm,
    /// `result.status == "success"`, or a document without an error.
    pub success: bool,
    /// `None`: no statistics, or broken ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<Vec<ModelStats>>,
    /// The process's exit; `None`: read from a pipe, which has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadlessForm {
    StreamJson,
    Json,
    /// No output was read: the run ended before any, or printed text.
    Text,
}

/// What headless statistics say of one model (and, in `json`, one role), in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelStats {
    pub model: String,
    /// In `json` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Answered requests; `None`: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// All prompt tokens, cached ones included.
    pub prompt: u64,
    pub cached: u64,
    pub output: u64,
    /// Thought and tool tokens together.
    pub thoughts_and_tool: u64,
    /// The part of them that is tool; `None`: not told apart (accounting 2.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<u64>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// What doors meet that changes no figure and is counted
/// (`gemgauge_door_oddities_total`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Oddity {
    /// A frame that is no JSON object.
    MalformedFrame,
    /// A frame over the observer's cap.
    OversizedFrame,
    /// A second answer to one request (accounting R31).
    DuplicateResponse,
    /// An answer to no request (accounting R31).
    UnknownResponse,
    /// A command that no shell could split (accounting R6).
    UnsplittableCommand,
    /// Headless statistics whose parts exceed their total.
    InconsistentStats,
}

impl Oddity {
    pub const ALL: [Self; 6] = [
        Self::MalformedFrame,
        Self::OversizedFrame,
        Self::DuplicateResponse,
        Self::UnknownResponse,
        Self::UnsplittableCommand,
        Self::InconsistentStats,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MalformedFrame => "malformed_frame",
            Self::OversizedFrame => "oversized_frame",
            Self::DuplicateResponse => "duplicate_response",
            Self::UnknownResponse => "unknown_response",
            Self::UnsplittableCommand => "unsplittable_command",
            Self::InconsistentStats => "inconsistent_stats",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_object_that_reads_back() {
        let ended = DoorEvent {
            at: 7,
            kind: EventKind::TurnEnded {
                session_id: "s".into(),
                turn: "1".into(),
                result: TurnResult {
                    stop_reason: Some("end_turn".into()),
                    usage: Usage::Figure {
                        input: 5,
                        output: 2,
                        thoughts: 1,
                        cached_read: None,
                        cached_write: 0,
                    },
                    marker: Some((5, 2)),
                    ..TurnResult::default()
                },
            },
        };
        let text = serde_json::to_string(&ended).expect("serializes");
        assert_eq!(
            text,
            r#"{"at":7,"kind":"turn_ended","session_id":"s","turn":"1","stop_reason":"end_turn","usage":{"figure":{"input":5,"output":2,"thoughts":1,"cached_write":0}},"marker":[5,2]}"#
        );
        assert_eq!(serde_json::from_str::<DoorEvent>(&text).expect("reads back"), ended);
        for kind in [
            EventKind::ProcessEnded { exit: Some(Exit::Signal(9)) },
            EventKind::Odd { oddity: Oddity::DuplicateResponse },
            EventKind::Lost { count: None },
        ] {
            let event = DoorEvent { at: 1, kind };
            let text = serde_json::to_string(&event).expect("serializes");
            assert_eq!(serde_json::from_str::<DoorEvent>(&text).expect("reads back"), event);
        }
    }

    #[test]
    fn every_kind_has_its_name() {
        for name in EventKind::NAMES {
            let session = r#""session_id":"s","turn":"1","same_minute":false"#;
            let all = format!(
                r#"{{"at":1,"kind":"{name}",{session},"door":"acp","pid":1,"oddity":"malformed_frame"}}"#
            );
            let event: DoorEvent = serde_json::from_str(&all).expect(name);
            let value = serde_json::to_value(&event).expect("serializes");
            assert_eq!(value["kind"], name);
        }
        let other = serde_json::from_str::<DoorEvent>(r#"{"at":1,"kind":"other"}"#).unwrap_err();
        let said = other.to_string();
        assert!(EventKind::NAMES.iter().all(|name| said.contains(name)), "{said}");
        assert_eq!(said.matches('`').count(), 2 * (EventKind::NAMES.len() + 1), "{said}");
    }
}
