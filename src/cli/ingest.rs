use clap::Args;

/// Bring the ledger up to date, once, on one's own: `acp` starts this where no
/// `serve` runs.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct Ingest {}
