//! The wiring: the whole service on one page.
//!
//! - **In**: a configuration and the arguments of one command.
//! - **Out**: an exit code; what was asked for is on standard output.
//! - **Never**: hold a rule. It connects the rooms that do.
//! - **Look first** at [`serve`].

pub mod clock;
pub mod ingest;

use std::process::ExitCode;

use crate::cli;
use crate::config::Config;

const NOT_YET: &str = "this command is not built yet";

/// # Errors
/// Whatever keeps the service from starting or running.
pub fn serve(_config: Config) -> anyhow::Result<ExitCode> {
    anyhow::bail!(NOT_YET)
}

/// # Errors
/// Whatever keeps the report from being made.
pub fn report(config: Config, _args: &cli::report::Report) -> anyhow::Result<ExitCode> {
    let clock = clock::Clock::start();
    let ledger = crate::store::writer::Ledger::open(&config.db)?;
    ingest::Ingest::start(&config, ledger, Default::default(), clock, false)?.once()?;
    anyhow::bail!(NOT_YET)
}

/// # Errors
/// Whatever keeps the session from being shown.
pub fn explain(_config: Config, _args: &cli::explain::Explain) -> anyhow::Result<ExitCode> {
    anyhow::bail!(NOT_YET)
}

/// # Errors
/// Whatever keeps the diagnosis from being made.
pub fn doctor(_config: Config, _args: &cli::doctor::Doctor) -> anyhow::Result<ExitCode> {
    anyhow::bail!(NOT_YET)
}
