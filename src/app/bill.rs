//! The ledger against the bill, or the sources of a session against each other: `reconcile`.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;

use super::clock::Clock;
use super::export::prices;
use super::show::{color, homes, keep_homes, refuse, update_or_show, width};
use super::{money, zone as local_zone};
use crate::cli;
use crate::config::{Config, read_bounded};
use crate::store::open_reader;
use crate::surfaces::bill::{self, Reconciliation};
use crate::surfaces::report::spec::zone;
use crate::surfaces::report::{reconcile, session};

pub(super) fn reconciled(config: &Config, args: &cli::reconcile::Reconcile) -> anyhow::Result<ExitCode> {
    let Some(path) = &args.bill else { return session(config, args) };
    let zone = match zone(&args.zone) {
        Ok(zone) => zone,
        Err(error) => return refuse(error),
    };
    let name = || format!("the bill {} could not be read", path.display());
    let text = read_bounded(path, bill::LIMIT).with_context(name)?;
    let bill = bill::read(&text).with_context(name)?;
    let done = if args.no_scan { ExitCode::SUCCESS } else { update_or_show(config, Clock::start())? };
    let chosen = homes(config)?;
    let made = open_reader(&config.db)?.snapshot(|snapshot| {
        let mut dimensions = snapshot.dimensions()?;
        keep_homes(&mut dimensions, &chosen);
        Reconciliation::read(snapshot, &dimensions, bill, &prices(config), zone)
    })?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        made.write_json(&mut out)?;
    } else {
        made.write_text(width(), color(), &mut out)?;
    }
    out.flush()?;
    Ok(if made.is_below() { ExitCode::FAILURE } else { done })
}

fn session(config: &Config, args: &cli::reconcile::Reconcile) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    let done = if args.no_scan { ExitCode::SUCCESS } else { update_or_show(config, clock)? };
    let chosen = homes(config)?;
    let money = money(config);
    let query = args.session.as_deref().unwrap_or("latest");
    let report = open_reader(&config.db)?.snapshot(|snapshot| {
        let mut dimensions = snapshot.dimensions()?;
        keep_homes(&mut dimensions, &chosen);
        let id = match session::resolve(&dimensions, query) {
            Ok(id) => id,
            Err(error) => return Ok(Err(error)),
        };
        Ok(session::explain(snapshot, &dimensions, id, &money, clock.now_ms()))
    })??;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        reconcile::write_json(&report, &mut out)?;
    } else {
        reconcile::write_text(&report, &local_zone(config)?, width(), color(), &mut out)?;
    }
    out.flush()?;
    Ok(done)
}
