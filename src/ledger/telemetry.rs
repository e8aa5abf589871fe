//! What Gemini CLI's own OpenTelemetry log records say of model calls
//! (accounting R66). Plain data: text, addresses and resources are dropped by
//! the reader.

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
