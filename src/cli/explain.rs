use clap::Args;

/// Show one session: every request, who saw it, and why its figure is what it
/// is. Or one day: what drove it against the median of the week before.
#[derive(Debug, Args)]
pub struct Explain {
    /// The session's id, the beginning of it, or `latest`; or a day: 2026-11-30,
    /// `today` or `yesterday`
    #[arg(value_name = "SESSION|latest|DAY")]
    pub session: String,

    /// As JSON
    #[arg(short = 'j', long)]
    pub json: bool,
}
