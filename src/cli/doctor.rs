use clap::Args;

/// Say what is found where, what is missing and what to do.
///
/// Exits with 1 if something is wrong; a home that does not exist yet is not.
#[derive(Debug, Args)]
pub struct Doctor {
    /// As JSON
    #[arg(short = 'j', long)]
    pub json: bool,
}
