//! The price table, listed or compared.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use super::clock::Clock;
use crate::cli;
use crate::cli::prices::PricesCommand;
use crate::config::{Config, Home, read_bounded};
use crate::ledger::money::Day;
use crate::surfaces::prices::check::Check;
use crate::surfaces::prices::{Listing, litellm};

pub(super) fn prices(config: &Config, args: &cli::prices::Prices) -> anyhow::Result<ExitCode> {
    let today = Day::of_ms(Clock::start().now_ms());
    let mut out = io::BufWriter::new(io::stdout().lock());
    let clean = match &args.command {
        None => {
            let pricing = |home: &Home| (home.name.clone(), home.pricing());
            let homes = config.homes.iter().map(pricing).collect();
            let listing = Listing::of(&config.prices, today, args.all, homes);
            if args.json {
                listing.write_json(&mut out)?
            } else {
                listing.write_text(&mut out)?
            }
            true
        }
        Some(PricesCommand::Check(check)) => {
            let check = Check::of(&config.prices, theirs(&check.file)?, today);
            if args.json {
                check.write_json(&mut out)?
            } else {
                check.write_text(&mut out)?
            }
            check.is_clean()
        }
    };
    out.flush()?;
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn theirs(file: &Path) -> anyhow::Result<litellm::Litellm> {
    let name = || format!("LiteLLM's table {} could not be read", file.display());
    let text = read_bounded(file, litellm::LIMIT).with_context(name)?;
    litellm::read(&text).map_err(anyhow::Error::msg).with_context(name)
}
