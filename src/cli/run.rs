use std::ffi::OsString;

use clap::Args;

/// Run a headless Gemini CLI and keep what its statistics say.
///
/// Output, exit code and signals are those of the command. The figures come
/// from `-o stream-json` or `-o json`, and they are complete: they hold what no
/// journal does. Without a command, standard input is read as such output and
/// copied out.
///
/// `gemgauge run -- gemini -p 'Sum up the changes' -o stream-json`
#[derive(Debug, Args)]
pub struct Run {
    /// What to run, after `--`; exit code 127 if it is not found, 126 if it
    /// cannot be started
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
