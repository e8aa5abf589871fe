use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};

/// Print what was spent: by day, session, model, project or home.
///
/// The ledger is brought up to date first. Both ends of a range are included.
/// Days: 2026-11-01, 20261101, 7d (seven days with today), today, yesterday,
/// week, last-week, month, last-month, 30d, all.
#[derive(Debug, Args)]
pub struct Report {
    /// What a row is
    #[arg(value_name = "KIND", default_value = "daily", value_parser = kinds())]
    pub kind: String,

    /// The first day [default: 30d; for sessions 7d]
    #[arg(short = 's', long, value_name = "DAY", help_heading = "Range and filters")]
    pub since: Option<String>,

    /// The last day [default: today]
    #[arg(short = 'u', long, value_name = "DAY", help_heading = "Range and filters")]
    pub until: Option<String>,

    /// Only this project. Repeatable
    #[arg(long, value_name = "NAME", help_heading = "Range and filters")]
    pub project: Vec<String>,

    /// Only this model. Repeatable
    #[arg(long, value_name = "NAME", help_heading = "Range and filters")]
    pub model: Vec<String>,

    /// Only this session, by its id or the beginning of it. Repeatable
    #[arg(long, value_name = "ID", help_heading = "Range and filters")]
    pub session: Vec<String>,

    /// Leave out this project, model or session. Repeatable
    #[arg(long, value_name = "NAME", help_heading = "Range and filters")]
    pub exclude: Vec<String>,

    /// Sessions without requests too
    #[arg(long, help_heading = "Range and filters")]
    pub all: bool,

    /// Break every row down. Repeatable, or separated by commas
    #[arg(long, value_name = "DIMENSION", value_delimiter = ',', value_parser = dimensions(), help_heading = "Rows")]
    pub by: Vec<String>,

    /// The same as --by model
    #[arg(short = 'b', long, help_heading = "Rows")]
    pub breakdown: bool,

    /// Sort rows by a column [default: days by date, sessions by their last
    /// request, others by cost, then tokens]
    #[arg(long, value_name = "COLUMN", value_parser = columns(), help_heading = "Rows")]
    pub sort: Option<String>,

    /// Sort up or down
    #[arg(long, value_name = "ORDER", value_parser = PossibleValuesParser::new(["asc", "desc"]), help_heading = "Rows")]
    pub order: Option<String>,

    /// At most this many rows; the rest is summed up in one
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Rows")]
    pub limit: Option<u64>,

    /// Tokens only
    #[arg(long, help_heading = "Rows")]
    pub no_cost: bool,
    /// Classes by prompt results and journals alone: to the letter of Sortie's documented rule
    #[arg(long)]
    pub strict: bool,

    /// Few columns
    #[arg(long, help_heading = "Rows")]
    pub compact: bool,

    /// How to print
    #[arg(
        long = "format",
        value_enum,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    pub format: Format,

    /// The same as --format json
    #[arg(short = 'j', long, conflicts_with_all = ["format", "csv", "markdown"], help_heading = "Output")]
    pub json: bool,

    /// The same as --format csv
    #[arg(long, conflicts_with_all = ["format", "markdown"], help_heading = "Output")]
    pub csv: bool,

    /// The same as --format markdown
    #[arg(long, conflicts_with_all = ["format"], help_heading = "Output")]
    pub markdown: bool,

    /// A bar after each row: what it cost, or its tokens where nothing is priced.
    /// For days, weeks and months
    #[arg(long, help_heading = "Output")]
    pub chart: bool,

    /// Redraw the table every so many seconds, the ledger brought up to date
    /// each time, until Ctrl-C
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        default_missing_value = "5",
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        conflicts_with_all = ["json", "csv", "markdown"],
        help_heading = "Output"
    )]
    pub watch: Option<u64>,

    /// Report what the ledger holds, without reading the journals first
    #[arg(long)]
    pub no_scan: bool,
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
    Csv,
    Markdown,
}

impl Report {
    /// The format asked for, in whichever of its spellings.
    #[must_use]
    pub fn format(&self) -> Format {
        match self {
            Self { json: true, .. } => Format::Json,
            Self { csv: true, .. } => Format::Csv,
            Self { markdown: true, .. } => Format::Markdown,
            _ => self.format,
        }
    }
}

fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new([
        PossibleValue::new("daily").aliases(["day", "days"]),
        PossibleValue::new("weekly").aliases(["week", "weeks"]),
        PossibleValue::new("monthly").aliases(["month", "months"]),
        PossibleValue::new("sessions").alias("session"),
        PossibleValue::new("models").alias("model"),
        PossibleValue::new("projects").alias("project"),
        PossibleValue::new("homes").alias("home"),
    ])
}

fn dimensions() -> PossibleValuesParser {
    PossibleValuesParser::new(["project", "model", "role", "home", "class"])
}

fn columns() -> PossibleValuesParser {
    PossibleValuesParser::new([
        PossibleValue::new("key"),
        PossibleValue::new("time"),
        PossibleValue::new("requests"),
        PossibleValue::new("fresh").alias("uncached_input"),
        PossibleValue::new("cached").alias("cached_input"),
        PossibleValue::new("tool").alias("tool_input"),
        PossibleValue::new("output"),
        PossibleValue::new("thoughts"),
        PossibleValue::new("total").alias("tokens"),
        PossibleValue::new("cost").alias("cost_usd"),
    ])
}
