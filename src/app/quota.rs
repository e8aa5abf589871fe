//! Quota, once: asked for where that is allowed, then shown.

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;
use std::time::Duration;

use super::clock::Clock;
use super::quota_poll::poll_once;
use super::show::{height, homes, screen, update_or_show};
use super::zone;
use crate::cli;
use crate::config::Config;
use crate::store::open_reader;
use crate::store::writer::Ledger;
use crate::surfaces::quota::{Quota, write_risk};

/// The command line was understood and what it asks for makes no sense.
const USAGE: u8 = 2;

pub(super) fn quota(config: &Config, args: &cli::quota::Quota) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    if args.watch.is_some() && !io::stdout().is_terminal() {
        eprintln!("gemgauge: --watch redraws a terminal, and standard output is none; leave it out here");
        return Ok(ExitCode::from(USAGE));
    }
    let updated = if args.no_scan { ExitCode::SUCCESS } else { update_or_show(config, clock)? };
    let consent = args.poll || config.quota.enabled;
    if consent {
        poll(config, clock)?;
    }
    if let Some(seconds) = args.watch {
        return watch(config, args, consent, clock, Duration::from_secs(seconds));
    }
    let quota = read(config, args, clock)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        quota.write_json(true, &mut out)?;
    } else {
        out.write_all(&text(config, &quota, consent)?)?;
    }
    out.flush()?;
    let enough = args.min.is_none_or(|percent| quota.has_at_least(percent));
    Ok(if consent && enough { updated } else { ExitCode::FAILURE })
}

/// Asks once for the homes that were chosen, and keeps what was said.
fn poll(config: &Config, clock: Clock) -> anyhow::Result<()> {
    let mut ledger = Ledger::open(&config.db)?;
    let chosen = homes(config)?;
    let mut asked = Vec::new();
    for home in &config.homes {
        let (id, name) = ledger.home(&home.path, &home.name)?;
        if chosen.is_empty() || chosen.contains(&name) {
            asked.push((id, home));
        }
    }
    for poll in poll_once(config, &asked, clock) {
        ledger.poll(&poll, clock.now_ms())?;
    }
    Ok(())
}

fn read(config: &Config, args: &cli::quota::Quota, clock: Clock) -> anyhow::Result<Quota> {
    let chosen = homes(config)?;
    let mut reader = open_reader(&config.db)?;
    let mut quota = reader.snapshot(|snapshot| Quota::read(snapshot, &chosen, clock.now_ms()))?;
    quota.keep_models(&args.model);
    Ok(quota)
}

fn text(config: &Config, quota: &Quota, consent: bool) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    quota.write_text(&zone(config)?, &mut text)?;
    if !consent {
        write_risk(&mut text)?;
    }
    Ok(text)
}

/// What the ledger holds, redrawn in place until a signal ends the process:
/// only `serve` asks again and again.
fn watch(
    config: &Config,
    args: &cli::quota::Quota,
    consent: bool,
    clock: Clock,
    every: Duration,
) -> anyhow::Result<ExitCode> {
    loop {
        let text = text(config, &read(config, args, clock)?, consent)?;
        let mut out = io::stdout().lock();
        out.write_all(screen(&String::from_utf8_lossy(&text), height()).as_bytes())?;
        out.flush()?;
        drop(out);
        std::thread::sleep(every);
    }
}
