use clap::Args;

/// Show one session: every request, who saw it, and why its figure is what it is.
#[derive(Debug, Args)]
pub struct Explain {
    /// The session's id, the beginning of it, or `latest`
    #[arg(value_name = "SESSION|latest")]
    pub session: String,

    /// As JSON
    #[arg(short = 'j', long)]
    pub json: bool,
}
