//! One frame as JSON-RPC: its shape and its identity, nothing of its content.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::json::{object, stated, text};

/// An id of a request. Numbers that are equal are one id: `1`, `1.0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Id {
    Number(i64),
    Text(String),
    /// Null, a fraction, anything: as it is written.
    Other(String),
}

impl Id {
    pub(super) fn of(raw: &RawValue) -> Self {
        if let Some(text) = text(raw) {
            return Self::Text(text);
        }
        let number = raw.get().parse().ok().or_else(|| {
            let number: f64 = raw.get().parse().ok()?;
            #[expect(clippy::cast_possible_truncation, reason = "whole, and small enough to be exact")]
            (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
        });
        number.map_or_else(|| Self::Other(raw.get().to_owned()), Self::Number)
    }

    /// As it is written, at most so many characters.
    pub(super) fn shortened(&self, chars: usize) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) | Self::Other(text) => text.chars().take(chars).collect(),
        }
    }

    /// Its size in memory is no one's gift.
    pub(super) fn is_huge(&self) -> bool {
        matches!(self, Self::Text(text) | Self::Other(text) if text.len() > 1024)
    }
}

#[derive(Debug)]
pub(super) enum Message<'m> {
    Request { id: Id, method: String, params: Option<&'m RawValue> },
    Notification { method: String, params: Option<&'m RawValue> },
    Response { id: Id, answer: Answer<'m> },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Answer<'m> {
    Result(&'m RawValue),
    Error(&'m RawValue),
    /// Neither is there.
    Nothing,
}

/// A frame is no message, or one of its batch is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Hands over the messages of a frame: one, or those of a batch in their order.
pub(super) fn messages<'m>(frame: &'m [u8], mut each: impl FnMut(Message<'m>)) -> Result<(), Malformed> {
    let frame = std::str::from_utf8(frame).map_err(|_| Malformed)?.trim();
    if frame.starts_with('[') {
        let mut reader = serde_json::Deserializer::from_str(frame);
        let read = Batch(each).deserialize(&mut reader).map_err(|_| Malformed)?;
        return reader.end().map_err(|_| Malformed).and(read);
    }
    let message: &RawValue = serde_json::from_str(frame).map_err(|_| Malformed)?;
    each(one(message)?);
    Ok(())
}

fn one(raw: &RawValue) -> Result<Message<'_>, Malformed> {
    #[derive(Deserialize)]
    struct Shape<'m> {
        #[serde(default, borrow, deserialize_with = "stated")]
        id: Option<&'m RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        method: Option<&'m RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        params: Option<&'m RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        result: Option<&'m RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        error: Option<&'m RawValue>,
    }
    let shape: Shape<'_> = object(raw).ok_or(Malformed)?;
    let id = shape.id.map(Id::of);
    let Some(method) = shape.method else {
        // Some write a null beside the other of the two.
        let error = shape.error.filter(|error| error.get() != "null");
        let answer = match (shape.result, error) {
            (_, Some(error)) => Answer::Error(error),
            (Some(result), None) => Answer::Result(result),
            (None, None) => Answer::Nothing,
        };
        return id.map(|id| Message::Response { id, answer }).ok_or(Malformed);
    };
    let method = text(method).ok_or(Malformed)?;
    Ok(match id {
        Some(id) => Message::Request { id, method, params: shape.params },
        None => Message::Notification { method, params: shape.params },
    })
}

/// A batch is taken element by element: it is never held as a whole.
struct Batch<F>(F);

impl<'m, F: FnMut(Message<'m>)> DeserializeSeed<'m> for Batch<F> {
    type Value = Result<(), Malformed>;

    fn deserialize<D: Deserializer<'m>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'m, F: FnMut(Message<'m>)> Visitor<'m> for Batch<F> {
    type Value = Result<(), Malformed>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a batch of messages")
    }

    fn visit_seq<A: SeqAccess<'m>>(mut self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut read = Ok(());
        while let Some(element) = elements.next_element::<&RawValue>()? {
            match one(element) {
                Ok(message) => (self.0)(message),
                Err(malformed) => read = Err(malformed),
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(frame: &str) -> (Vec<String>, Result<(), Malformed>) {
        let mut seen = Vec::new();
        let end = messages(frame.as_bytes(), |message| {
            seen.push(match message {
                Message::Request { id, method, .. } => format!("{method} {}", id.shortened(9)),
                Message::Notification { method, .. } => method,
                Message::Response { id, answer } => format!(
                    "{} {}",
                    id.shortened(9),
                    match answer {
                        Answer::Result(raw) => raw.get(),
                        Answer::Error(_) => "error",
                        Answer::Nothing => "nothing",
                    }
                ),
            });
        });
        (seen, end)
    }

    #[test]
    fn d2_4_a_message_is_told_by_its_shape() {
        for (frame, want) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"id":2,"method":"b"}}"#, "a 1"),
            (r#"{"method":"a","id":"x\u0079"}"#, "a xy"),
            (r#"{"method":"a"}"#, "a"),
            (r#" {"id":1.0,"result":7} "#, "1 7"),
            (r#"{"id":-1e2,"result":null}"#, "-100 null"),
            (r#"{"id":1,"result":7,"error":null}"#, "1 7"),
            (r#"{"id":1,"result":null,"error":{}}"#, "1 error"),
            (r#"{"id":null,"error":{}}"#, "null error"),
            (r#"{"id":1}"#, "1 nothing"),
            (r#"{"id":1.5,"result":7}"#, "1.5 7"),
            ("{\"id\":1,\"result\":7}\r", "1 7"),
        ] {
            assert_eq!(read(frame), (vec![want.to_owned()], Ok(())), "{frame}");
        }
    }

    #[test]
    fn d2_4_what_is_no_message_says_so() {
        for frame in [
            "{",
            "7",
            "null",
            "text",
            "{}",
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"method":7,"id":1}"#,
            r#"{"id":1,"id":2,"result":0}"#,
            r#"{"id":1,"result":0} {}"#,
            "[",
            "[7]",
        ] {
            assert_eq!(read(frame), (vec![], Err(Malformed)), "{frame}");
        }
        assert_eq!(messages(b"{\"method\":\"\xff\"}", |_| ()), Err(Malformed));
    }

    #[test]
    fn d2_4_of_a_batch_every_message_counts() {
        assert_eq!(read("[]"), (vec![], Ok(())));
        let (seen, end) = read(r#"[{"id":1,"result":7},7,{"method":"a"}]"#);
        assert_eq!((seen, end), (vec!["1 7".to_owned(), "a".to_owned()], Err(Malformed)));
        let (seen, end) = read(r#"[{"id":1,"result":7},"#);
        assert_eq!((seen, end), (vec!["1 7".to_owned()], Err(Malformed)));
    }

    #[test]
    fn d2_4_ids_that_are_equal_are_one() {
        let id = |json: &str| Id::of(serde_json::from_str(json).unwrap());
        assert_eq!(id("1"), id("1.0"));
        assert_eq!(id("\"a\""), id(r#""\u0061""#));
        assert_ne!(id("1"), id("\"1\""));
        assert_ne!(id("null"), id("\"null\""));
        assert_ne!(id("12345678901234567890"), id("12345678901234567891"));
    }
}
