//! The doors through which evidence comes in: bytes become facts with a cursor.
//!
//! - **In**: what Gemini CLI leaves on disk ([`journal`]), what it says over ACP
//!   ([`acp`]) and in headless runs ([`headless`]), what front doors noted
//!   ([`spool`]) or others post ([`events`]), its telemetry ([`otlp`]), and what
//!   Code Assist says of a sign-in's quota ([`quota`]).
//! - **Out**: `ledger` facts, in bounded steps that carry the cursor they start
//!   from; polls of quota.
//! - **Never**: touch the ledger's file, write below `.gemini`, or keep a text.
//! - **Look first** at [`journal::tail`] (one journal, one look) and
//!   [`journal::record`] (one line, one meaning).

pub mod acp;
pub mod events;
pub mod headless;
pub mod journal;
pub mod otlp;
pub mod process;
mod proof;
pub mod quota;
pub mod raw;
pub mod spool;
