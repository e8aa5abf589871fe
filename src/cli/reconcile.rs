use std::path::PathBuf;

use clap::Args;

/// The sources of a session side by side, or the ledger against Google's bill.
///
/// With a session: turn by turn what each source said, and what the figures hold
/// above the journal, by cause. With a bill: by SKU and day. Exits with 1 where the bill is below the ledger, which never claims more than
/// was billed. Homes with a seat are left out: they are not billed by the token.
#[derive(Debug, Args)]
pub struct Reconcile {
    /// A session id, the beginning of one, or `latest`
    #[arg(value_name = "SESSION", required_unless_present = "bill", conflicts_with = "bill")]
    pub session: Option<String>,

    /// The billing export as CSV, of the console or of BigQuery: its columns are the
    /// start of usage, the SKU description, usage amount, usage unit and cost
    #[arg(long, value_name = "FILE")]
    pub bill: Option<PathBuf>,

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
