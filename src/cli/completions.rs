use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

/// Print completions for a shell.
///
/// For bash: gemgauge completions bash > ~/.local/share/bash-completion/completions/gemgauge
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

impl Completions {
    pub(super) fn print(self, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        // The generator panics where it cannot write, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), "gemgauge", &mut script);
        out.write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
