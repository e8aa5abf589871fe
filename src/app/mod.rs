//! The wiring: what the rooms are connected by.
//!
//! - **In**: a configuration and the arguments of one command.
//! - **Out**: an exit code; what was asked for is on standard output.
//! - **Never**: hold a rule. It connects the rooms that do.
//! - **Look first** at [`serve`] (the whole service on one page), then
//!   [`ingest`] (journals into the ledger).

mod acp;
mod assets;
mod bill;
mod budget;
mod catch_up;
pub mod clock;
mod export;
mod hooks;
pub mod ingest;
mod intake;
mod listening;
pub mod lock;
mod prices;
mod quota;
mod quota_poll;
mod reprice;
mod run;
mod serve;
mod show;
mod spools;
pub mod views;

use std::process::ExitCode;

use anyhow::Context;
use jiff::tz::TimeZone;

use crate::cli;
use crate::config::{Config, Env, Flags, Home, Level, LogFormat};
use crate::surfaces::report::Money;

/// # Errors
/// Whatever keeps the service from starting or running.
pub fn serve(config: Config) -> anyhow::Result<ExitCode> {
    log(&config);
    serve::serve(&config)
}

/// # Errors
/// What keeps the agent from being started: an option that makes no sense.
pub fn acp(flags: &Flags, args: &cli::acp::Acp) -> anyhow::Result<ExitCode> {
    acp::acp(flags, args)
}

/// # Errors
/// Whatever keeps the ledger from being brought up to date.
pub fn catch_up(config: Config) -> anyhow::Result<ExitCode> {
    catch_up::catch_up(&config)
}

/// # Errors
/// Whatever keeps the report from being made.
pub fn report(config: Config, args: &cli::report::Report) -> anyhow::Result<ExitCode> {
    show::report(&config, args)
}

/// # Errors
/// Whatever keeps the session or the day from being shown.
pub fn explain(config: Config, args: &cli::explain::Explain) -> anyhow::Result<ExitCode> {
    show::explain(&config, args)
}

/// # Errors
/// Whatever keeps the ledger from being written out.
pub fn export(config: Config, args: &cli::export::Export) -> anyhow::Result<ExitCode> {
    export::export(&config, args)
}

/// # Errors
/// Whatever keeps the history from being written out.
pub fn backfill(config: Config, args: &cli::backfill::Backfill) -> anyhow::Result<ExitCode> {
    export::backfill(&config, args)
}

/// # Errors
/// Whatever keeps the bill from being compared.
pub fn reconcile(config: Config, args: &cli::reconcile::Reconcile) -> anyhow::Result<ExitCode> {
    bill::reconciled(&config, args)
}

/// # Errors
/// Whatever keeps the diagnosis from being made.
pub fn doctor(config: Config, args: &cli::doctor::Doctor) -> anyhow::Result<ExitCode> {
    show::doctor(&config, args)
}

/// # Errors
/// Whatever keeps the kit from being written.
pub fn assets(config: Config, args: &cli::assets::Assets) -> anyhow::Result<ExitCode> {
    assets::assets(&config, args)
}

/// # Errors
/// Whatever keeps history from being priced anew; then nothing was changed.
pub fn reprice(config: Config, args: &cli::reprice::Reprice) -> anyhow::Result<ExitCode> {
    reprice::reprice(&config, args)
}

/// What is wrong with the configuration is no reason not to run the command.
///
/// # Errors
/// Whatever keeps the command from being started, or standard input from being copied.
pub fn run(flags: &Flags, env: &Env, args: &cli::run::Run) -> anyhow::Result<ExitCode> {
    run::run(flags, env, args)
}

/// # Errors
/// Whatever keeps the budgets from being shown.
pub fn budget(config: Config, args: &cli::budget::Budget) -> anyhow::Result<ExitCode> {
    budget::budget(&config, args)
}

/// # Errors
/// Whatever keeps the status from being shown.
pub fn status(config: Config, args: &cli::status::Status) -> anyhow::Result<ExitCode> {
    budget::status(&config, args)
}

/// # Errors
/// Whatever keeps the quota from being asked for or shown.
pub fn quota(config: Config, args: &cli::quota::Quota) -> anyhow::Result<ExitCode> {
    quota::quota(&config, args)
}

/// # Errors
/// Whatever keeps the prices from being shown or compared.
pub fn prices(config: Config, args: &cli::prices::Prices) -> anyhow::Result<ExitCode> {
    prices::prices(&config, args)
}

/// What costs of reports rest on beside the ledger. How a home signs in may
/// change while a service runs: asked anew for every report.
fn money(config: &Config) -> Money {
    let pricing = |home: &Home| (home.path.to_string_lossy().into_owned(), home.pricing());
    Money {
        table: config.prices.clone(),
        homes: config.homes.iter().map(pricing).collect(),
        currency: config.currency.clone(),
    }
}

/// The time zone of calendars.
fn zone(config: &Config) -> anyhow::Result<TimeZone> {
    match &config.timezone {
        Some(name) => TimeZone::get(name).with_context(|| format!("there is no time zone {name}")),
        None => Ok(TimeZone::system()),
    }
}

/// Log lines go to standard error, always.
fn log(config: &Config) {
    let level = match config.log.level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    };
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let lines = tracing_subscriber::fmt().with_env_filter(level).with_ansi(ansi).with_writer(std::io::stderr);
    match config.log.format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().init(),
    }
}
