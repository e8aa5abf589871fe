use clap::Args;

/// Print one line for a prompt or a status bar: today, this month, and which
/// budgets are over.
///
/// The ledger is brought up to date first.
#[derive(Debug, Args)]
pub struct Status {
    /// As JSON, in one line
    #[arg(short = 'j', long)]
    pub json: bool,

    /// Show what the ledger holds, without reading the journals first
    #[arg(long)]
    pub no_scan: bool,
}
