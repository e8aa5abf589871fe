//! The doors through which evidence comes in: bytes become facts with a cursor.
//!
//! - **In**: what Gemini CLI leaves on disk ([`journal`]); later also what it
//!   says over ACP, in headless statistics, telemetry and quota answers.
//! - **Out**: `ledger::evidence`, in bounded steps that carry the cursor they start from.
//! - **Never**: touch the ledger's file, write below `.gemini`, or keep a text.
//! - **Look first** at [`journal::tail`] (one journal, one look) and
//!   [`journal::record`] (one line, one meaning).

pub mod acp;
pub mod events;
pub mod headless;
pub mod journal;
pub mod process;
pub mod quota;
pub mod raw;
pub mod spool;
