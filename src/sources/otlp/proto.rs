//! An `ExportLogsServiceRequest` in protobuf (OTLP 1, `logs_service.proto`).
//!
//! Only the fields on the way to the attributes are followed: a resource, a
//! scope or the body of a record is stepped over as one slice.

use super::Undecodable;
use super::record::{Batch, Fields, Name, Raw, Value, millis};
use super::wire::{Message, Wire};
use crate::ledger::telemetry::TelemetryBatch;

/// Reads a request.
///
/// # Errors
/// It is no such message: a length or a number does not fit.
pub fn logs(body: &[u8]) -> Result<TelemetryBatch, Undecodable> {
    let mut batch = Batch::default();
    each(body, 1, |resource_logs| {
        each(resource_logs, 2, |scope_logs| {
            each(scope_logs, 2, |record| {
                batch.push(fields(record)?.read());
                Ok(())
            })
        })
    })?;
    Ok(batch.finish())
}

/// Calls `f` with each message of a repeated field.
fn each<'a>(
    message: &'a [u8],
    field: u64,
    mut f: impl FnMut(&'a [u8]) -> Result<(), Undecodable>,
) -> Result<(), Undecodable> {
    let mut message = Message(message);
    while let Some((number, wire)) = message.next()? {
        if let (true, Wire::Bytes(bytes)) = (number == field, wire) {
            f(bytes)?;
        }
    }
    Ok(())
}

/// A `LogRecord`.
fn fields(record: &[u8]) -> Result<Fields<Any<'_>>, Undecodable> {
    let mut fields = Fields::default();
    let mut message = Message(record);
    while let Some(field) = message.next()? {
        match field {
            (1, Wire::Fixed64(nanos)) => fields.at = millis(nanos),
            (11, Wire::Fixed64(nanos)) => fields.observed_at = millis(nanos),
            (6, Wire::Bytes(pair)) => {
                if let Some((name, value)) = attribute(pair)? {
                    fields.put(name, value);
                }
            }
            _ => {}
        }
    }
    Ok(fields)
}

/// A `KeyValue`, if it is asked for.
fn attribute(pair: &[u8]) -> Result<Option<(Name, Any<'_>)>, Undecodable> {
    let (mut name, mut value) = (None, Any(&[]));
    let mut message = Message(pair);
    while let Some(field) = message.next()? {
        match field {
            (1, Wire::Bytes(key)) => name = Name::of(key),
            (2, Wire::Bytes(bytes)) => value = Any(bytes),
            _ => {}
        }
    }
    Ok(name.map(|name| (name, value)))
}

/// An `AnyValue`.
#[derive(Clone, Copy)]
struct Any<'a>(&'a [u8]);

impl<'a> Raw<'a> for Any<'a> {
    fn value(self) -> Value<'a> {
        let mut message = Message(self.0);
        let mut value = Value::Empty;
        loop {
            // One of a set of fields: the last counts.
            value = match message.next() {
                Ok(None) => return value,
                Ok(Some((1, Wire::Bytes(text)))) => {
                    str::from_utf8(text).map_or(Value::Other, |text| Value::Text(text.into()))
                }
                Ok(Some((3, Wire::Varint(number)))) => Value::Int(number.cast_signed()),
                Ok(Some((4, Wire::Fixed64(bits)))) => Value::Double(f64::from_bits(bits)),
                Ok(Some((1..=7, _))) => Value::Other,
                Ok(Some(_)) => value,
                Err(_) => return Value::Other,
            }
        }
    }
}
