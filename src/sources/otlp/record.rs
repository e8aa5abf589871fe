//! The attributes of one log record become a [`TelemetryRecord`], or nothing.
//!
//! Three forms bring attributes (OTLP as JSON, as protobuf, and the outfile).
//! Each hands over the few that are asked for, by [`Name`], as they stand in its
//! bytes; the rest is stepped over while decoding. A value is unpacked only
//! once the event is known to count, so that a text nobody asked for never is.

use std::borrow::Cow;
use std::collections::VecDeque;

use jiff::Timestamp;

use crate::ledger::model::Role;
use crate::ledger::quota::Rejection;
use crate::ledger::telemetry::{Call, TelemetryBatch, TelemetryKind, TelemetryRecord};
use crate::ledger::tokens::Reading;
use crate::sources::quota::rejection;

/// Ids and names beyond this many bytes are none.
const MAX_TEXT: usize = 256;

/// The twin of a response stands right behind it, unless what other processes
/// write came between: it is looked for this many records further.
const PATIENCE: usize = 64;

/// The value of an attribute, unpacked.
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    Int(i64),
    Double(f64),
    /// Stated without a value.
    Empty,
    /// Of a type that no attribute of ours has, or broken.
    Other,
}

/// The value of an attribute as it stands in the bytes.
pub(super) trait Raw<'a>: Copy {
    fn value(self) -> Value<'a>;
}

macro_rules! names {
    ($($name:ident = $text:literal,)*) => {
        /// The attributes that are asked for. All others are stepped over.
        #[derive(Clone, Copy)]
        pub(super) enum Name { $($name),* }

        impl Name {
            const COUNT: usize = [$(Self::$name),*].len();

            pub(super) fn of(text: &[u8]) -> Option<Self> {
                $(if text == $text.as_bytes() { return Some(Self::$name); })*
                None
            }
        }
    };
}

names! {
    Event = "event.name",
    Time = "event.timestamp",
    Session = "session.id",
    PromptId = "prompt_id",
    Role = "role",
    Model = "model",
    Duration = "duration_ms",
    Status = "status_code",
    Prompt = "input_token_count",
    Output = "output_token_count",
    Cached = "cached_content_token_count",
    Thoughts = "thoughts_token_count",
    Tool = "tool_token_count",
    ErrorText = "error.message",
    ResponseId = "gen_ai.response.id",
    TwinPrompt = "gen_ai.usage.input_tokens",
    TwinOutput = "gen_ai.usage.output_tokens",
}

/// What one record states. There is no `Debug` for it: its values may hold text.
pub(super) struct Fields<V> {
    values: [Option<V>; Name::COUNT],
    /// The record's own time, unix ms.
    pub(super) at: Option<i64>,
    /// When it was noticed, unix ms.
    pub(super) observed_at: Option<i64>,
}

impl<V: Copy> Default for Fields<V> {
    fn default() -> Self {
        Self { values: [None; Name::COUNT], at: None, observed_at: None }
    }
}

impl<'a, V: Raw<'a>> Fields<V> {
    /// Takes an attribute. Keys are unique; of two, the first counts.
    pub(super) fn put(&mut self, name: Name, value: V) {
        self.values[name as usize].get_or_insert(value);
    }

    fn get(&self, name: Name) -> Value<'a> {
        self.values[name as usize].map_or(Value::Empty, Raw::value)
    }

    /// What the record means (accounting R66).
    pub(super) fn read(&self) -> Read {
        let Value::Text(event) = self.get(Name::Event) else { return Read::Other };
        let kind = match &*event {
            "gemini_cli.user_prompt" => self.prompt(),
            "gemini_cli.api_request" => self.request(),
            "gemini_cli.api_response" => self.response(),
            "gemini_cli.api_error" => self.error(),
            "gemini_cli.plan.approval_mode_duration" => Ok(TelemetryKind::CleanExit),
            "gen_ai.client.inference.operation.details" => {
                return self.twin().map_or(Read::Other, Read::Twin);
            }
            _ => return Read::Other,
        };
        let record = |kind| Ok(TelemetryRecord { session: self.id(Name::Session)?, at: self.time()?, kind });
        kind.and_then(record).map_or_else(|Malformed| Read::Malformed, Read::Counted)
    }

    fn prompt(&self) -> Result<TelemetryKind, Malformed> {
        Ok(TelemetryKind::Prompt { prompt_id: self.id(Name::PromptId)? })
    }

    fn request(&self) -> Result<TelemetryKind, Malformed> {
        Ok(TelemetryKind::Request { call: self.call()? })
    }

    fn response(&self) -> Result<TelemetryKind, Malformed> {
        // Without input or output there is no figure.
        let reading = Reading {
            prompt: self.count(Name::Prompt)?.ok_or(Malformed)?,
            cached: self.count(Name::Cached)?.unwrap_or(0),
            tool: self.count(Name::Tool)?.unwrap_or(0),
            output: self.count(Name::Output)?.ok_or(Malformed)?,
            thoughts: self.count(Name::Thoughts)?.unwrap_or(0),
        };
        Ok(TelemetryKind::Response {
            call: self.call()?,
            duration_ms: self.duration()?,
            reading,
            response_id: None,
        })
    }

    fn error(&self) -> Result<TelemetryKind, Malformed> {
        let status = match self.get(Name::Status) {
            Value::Int(status) => Some(status),
            Value::Text(status) => status.parse().ok(),
            _ => None,
        };
        Ok(TelemetryKind::Error {
            call: self.call()?,
            duration_ms: self.duration()?,
            status,
            rejection: if status == Some(429) { self.rejection() } else { None },
        })
    }

    /// What a 429 says of quota. Its text is unpacked here alone, and not kept
    /// (quota Q14).
    fn rejection(&self) -> Option<Rejection> {
        let at = self.time().ok()?;
        Some(match self.get(Name::ErrorText) {
            Value::Text(text) => rejection::refused(&text, at),
            _ => rejection::refused("", at),
        })
    }

    fn twin(&self) -> Option<Twin> {
        Some(Twin {
            response_id: self.id(Name::ResponseId).ok()?,
            session: self.id(Name::Session).ok()?,
            at: self.time().ok()?,
            prompt: self.count(Name::TwinPrompt).ok()??,
            output: self.count(Name::TwinOutput).ok()??,
        })
    }

    fn call(&self) -> Result<Call, Malformed> {
        let prompt_id = self.id(Name::PromptId)?;
        let role = match self.get(Name::Role) {
            Value::Text(role) => Role::named(&role),
            // Before 0.30 no role was stated; a subagent shows in its prompt id.
            Value::Empty if is_subagent(&prompt_id) => Role::Subagent,
            Value::Empty => Role::Main,
            _ => return Err(Malformed),
        };
        let model = match self.get(Name::Model) {
            Value::Text(model) if model.len() > MAX_TEXT => return Err(Malformed),
            Value::Text(model) => Some(model.into_owned()).filter(|model| !model.is_empty()),
            Value::Empty => None,
            _ => return Err(Malformed),
        };
        Ok(Call { prompt_id, role, model })
    }

    fn id(&self, name: Name) -> Result<String, Malformed> {
        match self.get(name) {
            Value::Text(text) if !text.is_empty() && text.len() <= MAX_TEXT => Ok(text.into_owned()),
            _ => Err(Malformed),
        }
    }

    /// A whole number from 0, never rounded from anything else.
    fn count(&self, name: Name) -> Result<Option<u64>, Malformed> {
        match self.get(name) {
            Value::Int(count) => u64::try_from(count).map(Some).map_err(|_| Malformed),
            Value::Empty => Ok(None),
            _ => Err(Malformed),
        }
    }

    /// In ms, fractions cut off.
    fn duration(&self) -> Result<u64, Malformed> {
        match self.get(Name::Duration) {
            Value::Int(ms) => u64::try_from(ms).map_err(|_| Malformed),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "in range, and cut on purpose"
            )]
            Value::Double(ms) if (0.0..9e15).contains(&ms) => Ok(ms as u64),
            Value::Empty => Ok(0),
            _ => Err(Malformed),
        }
    }

    /// Unix ms. The event's own time goes before the record's, which is set a
    /// little later, when the event is handed on: both have milliseconds, but
    /// only the event's is the same in the twin.
    fn time(&self) -> Result<i64, Malformed> {
        let stated = match self.get(Name::Time) {
            Value::Text(text) => text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond),
            _ => None,
        };
        stated.or(self.at).or(self.observed_at).filter(|at| *at > 0).ok_or(Malformed)
    }
}

/// A time in nanoseconds as unix ms; 0 means that it is not known.
pub(super) fn millis(nanos: u64) -> Option<i64> {
    i64::try_from(nanos / 1_000_000).ok().filter(|ms| *ms > 0)
}

/// `<agent id>#<turn>`; prompts typed in a terminal are `<session>########<n>`.
fn is_subagent(prompt_id: &str) -> bool {
    prompt_id.split_once('#').is_some_and(|(agent, turn)| {
        !agent.is_empty() && !turn.is_empty() && turn.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Something in a record is not as it must be. Not what: it may be text.
struct Malformed;

/// What a record is to us.
pub(super) enum Read {
    Counted(TelemetryRecord),
    Twin(Twin),
    /// One of the events that count, with something in it that is not as it must be.
    Malformed,
    /// Anything else.
    Other,
}

/// `gen_ai.client.inference.operation.details` of an answer: the same request
/// again, with the id of the response. It never counts.
pub(super) struct Twin {
    session: String,
    at: i64,
    prompt: u64,
    output: u64,
    response_id: String,
}

/// Puts a batch together and gives each response the id that its twin brings.
#[derive(Default)]
pub(super) struct Batch {
    batch: TelemetryBatch,
    /// Records seen, whatever they were.
    seen: usize,
    /// Responses whose twin may still come, the oldest first: their place, and
    /// what was seen before them.
    waiting: VecDeque<(usize, usize)>,
}

impl Batch {
    pub(super) fn push(&mut self, read: Read) {
        self.seen += 1;
        if self.waiting.front().is_some_and(|(_, before)| self.seen - before > PATIENCE) {
            self.waiting.pop_front();
        }
        match read {
            Read::Counted(record) => {
                if matches!(record.kind, TelemetryKind::Response { .. }) {
                    self.waiting.push_back((self.batch.records.len(), self.seen));
                }
                self.batch.records.push(record);
            }
            Read::Twin(twin) => {
                self.batch.dropped += 1;
                self.join(twin);
            }
            Read::Malformed => self.batch.malformed += 1,
            Read::Other => self.batch.dropped += 1,
        }
    }

    /// The twin belongs to the first response of its session that has its time
    /// and its counts.
    fn join(&mut self, twin: Twin) {
        let fits = |(index, _): &(usize, usize)| {
            let record = &self.batch.records[*index];
            matches!(&record.kind, TelemetryKind::Response { reading, .. }
                if (reading.prompt, reading.output) == (twin.prompt, twin.output))
                && record.at == twin.at
                && record.session == twin.session
        };
        let Some(place) = self.waiting.iter().position(fits) else { return };
        let Some((index, _)) = self.waiting.remove(place) else { return };
        if let TelemetryKind::Response { response_id, .. } = &mut self.batch.records[index].kind {
            *response_id = Some(twin.response_id);
        }
    }

    /// What is in it so far.
    pub(super) fn so_far(&self) -> &TelemetryBatch {
        &self.batch
    }

    /// The place of the oldest response whose twin may still come.
    pub(super) fn oldest_waiting(&self) -> Option<usize> {
        self.waiting.front().map(|(index, _)| *index)
    }

    pub(super) fn finish(self) -> TelemetryBatch {
        self.batch
    }
}
