//! The ledger against the bill: `reconcile --bill`.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;

use super::clock::Clock;
use super::export::prices;
use super::show::{color, homes, keep_homes, refuse, update_or_show, width};
use crate::cli;
use crate::config::{Config, read_bounded};
use crate::store::open_reader;
use crate::surfaces::bill::{self, Reconciliation};
use crate::surfaces::report::spec::zone;

pub(super) fn reconcile(config: &Config, args: &cli::reconcile::Reconcile) -> anyhow::Result<ExitCode> {
    let zone = match zone(&args.zone) {
        Ok(zone) => zone,
        Err(error) => return refuse(error),
    };
    let name = || format!("the bill {} could not be read", args.bill.display());
    let text = read_bounded(&args.bill, bill::LIMIT).with_context(name)?;
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
