//! All integration tests, in one binary.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test owns its files, its clock and its time"
)]

mod architecture;
mod command_line;
mod exposition;
mod prices;
mod support;
