use std::path::PathBuf;

use clap::Args;

/// Compare the ledger with Google's billing export, by SKU and day.
///
/// Exits with 1 where the bill is below the ledger, which never claims more than
/// was billed. Homes with a seat are left out: they are not billed by the token.
#[derive(Debug, Args)]
pub struct Reconcile {
    /// The export as CSV, of the console or of BigQuery: its columns are the
    /// start of usage, the SKU description, usage amount, usage unit and cost
    #[arg(long, value_name = "FILE")]
    pub bill: PathBuf,

    /// The zone that days begin in; Google bills by days of US Pacific time
    #[arg(long, value_name = "ZONE", default_value = "America/Los_Angeles")]
    pub zone: String,

    /// As JSON
    #[arg(short = 'j', long)]
    pub json: bool,

    /// Compare what the ledger holds, without reading the journals first
    #[arg(long)]
    pub no_scan: bool,
}
