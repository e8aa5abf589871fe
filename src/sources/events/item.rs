//! One posted object, one event.

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::content;
use crate::ledger::doors::{DoorEvent, EventKind, Oddity, PostedEvent, TurnResult};
use crate::ledger::runtime;
use crate::sources::acp::result::{turn_error, turn_result};
use crate::sources::raw::{count, name, object, stated, text};

/// The version that items must have.
const VERSION: u64 = 1;

/// Longest ids and names, and longest path, in characters.
const ID_CHARS: usize = 128;
const ROLE_CHARS: usize = 64;
const PATH_CHARS: usize = 4096;

/// From 2020 on, and before the year 10,000; unix ms.
const TIMES: std::ops::Range<i64> = 1_577_836_800_000..253_402_300_800_000;

/// What an item is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Event(Box<PostedEvent>),
    /// Of a kind that this build does not know.
    Unknown,
}

/// Why an item cannot be used. `code` is for scripts and stays, `message` for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub code: &'static str,
    pub message: String,
}

impl Problem {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    fn invalid(member: &str, expected: &str) -> Self {
        Self::new("invalid_value", format!("`{member}` must be {expected}"))
    }
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(default, borrow, deserialize_with = "stated")]
    v: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    event_id: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    at: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    host: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    home: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    command: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    kind: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    session_id: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    model: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    resumed: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    session_role: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    turn: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    stop_reason: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated", rename = "stopReason")]
    stop_reason_as_sent: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    usage: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated", rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    error: Option<&'a RawValue>,
}

/// Reads one item.
///
/// # Errors
/// Why it cannot be used; nothing of it is kept.
pub fn read(json: &RawValue) -> Result<Item, Problem> {
    if !json.get().starts_with('{') {
        return Err(Problem::new("not_an_object", "an event is a JSON object"));
    }
    let named = content::named(json.get());
    let named = named.map_err(|_| Problem::new("malformed_json", "a member cannot be read"))?;
    if let Some(member) = named {
        let message = format!("`{member}` holds a text: leave it out, no text is taken");
        return Err(Problem::new("content_not_accepted", message));
    }
    let raw: Raw<'_> = object(json).ok_or_else(|| {
        Problem::new("malformed_json", "the event cannot be read: is a member there twice?")
    })?;
    match raw.v.and_then(count) {
        Some(VERSION) => {}
        _ => return Err(Problem::new("unsupported_version", format!("`v` must be {VERSION}"))),
    }
    let event_id = required(raw.event_id, "event_id", ID_CHARS)?;
    let host = required(raw.host, "host", ID_CHARS)?;
    let at = raw.at.and_then(time).ok_or_else(|| {
        Problem::invalid("at", "unix milliseconds from 2020 on, or a time such as 2026-11-30T15:49:04.042Z")
    })?;
    let kind = raw.kind.and_then(text).ok_or_else(|| Problem::invalid("kind", "a string"))?;
    let Some(kind) = raw.event(&kind, at)? else { return Ok(Item::Unknown) };
    let home = optional(raw.home, "home", PATH_CHARS)?;
    let (words, odd) = words(raw.command)?;
    Ok(Item::Event(Box::new(PostedEvent {
        event_id,
        host,
        home,
        // No command says nothing; one that names no runtime we know is another agent's.
        configured_runtime: (!words.is_empty() || odd.is_some())
            .then(|| runtime::configured(&words).unwrap_or(runtime::OTHER).to_owned()),
        remote: runtime::is_remote(&words),
        odd,
        event: DoorEvent { at, kind },
    })))
}

impl Raw<'_> {
    /// `None`: a kind that is not known.
    fn event(&self, kind: &str, at: i64) -> Result<Option<EventKind>, Problem> {
        let session_id = || required(self.session_id, "session_id", ID_CHARS);
        Ok(Some(match kind {
            "session_opened" => EventKind::SessionOpened {
                session_id: session_id()?,
                model: self.model(),
                resumed: match self.resumed.map(RawValue::get) {
                    None | Some("false" | "null") => false,
                    Some("true") => true,
                    Some(_) => return Err(Problem::invalid("resumed", "true or false")),
                },
                session_role: optional(self.session_role, "session_role", ROLE_CHARS)?,
            },
            "model_set" => EventKind::ModelSet { session_id: session_id()?, model: self.model() },
            "turn_started" => EventKind::TurnStarted { session_id: session_id()?, turn: self.turn()? },
            "turn_ended" => {
                let (session_id, turn) = (session_id()?, self.turn()?);
                EventKind::TurnEnded { session_id, turn, result: self.result(at) }
            }
            "session_ended" => EventKind::SessionEnded { session_id: session_id()? },
            _ => return Ok(None),
        }))
    }

    /// A model that is no name is not named, as over ACP (accounting R34).
    fn model(&self) -> Option<String> {
        self.model.and_then(|model| name(model, ID_CHARS))
    }

    /// A JSON-RPC id: a string, or a number.
    fn turn(&self) -> Result<String, Problem> {
        let number = |raw: &RawValue| raw.get().parse::<i64>().ok().map(|number| number.to_string());
        self.turn.and_then(|raw| name(raw, ID_CHARS).or_else(|| number(raw))).ok_or_else(|| {
            Problem::invalid("turn", &format!("a string of 1 to {ID_CHARS} characters or a number"))
        })
    }

    /// By the rules of the answer to a prompt: one reader for every door.
    fn result(&self, at: i64) -> TurnResult {
        if let Some(error) = self.error.filter(|error| error.get() != "null") {
            return turn_error(error, at);
        }
        let reason = self.stop_reason.or(self.stop_reason_as_sent);
        let members = [("stopReason", reason), ("usage", self.usage), ("_meta", self.meta)];
        let answer: std::collections::BTreeMap<_, _> =
            members.into_iter().filter_map(|(name, raw)| Some((name, raw?))).collect();
        to_raw_value(&answer).map(|answer| turn_result(&answer)).unwrap_or_default()
    }
}

fn required(raw: Option<&RawValue>, member: &str, longest: usize) -> Result<String, Problem> {
    raw.and_then(|raw| name(raw, longest))
        .ok_or_else(|| Problem::invalid(member, &format!("a string of 1 to {longest} characters")))
}

fn optional(raw: Option<&RawValue>, member: &str, longest: usize) -> Result<Option<String>, Problem> {
    let raw = raw.filter(|raw| raw.get() != "null");
    raw.map(|raw| required(Some(raw), member, longest)).transpose()
}

fn time(raw: &RawValue) -> Option<i64> {
    let at = match raw.get().parse() {
        Ok(at) => at,
        Err(_) => text(raw)?.parse::<jiff::Timestamp>().ok()?.as_millisecond(),
    };
    TIMES.contains(&at).then_some(at)
}

/// The words of a command, given as a list or as one line (accounting R6).
fn words(raw: Option<&RawValue>) -> Result<(Vec<String>, Option<Oddity>), Problem> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok((Vec::new(), None)) };
    if let Some(line) = text(raw) {
        return Ok(match runtime::split(&line) {
            Some(words) => (words, None),
            None => (Vec::new(), Some(Oddity::UnsplittableCommand)),
        });
    }
    let words = serde_json::from_str(raw.get())
        .map_err(|_| Problem::invalid("command", "a list of strings, or a string"))?;
    Ok((words, None))
}

#[cfg(test)]
mod tests;
