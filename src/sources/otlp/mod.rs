//! The telemetry source: what Gemini CLI's own OpenTelemetry says of model
//! calls, received over OTLP or read from its outfile (accounting R66).
//!
//! - **In**: bodies of OTLP/HTTP (JSON or protobuf) and OTLP/gRPC, and files
//!   that `telemetry.outfile` names.
//! - **Out**: [`TelemetryBatch`](crate::ledger::telemetry::TelemetryBatch)es: to a
//!   [`TelemetryIntake`], or in steps that carry a cursor.
//! - **Never**: look at a resource, a body or an attribute that holds text (they
//!   carry prompts, answers and addresses), count a record in doubt, or hold
//!   more than one bounded body or value.
//! - **Look first** at [`record`] (attributes become records), then [`json`] and
//!   [`proto`] (the two forms), [`http`] and `grpc` (how they arrive), and
//!   [`outfile`] (the file).

mod answer;
mod deliver;
#[cfg(feature = "grpc")]
mod grpc;
pub mod http;
mod intake;
pub mod json;
pub mod outfile;
pub mod proto;
pub mod record;

mod wire;

pub use intake::{Busy, Refusal, TelemetryIntake};

/// The largest body and the largest value of an outfile, in bytes, packed or
/// not (accounting R72).
pub const MAX_BODY: usize = 16 << 20;

/// A body is not what its type says. Nothing of it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is no {0}")]
pub struct Undecodable(pub &'static str);
