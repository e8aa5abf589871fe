//! The ledger for other systems: `export` and `backfill`.

use std::io::{self, Write};
use std::process::ExitCode;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::clock::Clock;
use super::show::{homes, keep_homes, refuse, update_or_show};
use super::zone;
use crate::cli;
use crate::config::{Config, Home};
use crate::store::open_reader;
use crate::surfaces::backfill::{self, BackfillSpec};
use crate::surfaces::export::{self, ExportError, ExportSpec};
use crate::surfaces::pricing::HomePrices;
use crate::surfaces::report::ReportError;
use crate::surfaces::report::filter::Filters;
use crate::surfaces::report::range::RangeSpec;

pub(super) fn export(config: &Config, args: &cli::export::Export) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    let zone = zone(config)?;
    let spec = |home| {
        let format = match args.format {
            cli::export::Format::Focus => export::Format::Focus,
            cli::export::Format::Csv => export::Format::Csv,
            cli::export::Format::Jsonl => export::Format::Jsonl,
        };
        let grain = match args.grain {
            cli::export::Grain::Request => export::Grain::Request,
            cli::export::Grain::Hour => export::Grain::Hour,
            cli::export::Grain::Day => export::Grain::Day,
        };
        let (project, model) = (args.project.clone(), args.model.clone());
        let filters = Filters { project, model, home, ..Filters::default() };
        ExportSpec::new(format, grain, args.since.as_deref(), args.until.as_deref(), zone.clone(), filters)
    };
    // What cannot be understood is said before anything is read.
    if let Err(error) = spec(Vec::new()) {
        return refuse(error);
    }
    let done = if args.no_scan { ExitCode::SUCCESS } else { update_or_show(config, clock)? };
    let spec = spec(homes(config)?)?;
    let now = Timestamp::from_millisecond(clock.now_ms())?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut reader = open_reader(&config.db)?;
    let written =
        reader.snapshot(|snapshot| Ok(export::write(snapshot, &spec, &prices(config), now, &mut out)))?;
    match written {
        Ok(()) => out.flush()?,
        Err(ExportError::Report(error)) => return refuse(error),
        Err(error) => return Err(error.into()),
    }
    Ok(done)
}

pub(super) fn backfill(config: &Config, args: &cli::backfill::Backfill) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    let now = Timestamp::from_millisecond(clock.now_ms())?;
    let spec = match backfill_spec(args, &zone(config)?, now) {
        Ok(spec) => spec,
        Err(error) => return refuse(error),
    };
    let done = if args.no_scan { ExitCode::SUCCESS } else { update_or_show(config, clock)? };
    let chosen = homes(config)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut reader = open_reader(&config.db)?;
    let written = reader.snapshot(|snapshot| {
        let mut dimensions = snapshot.dimensions()?;
        keep_homes(&mut dimensions, &chosen);
        backfill::write(snapshot, &dimensions, &spec, &prices(config), &mut out)
    })?;
    written?;
    out.flush()?;
    Ok(done)
}

fn backfill_spec(
    args: &cli::backfill::Backfill,
    zone: &TimeZone,
    now: Timestamp,
) -> Result<BackfillSpec, ReportError> {
    let since = args.since.as_deref().map(|text| first(text, zone, now)).transpose()?.flatten();
    let until = args.until.as_deref().map_or(Ok(now.as_millisecond()), |text| last(text, zone, now))?;
    if let Some(since) = since.filter(|since| *since > until) {
        let text = |at| Timestamp::from_millisecond(at).map_or_else(|_| String::new(), |at| at.to_string());
        return Err(ReportError::Reversed { since: text(since), until: text(until) });
    }
    let (job, instance) = (args.job.clone(), args.instance.clone());
    Ok(BackfillSpec { job, instance, step: i64::from(args.step) * 1_000, since, until })
}

/// A time, or the first moment of a day; `all` has none.
fn first(text: &str, zone: &TimeZone, now: Timestamp) -> Result<Option<i64>, ReportError> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(Some(at.as_millisecond()));
    }
    let since = RangeSpec::parse(Some(text), None)?.since;
    let range = RangeSpec { since, until: None }.resolve(1, zone, now)?;
    Ok(range.since.and_then(|day| midnight(day, zone)))
}

/// A time, or the last moment of a day, but none that is still to come.
fn last(text: &str, zone: &TimeZone, now: Timestamp) -> Result<i64, ReportError> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at.as_millisecond());
    }
    let range = RangeSpec::parse(None, Some(text))?.resolve(1, zone, now)?;
    let end = range.until.and_then(|day| midnight(day.saturating_add(1.day()), zone));
    Ok(end.map_or(i64::MAX, |end| end - 1).min(now.as_millisecond()))
}

fn midnight(day: jiff::civil::Date, zone: &TimeZone) -> Option<i64> {
    let at = zone.to_ambiguous_timestamp(day.at(0, 0, 0, 0)).compatible();
    at.ok().map(Timestamp::as_millisecond)
}

/// The prices in force and how each configured home pays.
pub(super) fn prices(config: &Config) -> HomePrices {
    let pricing = |home: &Home| (home.path.to_string_lossy().into_owned(), home.pricing());
    HomePrices::new(config.prices.clone(), config.homes.iter().map(pricing))
}
