//! Turns: one prompt and its answer, from whatever saw it.
//!
//! - [`merge`] decides what the readings of one turn make: figure, class, reasons.
//! - [`windows`] says which of several turns a record belongs to.
//! - [`session`] puts the two together for all that is known of one session.
//! - [`excess`] says what a figure holds above its requests, and under which model.
//! - [`settle`] says when a turn is final.

pub mod excess;
pub mod merge;
pub mod session;
pub mod settle;
pub mod telemetry;
pub mod windows;
