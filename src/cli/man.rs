use std::io::Write;
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;

/// Print the man page, of gemgauge or of one command.
///
/// To read it: gemgauge man report | man -l -
#[derive(Debug, Args)]
pub struct Man {
    /// A command, such as report
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

impl Man {
    pub(super) fn print(self, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        let mut root = super::Cli::command();
        root.build();
        let page = match self.command {
            None => Page::new(root),
            Some(name) => match root.find_subcommand(&name) {
                Some(command) => Page::new(command.clone()).title(format!("gemgauge-{name}")),
                None => anyhow::bail!("there is no command `{name}`; see gemgauge --help"),
            },
        };
        page.render(out)?;
        Ok(ExitCode::SUCCESS)
    }
}
