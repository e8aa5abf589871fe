use clap::Args;

/// Show what is left of each limit of a Google sign-in, when it resets, and
/// whether it lasts until then.
///
/// Google is asked only where quota is enabled, or once with --poll, which
/// says that you know: Gemini CLI's documents forbid other software to use its
/// sign-in. Otherwise what the ledger holds is shown, with exit code 1.
/// Refused requests that were seen are shown in any case.
#[derive(Debug, Args)]
pub struct Quota {
    /// Ask Google once, now
    #[arg(long)]
    pub poll: bool,

    /// Exit with 1 unless at least so many percent are known to be left of
    /// each limit shown
    #[arg(long, value_name = "PCT", value_parser = percent)]
    pub min: Option<f64>,

    /// Only limits of models whose name holds this. Repeatable
    #[arg(long, value_name = "MODEL")]
    pub model: Vec<String>,

    /// Redraw what the ledger holds in the terminal until Ctrl-C, every so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = false, default_missing_value = "5",
          value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "json")]
    pub watch: Option<u64>,

    /// As JSON, with the last week's observations
    #[arg(short = 'j', long)]
    pub json: bool,

    /// Show what the ledger holds, without reading the journals first
    #[arg(long)]
    pub no_scan: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let value = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    value
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| format!("{text} is no number from 0 to 100"))
}
