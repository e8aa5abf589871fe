//! What a headless run says of itself (accounting R63–R65, R67, R68).
//!
//! - **In**: the bytes of a run's standard output and error, as they pass.
//! - **Out**: [`DoorEvent`](crate::ledger::doors::DoorEvent)s: its session, its
//!   one turn with the statistics, its end.
//! - **Never**: keep a text, a parameter or a tool's output, hold more than
//!   [`MAX_LINE`](lines::MAX_LINE) bytes, or decide which form it is by the command line.
//! - **Look first** at [`observe`], then [`stats`] (what the figures are).

pub mod document;
pub mod lines;
pub mod observe;
pub mod stats;
pub mod stream;

pub use observe::{Observer, Origin};
