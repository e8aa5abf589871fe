//! Budgets and the status line, once.

use std::io::{self, Write};
use std::process::ExitCode;

use super::clock::Clock;
use super::show::{homes, update_or_show};
use super::zone;
use crate::cli;
use crate::config::Config;
use crate::store::open_reader;
use crate::surfaces::budget::Budgets;
use crate::surfaces::status::Status;

pub(super) fn budget(config: &Config, args: &cli::budget::Budget) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    let zone = zone(config)?;
    let done = if args.no_scan { ExitCode::SUCCESS } else { update_or_show(config, clock)? };
    let budgets = open_reader(&config.db)?
        .snapshot(|snapshot| Budgets::read(snapshot, &config.budgets, &zone, clock.now_ms()))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        budgets.write_json(&mut out)?;
    } else {
        budgets.write_text(&mut out)?;
    }
    out.flush()?;
    // A check of nothing is a file that was not read, most likely.
    let failed = args.check && (budgets.any_over() || budgets.lines.is_empty());
    Ok(if failed { ExitCode::FAILURE } else { done })
}

pub(super) fn status(config: &Config, args: &cli::status::Status) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    let zone = zone(config)?;
    let done = if args.no_scan { ExitCode::SUCCESS } else { update_or_show(config, clock)? };
    let homes = homes(config)?;
    let status = open_reader(&config.db)?
        .snapshot(|snapshot| Status::read(snapshot, &config.budgets, &homes, &zone, clock.now_ms()))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        status.write_json(&mut out)?;
    } else {
        status.write_text(&mut out)?;
    }
    out.flush()?;
    Ok(done)
}
