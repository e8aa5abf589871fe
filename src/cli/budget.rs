use clap::Args;

/// Show what was spent of each budget, what is left, the pace and a forecast.
///
/// Budgets stand in the configuration file. The ledger is brought up to date
/// first. Where what was spent may be more (≥), what is left is at most (≤)
/// what is shown. There is no forecast before 3 % of the period.
#[derive(Debug, Args)]
pub struct Budget {
    /// Exit with 1 if more was spent for certain than a budget allows, or if
    /// there is no budget
    #[arg(long)]
    pub check: bool,

    /// As JSON
    #[arg(short = 'j', long)]
    pub json: bool,

    /// Show what the ledger holds, without reading the journals first
    #[arg(long)]
    pub no_scan: bool,
}
