use clap::{Args, ValueEnum};

/// Write the ledger for other systems: spreadsheets, scripts, FinOps tools.
///
/// The ledger is brought up to date first. Everything in it is written unless
/// days are given: 2026-11-01, 7d, today, month and so on, as for report. FOCUS
/// has no billed cost, as gemgauge sees no invoice.
#[derive(Debug, Args)]
pub struct Export {
    /// How to write
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "csv")]
    pub format: Format,

    /// What a row sums up; hours are those of UTC, days those of --timezone
    #[arg(long, value_enum, value_name = "GRAIN", default_value = "day")]
    pub grain: Grain,

    /// The first day [default: all]
    #[arg(short = 's', long, value_name = "DAY")]
    pub since: Option<String>,

    /// The last day [default: today]
    #[arg(short = 'u', long, value_name = "DAY")]
    pub until: Option<String>,

    /// Only this project. Repeatable
    #[arg(long, value_name = "NAME")]
    pub project: Vec<String>,

    /// Only this model. Repeatable
    #[arg(long, value_name = "NAME")]
    pub model: Vec<String>,

    /// Export what the ledger holds, without reading the journals first
    #[arg(long)]
    pub no_scan: bool,
}

/// How an export is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Focus,
    Csv,
    Jsonl,
}

/// What a row of an export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Grain {
    Request,
    Hour,
    Day,
}
