//! The one-shot commands: bring the ledger up to date, then show something.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::clock::Clock;
use super::ingest::Ingest;
use super::listening::Listening;
use super::{lock, money, zone};
use crate::cli;
use crate::config::{Config, HomeChoice};
use crate::health::Health;
use crate::store::read::{Dimensions, JournalRow};
use crate::store::writer::Ledger;
use crate::store::{self, SCHEMA_VERSION, StoreError, open_reader, schema_version};
use crate::surfaces::doctor::{self, Diagnosis, Facts, HomeState, look};
use crate::surfaces::report::filter::Filters;
use crate::surfaces::report::spec::{Kind, Options, ReportSpec};
use crate::surfaces::report::{self, Format as _, ReportError, csv, json, markdown, session, table};

/// A scan that takes longer than this says so.
const SLOW: Duration = Duration::from_secs(1);

/// The command line was understood and what it asks for makes no sense.
const USAGE: u8 = 2;

/// Brings the ledger up to date; `health` learns which homes could not be read.
pub(super) fn update(config: &Config, clock: Clock, health: &Arc<Health>) -> anyhow::Result<()> {
    let ledger = Ledger::open(&config.db)?;
    let ingest = Ingest::start(config, ledger, health.clone(), clock, || false)?;
    with_progress(|| ingest.once())
}

/// Brings the ledger up to date, or says why it shows what it already holds: it
/// cannot be written now, but can be read.
fn update_or_why(config: &Config, clock: Clock) -> anyhow::Result<Option<String>> {
    let Err(error) = update(config, clock, &Arc::default()) else { return Ok(None) };
    let passing = error.downcast_ref::<StoreError>().is_some_and(StoreError::may_pass);
    if passing && open_reader(&config.db).is_ok() {
        return Ok(Some(format!("gemgauge: {error:#}; showing what it already holds")));
    }
    Err(error)
}

/// The same with the word on standard error and the exit code of a failure.
pub(super) fn update_or_show(config: &Config, clock: Clock) -> anyhow::Result<ExitCode> {
    let Some(why) = update_or_why(config, clock)? else { return Ok(ExitCode::SUCCESS) };
    eprintln!("{why}");
    Ok(ExitCode::FAILURE)
}

/// Says on standard error that something takes its time.
fn with_progress<T>(work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, wait) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if wait.recv_timeout(SLOW) == Err(RecvTimeoutError::Timeout) {
                eprintln!("gemgauge: reading journals into the ledger …");
            }
        });
        let result = work();
        drop(done);
        result
    })
}

pub(super) fn report(config: &Config, args: &cli::report::Report) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    // What cannot be understood is said before anything is read.
    if let Err(error) = spec(config, args, Vec::new()) {
        return refuse(error);
    }
    if let Some(why) = misused(args) {
        eprintln!("gemgauge: {why}");
        return Ok(ExitCode::from(USAGE));
    }
    if let Some(seconds) = args.watch {
        return watch(config, args, clock, Duration::from_secs(seconds));
    }
    let done = if args.no_scan { ExitCode::SUCCESS } else { update_or_show(config, clock)? };
    let made = match made(config, args, clock)? {
        Ok(made) => made,
        Err(error) => return refuse(error),
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    match args.format() {
        cli::report::Format::Table => plain(args).render(&made, &mut out)?,
        cli::report::Format::Json => json::Json { pretty: true }.render(&made, &mut out)?,
        cli::report::Format::Csv => csv::Csv.render(&made, &mut out)?,
        cli::report::Format::Markdown => markdown::Markdown.render(&made, &mut out)?,
    }
    out.flush()?;
    Ok(done)
}

/// What the ledger holds now.
fn made(
    config: &Config,
    args: &cli::report::Report,
    clock: Clock,
) -> anyhow::Result<Result<report::Report, ReportError>> {
    let spec = spec(config, args, homes(config)?)?;
    let money = money(config);
    let now = Timestamp::from_millisecond(clock.now_ms())?;
    let mut reader = open_reader(&config.db)?;
    Ok(reader.snapshot(|snapshot| Ok(report::report(snapshot, &spec, &money, now)))?)
}

fn plain(args: &cli::report::Report) -> table::Plain {
    table::Plain { width: width(), color: color(), chart: args.chart }
}

/// Why options that are fine by themselves make no sense here.
fn misused(args: &cli::report::Report) -> Option<&'static str> {
    let table = args.format() == cli::report::Format::Table;
    let days = args
        .kind
        .parse::<Kind>()
        .is_ok_and(|kind| matches!(kind, Kind::Daily | Kind::Weekly | Kind::Monthly));
    if args.chart && !(table && days) {
        return Some("--chart draws bars in a table of days, weeks or months; leave it out here");
    }
    if args.watch.is_some() && !table {
        return Some("--watch redraws a table; leave it or the format out");
    }
    if args.watch.is_some() && !io::stdout().is_terminal() {
        return Some("--watch redraws a terminal, and standard output is none; leave it out here");
    }
    None
}

/// The cursor to the top left corner; what is below it is cleared line by line
/// while it is overwritten, so that nothing flickers.
const HOME: &str = "\x1b[H";
const CLEAR_TO_END_OF_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// The report, redrawn in place until a signal ends the process.
fn watch(
    config: &Config,
    args: &cli::report::Report,
    clock: Clock,
    every: Duration,
) -> anyhow::Result<ExitCode> {
    loop {
        let why = if args.no_scan { None } else { update_or_why(config, clock)? };
        let made = match made(config, args, clock)? {
            Ok(made) => made,
            Err(error) => return refuse(error),
        };
        let mut text = Vec::new();
        plain(args).render(&made, &mut text)?;
        let mut text = String::from_utf8_lossy(&text).into_owned();
        text.extend(why);
        let mut out = io::BufWriter::new(io::stdout().lock());
        out.write_all(screen(&text, height()).as_bytes())?;
        out.flush()?;
        drop(out);
        std::thread::sleep(every);
    }
}

/// What redraws a terminal of so many lines. Of a longer text the end is shown:
/// there are the newest days and the total.
pub(super) fn screen(text: &str, height: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(height.saturating_sub(1))..];
    let mut screen = HOME.to_owned();
    for line in shown {
        screen.push_str(line);
        screen.push_str(CLEAR_TO_END_OF_LINE);
        screen.push('\n');
    }
    screen.push_str(CLEAR_BELOW);
    screen
}

/// Usage is a matter of its own exit code.
pub(super) fn refuse(error: ReportError) -> anyhow::Result<ExitCode> {
    if !error.is_usage() {
        return Err(error.into());
    }
    eprintln!("gemgauge: {error}");
    Ok(ExitCode::from(USAGE))
}

fn spec(config: &Config, args: &cli::report::Report, home: Vec<String>) -> Result<ReportSpec, ReportError> {
    let kind: Kind = args.kind.parse()?;
    let options = Options {
        since: args.since.clone(),
        until: args.until.clone(),
        timezone: config.timezone.clone(),
        by: args.by.clone(),
        breakdown: args.breakdown,
        project: args.project.clone(),
        model: args.model.clone(),
        session: args.session.clone(),
        home,
        exclude: args.exclude.clone(),
        sort: args.sort.clone(),
        order: args.order.clone(),
        limit: args.limit.map(|limit| limit.to_string()),
        compact: args.compact,
        all: args.all,
        no_cost: args.no_cost,
        strict: args.strict || config.strict,
    };
    ReportSpec::new(kind, &options, &jiff::tz::TimeZone::system())
}

/// The homes that `--home` narrows to, by their name in the ledger.
///
/// # Errors
/// A name that neither the configuration nor the ledger knows: a filter that
/// matches nothing must not show everything.
pub(super) fn homes(config: &Config) -> anyhow::Result<Vec<String>> {
    let known = open_reader(&config.db)
        .and_then(|mut reader| reader.snapshot(|snapshot| snapshot.homes()))
        .unwrap_or_default();
    let name = |choice: &HomeChoice| match choice {
        HomeChoice::Name(name) => {
            let mut names: Vec<_> = known.values().map(|home| home.name.as_str()).collect();
            names.extend(config.homes.iter().map(|home| home.name.as_str()));
            names.sort_unstable();
            names.dedup();
            if !names.contains(&name.as_str()) {
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                anyhow::bail!(
                    "there is no home \"{name}\"; known: {known}. A path must exist or contain a /"
                );
            }
            Ok(name.clone())
        }
        HomeChoice::Path(path) => {
            let in_ledger = known.values().find(|home| home.path == path.to_string_lossy());
            let configured = || config.homes.iter().find(|home| home.path == *path);
            Ok(in_ledger
                .map(|home| home.name.clone())
                .or_else(|| configured().map(|home| home.name.clone()))
                .unwrap_or_else(|| path.to_string_lossy().into_owned()))
        }
    };
    config.chosen.iter().map(name).collect()
}

pub(super) fn explain(config: &Config, args: &cli::explain::Explain) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    let done = update_or_show(config, clock)?;
    let chosen = homes(config)?;
    let money = money(config);
    let now = Timestamp::from_millisecond(clock.now_ms())?;
    let zone = zone(config)?;
    if let Some(day) = report::day::named(&args.session, zone.to_datetime(now).date()) {
        explain_day(config, args, day, &zone, now, chosen)?;
        return Ok(done);
    }
    let explained = open_reader(&config.db)?.snapshot(|snapshot| {
        let mut dimensions = snapshot.dimensions()?;
        keep_homes(&mut dimensions, &chosen);
        let id = match session::resolve(&dimensions, &args.session) {
            Ok(id) => id,
            Err(error) => return Ok(Err(error)),
        };
        Ok(session::explain(snapshot, &dimensions, id, &money, clock.now_ms()))
    })??;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        explained.write_json(true, &mut out)?;
    } else {
        explained.write_text(&zone, width(), color(), &mut out)?;
    }
    out.flush()?;
    Ok(done)
}

fn explain_day(
    config: &Config,
    args: &cli::explain::Explain,
    day: Date,
    zone: &TimeZone,
    now: Timestamp,
    home: Vec<String>,
) -> anyhow::Result<()> {
    let filters = Filters { home, ..Filters::default() };
    let money = money(config);
    let explained = open_reader(&config.db)?
        .snapshot(|snapshot| Ok(report::day::explain(snapshot, day, zone, &filters, &money, now)))??;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        explained.write_json(&mut out)?;
    } else {
        explained.write_text(width(), color(), &mut out)?;
    }
    Ok(out.flush()?)
}

/// Takes the sessions of other homes out, where some were chosen.
pub(super) fn keep_homes(dimensions: &mut Dimensions, chosen: &[String]) {
    if chosen.is_empty() {
        return;
    }
    let kept: Vec<i64> =
        dimensions.homes.values().filter(|home| chosen.contains(&home.name)).map(|home| home.id).collect();
    dimensions.sessions.retain(|_, session| kept.contains(&session.home_id));
}

pub(super) fn doctor(config: &Config, args: &cli::doctor::Doctor) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    let mut ledger = look::ledger_file(&config.db);
    ledger.known_schema = SCHEMA_VERSION;
    ledger.serve_pid = lock::holder(&config.db);
    if ledger.exists {
        ledger.schema_version = schema_version(&config.db).ok();
    }
    // A doctor that cannot write still says what is wrong.
    let health = Arc::<Health>::default();
    let checked = update(config, clock, &health).and_then(|()| Ok(store::check(&config.db)?));
    ledger.error = checked.err().map(|error| format!("{error:#}"));
    if ledger.error.is_none() {
        let was = std::mem::replace(&mut ledger, look::ledger_file(&config.db));
        ledger = doctor::LedgerFacts {
            known_schema: SCHEMA_VERSION,
            serve_pid: was.serve_pid,
            schema_version: schema_version(&config.db).ok(),
            ..ledger
        };
    }
    let stored = open_reader(&config.db)
        .and_then(|mut reader| reader.snapshot(|snapshot| Ok((snapshot.homes()?, snapshot.journals()?))));
    let (homes, journals) = stored.unwrap_or_default();
    let facts = config.homes.iter().map(|home| {
        let row = homes.values().find(|row| row.path == home.path.to_string_lossy());
        let of_home = |journal: &&JournalRow| row.is_some_and(|row| row.id == journal.home_id);
        let rows = journals.iter().filter(of_home).cloned().collect();
        let mut facts = look::home(home, row.is_some_and(|row| row.imported), rows);
        // A directory below it that could not be listed: the scan says which and why.
        let name = row.map_or(&home.name, |row| &row.name);
        if let (HomeState::Present, Some(Some(why))) = (&facts.state, health.home_states().get(name)) {
            facts.state = HomeState::Unreadable(why.clone());
        }
        facts
    });
    let listening = Listening::of(config);
    let diagnosis = Diagnosis::of(Facts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: clock.now_ms(),
        homes: facts.collect(),
        watch: look::watch(config.journals.watch),
        ledger,
        listener_refused: listening.refused,
        lock_broken: listening.lock_broken,
        listeners: listening.listeners,
        telemetry: doctor::TelemetryFacts { addresses: config.receivers(), grpc: cfg!(feature = "grpc") },
        settings: config.settings.clone(),
        unknown_variables: config.unknown_variables.clone(),
    });
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        diagnosis.write_json(&mut out)?;
    } else {
        diagnosis.write_text(&mut out)?;
    }
    out.flush()?;
    Ok(if diagnosis.healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Columns of the terminal; 80 where there is none.
pub(super) fn width() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0).max(40))
}

/// Lines of the terminal.
pub(super) fn height() -> usize {
    terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0))
}

/// Colour on a terminal only, and not where `NO_COLOR` is set.
pub(super) fn color() -> bool {
    io::stdout().is_terminal() && crate::config::Env::of_process().var("NO_COLOR").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_redrawn_from_its_corner_and_shows_the_end_of_what_is_too_long() {
        assert_eq!(screen("a\nb\n", 24), "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J");
        assert_eq!(screen("a\nb\nc", 3), "\u{1b}[Hb\u{1b}[K\nc\u{1b}[K\n\u{1b}[J");
        assert_eq!(screen("", 0), "\u{1b}[H\u{1b}[J");
    }
}
