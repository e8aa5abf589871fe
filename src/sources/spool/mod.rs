//! Spool files: what a front door saw, one JSON object a line, one file for
//! each process behind it (accounting 3, D2 5).
//!
//! The door writes and never waits for a reader. The readers, `serve` and
//! one-shot commands, may come later, several, or never.

mod write;

pub use write::{SpoolWriter, fresh_name};

/// What `v` of a line says. A line of a later version is counted and skipped.
pub const VERSION: u64 = 1;

/// The longest line that is written and read, in bytes without its newline.
pub const MAX_LINE: usize = 64 * 1024;
