//! All integration tests, in one binary.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test owns its files, its clock and its time"
)]

mod architecture;
mod command_line;
mod cuts;
mod demo_home;
mod discovery;
mod exposition;
mod lines;
mod recordings;
mod support;
mod tail_cases;
mod tail_programs;
mod traps;
