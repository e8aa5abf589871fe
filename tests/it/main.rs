//! All integration tests, in one binary.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test owns its files, its clock and its time"
)]

mod architecture;
#[cfg(unix)]
mod backfill;
#[cfg(unix)]
mod budget;
mod command_line;
#[cfg(unix)]
mod crash;
mod cuts;
mod demo_home;
mod discovery;
mod export;
mod exposition;
#[cfg(unix)]
mod ledger_faults;
mod lines;
#[cfg(unix)]
mod live_cli;
#[cfg(unix)]
mod live_telemetry;
mod money;
mod prices;
#[cfg(unix)]
mod privacy;
#[cfg(unix)]
mod prometheus;
mod recordings;
#[cfg(unix)]
mod serve;
mod support;
mod tail_cases;
mod tail_programs;
mod telemetry_outfile;
mod telemetry_records;
mod telemetry_routes;
mod traps;
