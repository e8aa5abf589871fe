//! The doors through which evidence comes in: bytes become facts with a cursor.
//!
//! - **In**: what Gemini CLI leaves on disk ([`journal`]) and exports as telemetry
//!   ([`otlp`]); later also what it says over ACP, in headless statistics and
//!   quota answers.
//! - **Out**: `ledger::evidence`, in bounded steps that carry the cursor they start from.
//! - **Never**: touch the ledger's file, write below `.gemini`, or keep a text.
//! - **Look first** at [`journal::tail`] (one journal, one look) and
//!   [`journal::record`] (one line, one meaning).

pub mod journal;
pub mod otlp;
pub mod process;
mod proof;
pub mod quota;
pub mod spool;
