//! Spool files: what a front door saw, one JSON object a line, one file for
//! each process behind it (accounting 3, D2 5).
//!
//! - **In**: events of a door ([`SpoolWriter`]); the files of a directory ([`SpoolSource`]).
//! - **Out**: lines that are appended; steps with the cursor they start from.
//! - **Never**: make a door wait for a reader, follow a link, or delete a file
//!   that is not a spool which was read to its end ([`SpoolSource::expire`]).
//! - **Look first** at [`write`] (what a line is), then [`read`].

pub mod read;
pub mod write;

pub use read::{Seen, SpoolSource};
pub use write::{SpoolWriter, fresh_name};

/// What `v` of a line says. A line of a later version is counted and skipped.
pub const VERSION: u64 = 1;

/// The longest line that is written and read, in bytes without its newline.
pub const MAX_LINE: usize = 64 * 1024;
