//! History at the prices of today.

use std::collections::HashMap;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::cli;
use crate::config::Config;
use crate::store::pricing::Pricing;
use crate::store::writer::Ledger;
use crate::surfaces::money::Usd;
use crate::surfaces::reprice::{Changes, Model};

pub(super) fn reprice(config: &Config, args: &cli::reprice::Reprice) -> anyhow::Result<ExitCode> {
    let mut ledger = Ledger::open(&config.db)?;
    let mut lists = HashMap::new();
    for home in &config.homes {
        lists.insert(ledger.home(&home.path, &home.name)?.0, home.pricing().list);
    }
    let repriced = ledger.reprice(&Pricing { table: config.prices.clone(), lists })?;
    let models = repriced.models.into_iter().map(|(model, m)| Model {
        model,
        changed: m.changed,
        before_usd: Usd(m.before),
        after_usd: Usd(m.after),
        unpriced_before: m.unpriced_before,
        unpriced_after: m.unpriced_after,
    });
    let changes = Changes::new(repriced.requests, models);
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        changes.write_json(&mut out)?;
    } else {
        changes.write_text(&mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
