use std::path::PathBuf;

use clap::Args;

/// Write what runs gemgauge elsewhere: dashboards, rules, units, compose, Kubernetes.
///
/// Each file that is written is named. One that is there and differs stays as
/// it is without --force, and the exit code is 1.
#[derive(Debug, Args)]
pub struct Assets {
    /// Where to write; made where it is missing
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Overwrite files that differ
    #[arg(long)]
    pub force: bool,
}
