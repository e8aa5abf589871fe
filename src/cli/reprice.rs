use clap::Args;

/// Price history anew with the table of today, and say what changed.
///
/// Only the homes that are configured, or named with --home: how others pay is
/// not known, and they keep their costs. Figures and reports follow. Counters keep the price a request had when it
/// was first read; gemgauge_cost_adjustment_usd stands beside them.
#[derive(Debug, Args)]
pub struct Reprice {
    /// As JSON
    #[arg(short = 'j', long)]
    pub json: bool,
}
