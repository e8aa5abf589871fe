//! The records of a journal as serde reads them: borrowed, lenient about what
//! does not count, strict about what does.
//!
//! A member of an unexpected type is as good as absent, except the token
//! counters (accounting R21). A repeated member counts by its last value, as
//! in the CLI's own parser.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::ledger::tokens::Reading;

/// One record: a line of a `.jsonl`, or the document of a `.json`.
#[derive(Debug, Default)]
pub struct Record<'a> {
    pub rewind: bool,
    /// `$set` or `$patch` is there.
    pub control: bool,
    /// The record has a message's members.
    pub message: Option<Message<'a>>,
    pub session: Option<Cow<'a, str>>,
    pub started_at: Option<i64>,
    pub subagent: bool,
    /// Messages of `$set` or of a header.
    pub messages: Vec<Message<'a>>,
}

/// A message: a line of its own or an element of `messages`.
#[derive(Debug, Default)]
pub struct Message<'a> {
    pub id: Option<Cow<'a, str>>,
    pub at: Option<i64>,
    pub kind: Kind,
    pub content: Content,
    pub model: Option<Cow<'a, str>>,
    pub tokens: Tokens,
}

/// The `type` of a message, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    Gemini,
    User,
    #[default]
    Other,
}

/// What the content of a user record shows; the text itself is dropped unread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    #[default]
    Text,
    /// A part is a `functionResponse`: the answer of a tool.
    ToolAnswer,
    /// The first part is the session context that the CLI itself writes.
    SessionContext,
}

/// The `tokens` member of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tokens {
    /// Absent or null: not a request.
    #[default]
    Absent,
    Counts {
        reading: Reading,
        total: Option<u64>,
    },
    /// There, and not what R21 asks for.
    Bad,
}

/// Parses one record; `None` where the value is no object.
///
/// # Errors
/// Where the text is no JSON.
pub fn record(text: &str) -> Result<Option<Record<'_>>, serde_json::Error> {
    serde_json::from_str::<Lenient<Record<'_>>>(text).map(|value| value.0)
}

/// Unix milliseconds of an RFC 3339 time.
#[must_use]
pub fn time(text: &str) -> Option<i64> {
    written_time(text.as_bytes()).or_else(|| text.parse::<jiff::Timestamp>().ok().map(|t| t.as_millisecond()))
}

/// `2026-11-30T15:51:35.111Z`, as the CLI writes every time; other spellings,
/// and days that only some months have, are left to the calendar.
fn written_time(text: &[u8]) -> Option<i64> {
    let text: &[u8; 24] = text.try_into().ok()?;
    let number = |from: usize, len: usize| {
        let digits = &text[from..from + len];
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0, |n, digit| n * 10 + i64::from(digit - b'0')))
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if marks.iter().any(|(at, mark)| text[*at] != *mark) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second, ms) = (number(11, 2)?, number(14, 2)?, number(17, 2)?, number(20, 3)?);
    let plain = (1970..=2400).contains(&year) && (1..=12).contains(&month) && (1..=28).contains(&day);
    if !plain || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Years begin in March here, so that the leap day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}

/// A value of the wanted type, or `None` for any other value.
#[derive(Debug)]
pub struct Lenient<T>(pub Option<T>);

/// What a [`Lenient`] can be made of.
pub trait Wanted<'de>: Sized {
    fn of_borrowed(_: &'de str) -> Option<Self> {
        None
    }
    /// A text that holds escapes.
    fn of_str(_: &str) -> Option<Self> {
        None
    }
    fn of_map<A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        skip_map(map).map(|()| None)
    }
    fn of_seq<A: SeqAccess<'de>>(seq: A) -> Result<Option<Self>, A::Error> {
        skip_seq(seq).map(|()| None)
    }
    fn of_other() -> Option<Self> {
        None
    }
    fn of_u64(_: u64) -> Option<Self> {
        Self::of_other()
    }
    fn of_null() -> Option<Self> {
        None
    }
}

fn skip_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

impl<'de, T: Wanted<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: Wanted<'de>> Visitor<'de> for Any<T> {
            type Value = Option<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON value")
            }
            fn visit_borrowed_str<E: de::Error>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(T::of_borrowed(v))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
                Ok(T::of_str(v))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::of_map(map)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                T::of_seq(seq)
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Self::Value, E> {
                Ok(T::of_u64(v))
            }
            fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
                Ok(T::of_other())
            }
            fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
                Ok(T::of_other())
            }
            fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
                Ok(T::of_other())
            }
            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(T::of_null())
            }
        }
        deserializer.deserialize_any(Any(PhantomData)).map(Lenient)
    }
}

impl<'de> Wanted<'de> for Cow<'de, str> {
    fn of_borrowed(text: &'de str) -> Option<Self> {
        Some(Cow::Borrowed(text))
    }
    fn of_str(text: &str) -> Option<Self> {
        Some(Cow::Owned(text.to_owned()))
    }
}

impl<'de> Wanted<'de> for String {
    fn of_borrowed(text: &'de str) -> Option<Self> {
        Some(text.to_owned())
    }
    fn of_str(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

/// Whether a value is an object; what is in it does not matter.
struct Object;

impl<'de> Wanted<'de> for Object {
    fn of_map<A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        skip_map(map).map(|()| Some(Self))
    }
}

/// Member names, borrowed where they hold no escape.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Lenient::<Cow<'de, str>>::deserialize(deserializer).map(|k| Self(k.0.unwrap_or_default()))
    }
}

type Text<'de> = Lenient<Cow<'de, str>>;

fn time_of(text: &Text<'_>) -> Option<i64> {
    text.0.as_deref().and_then(time)
}

impl<'de> Wanted<'de> for Record<'de> {
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut record = Record::default();
        let mut message = Message::default();
        let mut header_messages = Vec::new();
        while let Some(key) = map.next_key::<Key<'de>>()? {
            match &*key.0 {
                "$rewindTo" => record.rewind = map.next_value::<Text<'de>>()?.0.is_some(),
                "$patch" => record.control |= map.next_value::<Lenient<Object>>()?.0.is_some(),
                "$set" => {
                    if let Some(set) = map.next_value::<Lenient<SetBody<'de>>>()?.0 {
                        record.control = true;
                        record.messages = set.messages;
                    }
                }
                "sessionId" => record.session = map.next_value::<Text<'de>>()?.0,
                "startTime" => record.started_at = time_of(&map.next_value()?),
                "kind" => record.subagent = map.next_value::<Text<'de>>()?.0.as_deref() == Some("subagent"),
                "messages" => {
                    header_messages = map.next_value::<Lenient<Messages<'de>>>()?.0.unwrap_or_default().0;
                }
                key => message.member(key, &mut map)?,
            }
        }
        if message.id.is_some() || message.kind == Kind::Gemini {
            record.message = Some(message);
            record.messages.clear();
        } else if record.control {
            record.session = None;
        } else if record.session.is_some() {
            record.messages = header_messages;
        }
        Ok(Some(record))
    }
}

#[derive(Default)]
struct SetBody<'a> {
    messages: Vec<Message<'a>>,
}

impl<'de> Wanted<'de> for SetBody<'de> {
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut body = Self::default();
        while let Some(key) = map.next_key::<Key<'de>>()? {
            if key.0 == "messages" {
                body.messages = map.next_value::<Lenient<Messages<'de>>>()?.0.unwrap_or_default().0;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Some(body))
    }
}

#[derive(Default)]
struct Messages<'a>(Vec<Message<'a>>);

impl<'de> Wanted<'de> for Messages<'de> {
    fn of_seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Option<Self>, A::Error> {
        let mut messages = Vec::new();
        while let Some(message) = seq.next_element::<Lenient<Message<'de>>>()? {
            // Only answers matter in a checkpoint; the rest would be held for nothing.
            messages.extend(message.0.filter(|m| m.kind == Kind::Gemini));
        }
        Ok(Some(Self(messages)))
    }
}

impl<'de> Message<'de> {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "id" => self.id = map.next_value::<Text<'de>>()?.0,
            "timestamp" => self.at = time_of(&map.next_value()?),
            "type" => {
                self.kind = match map.next_value::<Text<'de>>()?.0.as_deref() {
                    Some("gemini") => Kind::Gemini,
                    Some("user") => Kind::User,
                    _ => Kind::Other,
                };
            }
            "content" if self.kind != Kind::Gemini => {
                self.content = map.next_value::<Lenient<Content>>()?.0.unwrap_or_default();
            }
            "model" => self.model = map.next_value::<Text<'de>>()?.0,
            "tokens" => self.tokens = map.next_value::<Lenient<Tokens>>()?.0.unwrap_or_default(),
            _ => drop(map.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

impl Message<'_> {
    /// A user record that a person gave: it answers no tool and is not the
    /// session context.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        self.kind == Kind::User && self.content == Content::Text
    }
}

impl<'de> Wanted<'de> for Content {
    fn of_seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Option<Self>, A::Error> {
        let mut content = Self::Text;
        let mut first = true;
        while let Some(part) = seq.next_element::<Lenient<Part>>()? {
            match part.0 {
                Some(Part::ToolAnswer) => content = Self::ToolAnswer,
                Some(Part::SessionContext) if first => content = Self::SessionContext,
                _ => {}
            }
            first = false;
        }
        Ok(Some(content))
    }
}

enum Part {
    Text,
    ToolAnswer,
    SessionContext,
}

impl<'de> Wanted<'de> for Part {
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut part = Self::Text;
        while let Some(key) = map.next_key::<Key<'de>>()? {
            match &*key.0 {
                "functionResponse" => {
                    map.next_value::<IgnoredAny>()?;
                    part = Self::ToolAnswer;
                }
                "text" => {
                    if map.next_value::<Lenient<IsContext>>()?.0.is_some() {
                        part = Self::SessionContext;
                    }
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Some(part))
    }
}

/// A text that begins the CLI's session context.
struct IsContext;

impl<'de> Wanted<'de> for IsContext {
    fn of_borrowed(text: &'de str) -> Option<Self> {
        Self::of_str(text)
    }
    fn of_str(text: &str) -> Option<Self> {
        text.starts_with("<session_context>").then_some(Self)
    }
}

impl<'de> Wanted<'de> for Message<'de> {
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut message = Self::default();
        while let Some(key) = map.next_key::<Key<'de>>()? {
            message.member(&key.0, &mut map)?;
        }
        Ok(Some(message))
    }
}

impl<'de> Wanted<'de> for Tokens {
    fn of_borrowed(_: &'de str) -> Option<Self> {
        Some(Self::Bad)
    }
    fn of_str(_: &str) -> Option<Self> {
        Some(Self::Bad)
    }
    fn of_seq<A: SeqAccess<'de>>(seq: A) -> Result<Option<Self>, A::Error> {
        skip_seq(seq).map(|()| Some(Self::Bad))
    }
    fn of_other() -> Option<Self> {
        Some(Self::Bad)
    }
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let (mut input, mut output) = (Counter::Absent, Counter::Absent);
        let (mut cached, mut tool, mut thoughts) = (Counter::Absent, Counter::Absent, Counter::Absent);
        let mut total = Counter::Absent;
        while let Some(key) = map.next_key::<Key<'de>>()? {
            let counter = match &*key.0 {
                "input" => &mut input,
                "output" => &mut output,
                "cached" => &mut cached,
                "tool" => &mut tool,
                "thoughts" => &mut thoughts,
                "total" => &mut total,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *counter = map.next_value::<Lenient<Counter>>()?.0.unwrap_or(Counter::Bad);
        }
        let reading = || {
            Some(Reading {
                prompt: input.required()?,
                cached: cached.optional()?,
                tool: tool.optional()?,
                output: output.required()?,
                thoughts: thoughts.optional()?,
            })
        };
        Ok(Some(reading().map_or(Self::Bad, |reading| Self::Counts { reading, total: total.required() })))
    }
}

/// One token counter (accounting R21): an integer from 0 to 2^63−1.
#[derive(Clone, Copy)]
enum Counter {
    Absent,
    Count(u64),
    Bad,
}

impl Counter {
    fn required(self) -> Option<u64> {
        match self {
            Self::Count(n) => Some(n),
            Self::Absent | Self::Bad => None,
        }
    }

    fn optional(self) -> Option<u64> {
        match self {
            Self::Absent => Some(0),
            Self::Count(n) => Some(n),
            Self::Bad => None,
        }
    }
}

impl Wanted<'_> for Counter {
    fn of_u64(n: u64) -> Option<Self> {
        Some(if i64::try_from(n).is_ok() { Self::Count(n) } else { Self::Bad })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_time_is_what_the_calendar_says() {
        for year in [1970, 1999, 2000, 2026, 2027, 2028, 2100, 2400] {
            for month in 1..=12 {
                for (day, clock) in [(1, "00:00:00.000"), (28, "23:59:59.999"), (15, "10:20:30.456")] {
                    let text = format!("{year:04}-{month:02}-{day:02}T{clock}Z");
                    let calendar = text.parse::<jiff::Timestamp>().expect("a time").as_millisecond();
                    assert_eq!(written_time(text.as_bytes()), Some(calendar), "{text}");
                }
            }
        }
        for text in ["2026-11-30T24:00:00.000Z", "2026-13-01T00:00:00.000Z", "2026-11-30 15:51:35.111Z"] {
            assert_eq!(written_time(text.as_bytes()), None, "{text}");
        }
        assert_eq!(time("2026-11-30T15:51:35Z"), time("2026-11-30T15:51:35.000Z"));
        assert_eq!(time("2026-02-30T00:00:00.000Z"), None);
        assert_eq!(time("soon"), None);
    }
}
