//! One line of a journal, one meaning (accounting R16–R21).
//!
//! Most bytes of a journal cannot carry tokens. A line is dismissed by its
//! head where the head proves that: a user record, a `$set` of the time. A
//! line that repeats the request before it byte for byte up to its tool calls
//! is dismissed by that comparison. Whatever is left, or looks unlike what
//! the writer writes, goes through the full parser in [`super::json`], which
//! alone decides. A substring proves nothing: tool arguments hold
//! `"tokens":{` as real JSON.

use std::str;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::fast::{self, Head};
use super::json::{self, Kind, Message, Tokens};
use crate::ledger::evidence::Broken;
use crate::ledger::tokens::Reading;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Nothing but white space: not counted.
    Blank,
    /// `$set` without messages, `$rewindTo`, `$patch`: takes nothing back (accounting R18).
    Control,
    /// A record that is no request.
    Other(Other),
    Header(Header),
    /// A request on a line of its own.
    Answer(Answer),
    /// The request before it again; its counts were compared, not parsed.
    Repeat,
    /// `$set` with messages.
    Checkpoint(Vec<Answer>, Vec<BadAnswer>),
    /// A line of unknown content (accounting R19).
    Broken(Broken),
}

/// A record that is no request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Other {
    pub at: Option<i64>,
    /// A user record that answers no tool call and is not the session context.
    pub prompt: bool,
    /// The model of a gemini record without tokens.
    pub model: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    pub session: String,
    pub started_at: Option<i64>,
    pub subagent: bool,
    /// Requests in the header's own `messages`.
    pub answers: Vec<Answer>,
    pub bad: Vec<BadAnswer>,
}

/// A gemini record with tokens.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub id: Box<str>,
    pub at: Option<i64>,
    pub model: Option<String>,
    pub reading: Reading,
    /// The vendor's total is present and is not the sum of the parts.
    pub total_mismatch: bool,
}

/// A gemini record whose tokens break R21.
#[derive(Debug, PartialEq, Eq)]
pub struct BadAnswer {
    pub id: Box<str>,
}

/// The line of the last request read, to recognise its repeat.
#[derive(Debug, Default)]
pub struct Previous(Vec<u8>);

impl Previous {
    /// Lines longer than this are not kept: their repeat is parsed again.
    const MAX: usize = 64 * 1024;

    pub fn forget(&mut self) {
        self.0.clear();
    }

    fn keep(&mut self, line: &[u8]) {
        self.0.clear();
        if let Some(open) = line.strip_suffix(b"}")
            && line.len() <= Self::MAX
        {
            self.0.extend_from_slice(open);
        }
    }

    /// Whether `line` is the kept record again, as it was or with members
    /// after it (the CLI appends `toolCalls`), and holds no second record.
    fn repeated_by(&self, line: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        match line.strip_prefix(self.0.as_slice()) {
            Some(b"}") => true,
            Some(more) => {
                more.starts_with(b",\"toolCalls\":[") && more.ends_with(b"}]}") && !shows_second_message(more)
            }
            None => false,
        }
    }
}

static MESSAGE_HEAD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"Z\",\"type\":\""));
static TOOL_ANSWER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"functionResponse\":"));

/// Whether a record that ends in `]}` may hold a second one: after a tear the
/// next record is glued on, and whatever is not a message ends otherwise. A
/// text cannot hold a message's head: its quotes are escaped.
fn shows_second_message(rest: &[u8]) -> bool {
    MESSAGE_HEAD.find(rest).is_some()
}

/// Reads one line, without its newline. `previous` is the request before it in
/// the same section.
#[must_use]
pub fn read(line: &[u8], previous: &mut Previous) -> Line {
    let line = trim(line);
    if line.is_empty() {
        return Line::Blank;
    }
    if is_time_update(line) {
        return Line::Control;
    }
    if let Some(other) = by_head(line) {
        return Line::Other(other);
    }
    if previous.repeated_by(line) {
        return Line::Repeat;
    }
    let read = fast::answer(line).map_or_else(|| parse_trimmed(line), Line::Answer);
    if matches!(read, Line::Answer(_)) {
        previous.keep(line);
    }
    read
}

/// Reads one line by the full parser alone: what [`read`] must agree with.
#[must_use]
pub fn parse(line: &[u8]) -> Line {
    parse_trimmed(trim(line))
}

fn parse_trimmed(line: &[u8]) -> Line {
    if line.is_empty() {
        return Line::Blank;
    }
    let Ok(text) = str::from_utf8(line) else {
        return Line::Broken(Broken::NotUtf8);
    };
    match json::record(text) {
        Ok(Some(record)) => meaning(record),
        Ok(None) => Line::Broken(Broken::NotObject),
        Err(_) => Line::Broken(Broken::NotJson),
    }
}

/// The id of a whole record whose tokens are broken, where it has one.
#[must_use]
pub fn bad_id(line: &[u8]) -> Option<Box<str>> {
    let record = json::record(str::from_utf8(trim(line)).ok()?).ok()??;
    Some(record.message?.id?.into())
}

fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    line.trim_ascii()
}

/// `{"$set":{"lastUpdated":"…"}}`, which stands after every record.
fn is_time_update(line: &[u8]) -> bool {
    line.len() < 64
        && line
            .strip_prefix(b"{\"$set\":{\"lastUpdated\":\"")
            .and_then(|rest| rest.strip_suffix(b"\"}}"))
            .is_some_and(|time| time.iter().all(|b| b.is_ascii_alphanumeric() || b"-:.".contains(b)))
}

/// A record that its head shows to be no answer, the way the writer writes it:
/// `{"id":"…","timestamp":"…","type":"user","content":[{…}]}`. Anything that
/// looks odd is left to the parser.
fn by_head(line: &[u8]) -> Option<Other> {
    let Head { at, kind, rest, .. } = fast::head(line)?;
    if !matches!(kind, b"user" | b"info" | b"warning" | b"error") {
        return None;
    }
    let content = rest.strip_prefix(b",\"content\":[{")?;
    if !content.ends_with(b"}]}") || shows_second_message(content) {
        return None;
    }
    let prompt = kind == b"user"
        && !content.starts_with(b"\"text\":\"<session_context>")
        && TOOL_ANSWER.find(content).is_none();
    Some(Other { at: Some(at), prompt, model: None })
}

/// Classifies a whole record in the CLI's own order: `$rewindTo`, then an id,
/// then `$set`, then a session id.
fn meaning(record: json::Record<'_>) -> Line {
    if record.rewind {
        return Line::Control;
    }
    if let Some(message) = record.message {
        return match answer(message) {
            Found::Answer(answer) => Line::Answer(answer),
            Found::Bad(_) => Line::Broken(Broken::BadTokens),
            Found::Other(other) => Line::Other(other),
        };
    }
    let (answers, bad, _) = answers(record.messages);
    match record.session {
        Some(session) => Line::Header(Header {
            session: session.into_owned(),
            started_at: record.started_at,
            subagent: record.subagent,
            answers,
            bad,
        }),
        None if answers.is_empty() && bad.is_empty() => {
            if record.control {
                Line::Control
            } else {
                Line::Other(Other::default())
            }
        }
        None => Line::Checkpoint(answers, bad),
    }
}

/// What a message record is.
pub enum Found {
    Answer(Answer),
    Bad(BadAnswer),
    Other(Other),
}

/// Decides whether a message is a request (accounting R16, R21).
pub fn answer(message: Message<'_>) -> Found {
    if message.kind != Kind::Gemini {
        return Found::Other(Other { at: message.at, prompt: message.is_prompt(), model: None });
    }
    let model = message.model.map(|m| m.into_owned()).filter(|m| !m.is_empty());
    match (message.tokens, message.id) {
        (Tokens::Absent, _) | (_, None) => Found::Other(Other { at: message.at, prompt: false, model }),
        (Tokens::Counts { reading, total }, Some(id)) => {
            let sum = reading
                .prompt
                .saturating_add(reading.output)
                .saturating_add(reading.thoughts)
                .saturating_add(reading.tool);
            Found::Answer(Answer {
                id: id.into(),
                at: message.at,
                model,
                reading,
                total_mismatch: total.is_some_and(|total| total != sum),
            })
        }
        (Tokens::Bad, Some(id)) => Found::Bad(BadAnswer { id: id.into() }),
    }
}

/// The requests among messages, their broken ones, and the prompts' times.
pub fn answers(messages: Vec<Message<'_>>) -> (Vec<Answer>, Vec<BadAnswer>, Vec<Other>) {
    let (mut answers, mut bad, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for message in messages {
        match answer(message) {
            Found::Answer(answer) => answers.push(answer),
            Found::Bad(broken) => bad.push(broken),
            Found::Other(other) => others.push(other),
        }
    }
    (answers, bad, others)
}
