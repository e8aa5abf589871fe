//! An `ExportLogsServiceRequest` in JSON (OTLP 1, the JSON form of protobuf):
//! integers of 64 bits are numbers or strings, unknown members are ignored.
//!
//! Values that are not asked for are stepped over: they stay slices of the
//! body and are never unpacked.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Undecodable;
use super::record::{Batch, Fields, Name, Raw, Read, Value, millis};
use crate::ledger::telemetry::TelemetryBatch;

/// Reads a request. What is JSON and yet no record is malformed and costs no
/// other record.
///
/// # Errors
/// It is no JSON, or no such request.
pub fn logs(body: &[u8]) -> Result<TelemetryBatch, Undecodable> {
    let broken = Undecodable("ExportLogsServiceRequest in JSON");
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(broken);
    }
    let request: Request<'_> = serde_json::from_slice(body).map_err(|_| broken)?;
    let mut batch = Batch::default();
    let scopes = request.resource_logs.iter().flatten().flat_map(|logs| logs.scope_logs.iter().flatten());
    for record in scopes.flat_map(|scope| scope.log_records.iter().flatten()) {
        let record = Some(record.get()).filter(|text| text.starts_with('{'));
        let record = record.and_then(|text| serde_json::from_str::<LogRecord<'_>>(text).ok());
        batch.push(record.map_or(Read::Malformed, |record| record.fields().read()));
    }
    Ok(batch.finish())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow, default)]
    resource_logs: Option<Vec<ResourceLogs<'a>>>,
}

/// The resource itself is not named here, so that it is stepped over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceLogs<'a> {
    #[serde(borrow, default)]
    scope_logs: Option<Vec<ScopeLogs<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScopeLogs<'a> {
    #[serde(borrow, default)]
    log_records: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogRecord<'a> {
    #[serde(borrow, default)]
    time_unix_nano: Option<&'a RawValue>,
    #[serde(borrow, default)]
    observed_time_unix_nano: Option<&'a RawValue>,
    #[serde(borrow, default)]
    attributes: Attributes<'a>,
}

impl<'a> LogRecord<'a> {
    fn fields(self) -> Fields<Any<'a>> {
        let nanos = |time: Option<&RawValue>| time.and_then(whole::<u64>).and_then(millis);
        let mut fields = self.attributes.0;
        fields.at = nanos(self.time_unix_nano);
        fields.observed_at = nanos(self.observed_time_unix_nano);
        fields
    }
}

/// A whole number, with or without quotes.
fn whole<T: std::str::FromStr>(value: &RawValue) -> Option<T> {
    let text = value.get();
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    bare.unwrap_or(text).parse().ok()
}

/// `[{"key":…,"value":{…}},…]`, of which only what is asked for is kept.
#[derive(Default)]
struct Attributes<'a>(Fields<Any<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Attributes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Fields<Any<'de>>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of attributes")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Fields::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<Self::Value, A::Error> {
                let mut fields = Fields::default();
                while pairs.next_element_seed(Pair(&mut fields))?.is_some() {}
                Ok(fields)
            }
        }

        deserializer.deserialize_any(List).map(Attributes)
    }
}

/// One attribute, put in its place.
struct Pair<'f, 'a>(&'f mut Fields<Any<'a>>);

impl<'de> DeserializeSeed<'de> for Pair<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pair<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an attribute")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let (mut name, mut value) = (None, None);
        while let Some(member) = members.next_key::<Text<'_>>()? {
            match &*member.0 {
                "key" => name = Name::of(members.next_value::<Text<'_>>()?.0.as_bytes()),
                "value" => value = Some(members.next_value::<&RawValue>()?),
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        if let (Some(name), Some(value)) = (name, value) {
            self.0.put(name, Any(value));
        }
        Ok(())
    }
}

/// A string, borrowed where nothing in it is escaped.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// An `AnyValue`: an object of one member.
#[derive(Clone, Copy)]
struct Any<'a>(&'a RawValue);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AnyValue<'a> {
    #[serde(borrow)]
    string_value: Option<Text<'a>>,
    #[serde(borrow)]
    int_value: Option<&'a RawValue>,
    double_value: Option<f64>,
    bool_value: Option<IgnoredAny>,
    array_value: Option<IgnoredAny>,
    kvlist_value: Option<IgnoredAny>,
    bytes_value: Option<IgnoredAny>,
}

impl<'a> Raw<'a> for Any<'a> {
    fn value(self) -> Value<'a> {
        let Ok(value) = serde_json::from_str::<Option<AnyValue<'a>>>(self.0.get()) else {
            return Value::Other;
        };
        match value.unwrap_or_default() {
            AnyValue { string_value: Some(Text(text)), .. } => Value::Text(text),
            AnyValue { int_value: Some(number), .. } => whole(number).map_or(Value::Other, Value::Int),
            AnyValue { double_value: Some(number), .. } => Value::Double(number),
            AnyValue {
                bool_value: None, array_value: None, kvlist_value: None, bytes_value: None, ..
            } => Value::Empty,
            _ => Value::Other,
        }
    }
}
