//! Quota: what refused requests say of it (quota Q14).
//!
//! - **In**: the text of an error, from telemetry, a front door or a headless run.
//! - **Out**: [`ledger::quota`](crate::ledger::quota) values.
//! - **Never**: keep, log or pass on a text.
//! - **Look first** at [`rejection`].

pub mod rejection;
mod wording;
