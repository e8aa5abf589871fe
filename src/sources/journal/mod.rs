//! The journal source: the chat journals that Gemini CLI writes below
//! `.gemini/tmp/<project>/chats` (accounting R11–R24, R46, R73).
//!
//! - **In**: directories and files of the homes, and hints that something changed.
//! - **Out**: [`JournalStep`](crate::ledger::evidence::JournalStep)s and project names.
//! - **Never**: write, follow a link, hold more than one line, or trust an event:
//!   the scan is the truth.
//! - **Look first** at [`scan`] (what is there), then `look` (one journal), then
//!   [`tail`] (what was added), then [`record`] (what a line says).

pub mod discover;
mod fast;
pub mod glue;
pub mod held;
pub mod json;
pub mod legacy;
pub mod lines;
mod look;
pub mod name;
pub mod project;
pub mod record;
pub mod scan;
pub mod section;
pub mod tail;
pub mod watch;

pub use name::Name;

/// How much is read at most (accounting R15; architecture, house rule 10).
#[derive(Clone, Debug)]
pub struct Limits {
    /// A journal larger than this is a failed read, in bytes.
    pub max_file_bytes: u64,
    /// A line longer than this, without its newline, is a failed read, in bytes.
    pub max_line_bytes: usize,
    /// Stop reading at the caps, to the letter of R15.
    pub strict: bool,
    /// One step ends after this many bytes.
    pub step_bytes: u64,
    /// One step ends after this many requests.
    pub step_requests: usize,
    /// An unfinished tail is torn once the file was quiet for this long, in ms (R19).
    pub quiet_ms: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_file_bytes: 64 * 1024 * 1024,
            max_line_bytes: 10 * 1024 * 1024,
            strict: false,
            step_bytes: 4 * 1024 * 1024,
            step_requests: 1000,
            quiet_ms: 5000,
        }
    }
}
