//! One value of an outfile, in the shapes of the SDK that Gemini CLI links:
//! log records have `hrTime` and an object of `attributes`. Spans and metrics
//! have no event, so that they are nobody's.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::super::record::{Fields, Name, Raw, Read, Value};

/// Reads the value at the beginning; its length, too. `None`: there is none.
pub(super) fn first(bytes: &[u8]) -> Option<(Read, usize)> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<&RawValue>();
    let value = values.next()?.ok()?;
    let len = values.byte_offset();
    let entry = serde_json::from_str::<Entry<'_>>(value.get());
    Some((entry.map_or(Read::Malformed, |entry| entry.fields().read()), len))
}

/// The resource and the body are not named here, so that they are stepped over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow, default)]
    hr_time: Option<&'a RawValue>,
    #[serde(borrow, default)]
    hr_time_observed: Option<&'a RawValue>,
    #[serde(borrow, default)]
    attributes: Attributes<'a>,
}

impl<'a> Entry<'a> {
    fn fields(self) -> Fields<Plain<'a>> {
        let mut fields = self.attributes.0;
        fields.at = self.hr_time.and_then(millis);
        fields.observed_at = self.hr_time_observed.and_then(millis);
        fields
    }
}

/// `[seconds, nanoseconds]` as unix ms.
fn millis(time: &RawValue) -> Option<i64> {
    let (seconds, nanos) = serde_json::from_str::<(i64, i64)>(time.get()).ok()?;
    seconds.checked_mul(1000)?.checked_add(nanos / 1_000_000).filter(|ms| *ms > 0)
}

/// `{"key": value, …}`, of which only what is asked for is kept.
#[derive(Default)]
struct Attributes<'a>(Fields<Plain<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Attributes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Fields<Plain<'de>>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of attributes")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Fields::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
                let mut fields = Fields::default();
                while let Some(key) = members.next_key::<Text<'_>>()? {
                    match Name::of(key.0.as_bytes()) {
                        Some(name) => fields.put(name, Plain(members.next_value()?)),
                        None => {
                            members.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_any(Members).map(Attributes)
    }
}

/// A string, borrowed where nothing in it is escaped.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A value as JSON has it.
#[derive(Clone, Copy)]
struct Plain<'a>(&'a RawValue);

impl<'a> Raw<'a> for Plain<'a> {
    fn value(self) -> Value<'a> {
        let text = self.0.get();
        match text.as_bytes().first() {
            Some(b'"') => {
                serde_json::from_str::<Text<'a>>(text).map_or(Value::Other, |Text(text)| Value::Text(text))
            }
            Some(b'-' | b'0'..=b'9') => match (text.parse(), text.parse()) {
                (Ok(whole), _) => Value::Int(whole),
                (_, Ok(number)) => Value::Double(number),
                _ => Value::Other,
            },
            Some(b'n') => Value::Empty,
            _ => Value::Other,
        }
    }
}
