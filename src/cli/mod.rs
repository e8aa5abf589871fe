//! The command line: what can be typed, one file per command.
//!
//! - **In**: the arguments of the process.
//! - **Out**: a [`Config`] and the arguments of one command, handed to `app`; an exit code.
//! - **Never**: compute, read or write anything itself, beyond printing its own
//!   man page and completions.
//! - **Look first** at [`Command`] (the commands), then [`common`] (options of them all).
//!
//! Exit codes: 0 done; 1 the answer is no or something is wrong; 2 usage.

pub mod acp;
pub mod assets;
pub mod backfill;
pub mod budget;
pub mod common;
pub mod completions;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod ingest;
pub mod man;
pub mod prices;
pub mod quota;
pub mod reconcile;
pub mod report;
pub mod reprice;
pub mod run;
pub mod serve;
pub mod status;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::app;
use crate::config::{Config, ConfigError, Env, Flags};

/// What was wrong, or the answer is no.
const FAILURE: u8 = 1;
/// The command line itself cannot be understood.
const USAGE: u8 = 2;

/// A token ledger and quota gauge for Google's Gemini CLI.
///
/// gemgauge reads the journals that Gemini CLI keeps below its home, before the
/// CLI deletes them, and keeps what every request spent in a ledger of its own.
/// A figure that may be short is printed with ≥; what nobody measured, with —.
#[derive(Debug, Parser)]
#[command(name = "gemgauge", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub common: common::Common,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(serve::Serve),
    Acp(acp::Acp),
    Report(report::Report),
    Explain(explain::Explain),
    Reconcile(reconcile::Reconcile),
    Run(run::Run),
    Export(export::Export),
    Backfill(backfill::Backfill),
    Budget(budget::Budget),
    Status(status::Status),
    Quota(quota::Quota),
    Prices(prices::Prices),
    Reprice(reprice::Reprice),
    Doctor(doctor::Doctor),
    Assets(assets::Assets),
    Completions(completions::Completions),
    Man(man::Man),
    Ingest(ingest::Ingest),
}

/// Reads the command line; prints help, version or what is wrong with it, and
/// ends the process, where that is the answer.
#[must_use]
pub fn parse() -> Cli {
    Cli::parse()
}

/// The command line as a value: for completions, the man page and tests.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// The whole program.
#[must_use]
pub fn main() -> ExitCode {
    run(parse()).unwrap_or_else(|error| {
        if is_broken_pipe(&error) {
            // Whoever read us has seen enough: `gemgauge report | head`.
            return ExitCode::SUCCESS;
        }
        eprintln!("gemgauge: {error:#}");
        let usage = error.downcast_ref::<ConfigError>().is_some_and(ConfigError::is_usage);
        ExitCode::from(if usage { USAGE } else { FAILURE })
    })
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let mut flags = cli.common.into_flags();
    match cli.command {
        Command::Serve(serve) => {
            serve.apply(&mut flags);
            app::serve(configuration(&flags)?)
        }
        Command::Acp(acp) => app::acp(&flags, &acp),
        Command::Ingest(ingest::Ingest {}) => app::catch_up(configuration(&flags)?),
        Command::Report(report) => app::report(configuration(&flags)?, &report),
        Command::Explain(explain) => app::explain(configuration(&flags)?, &explain),
        Command::Reconcile(reconcile) => app::reconcile(configuration(&flags)?, &reconcile),
        Command::Run(run) => app::run(&flags, &Env::of_process(), &run),
        Command::Export(export) => app::export(configuration(&flags)?, &export),
        Command::Backfill(backfill) => app::backfill(configuration(&flags)?, &backfill),
        Command::Budget(budget) => app::budget(configuration(&flags)?, &budget),
        Command::Status(status) => app::status(configuration(&flags)?, &status),
        Command::Quota(quota) => app::quota(configuration(&flags)?, &quota),
        Command::Prices(prices) => app::prices(configuration(&flags)?, &prices),
        Command::Reprice(reprice) => app::reprice(configuration(&flags)?, &reprice),
        Command::Doctor(doctor) => app::doctor(configuration(&flags)?, &doctor),
        Command::Assets(assets) => app::assets(configuration(&flags)?, &assets),
        Command::Completions(completions) => completions.print(&mut io::stdout().lock()),
        Command::Man(man) => man.print(&mut io::stdout().lock()),
    }
}

fn configuration(flags: &Flags) -> Result<Config, ConfigError> {
    Config::load(flags, &Env::of_process())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |io: &io::Error| io.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    fn parsed(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("gemgauge").chain(line.split_whitespace()))
    }

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn common_options_stand_before_or_after_the_command() {
        for line in
            ["--db /x --home a --home b -vv -z UTC report", "report --db /x --home a --home b -v -v -z UTC"]
        {
            let flags = parsed(line).unwrap().common.into_flags();
            assert_eq!(flags.layer.db.unwrap().to_str(), Some("/x"));
            assert_eq!((flags.homes.len(), flags.verbose), (2, 2));
            assert_eq!(flags.layer.timezone.as_deref(), Some("UTC"));
        }
    }

    #[test]
    fn serve_takes_the_flags_every_exporter_has() {
        let line = "serve --web.listen-address 127.0.0.1:1 --web.listen-address=[::1]:2 \
                    --web.telemetry-path /m --web.allow-unauthenticated --quota --log-format json";
        let cli = parsed(line).unwrap();
        let mut flags = cli.common.into_flags();
        let Command::Serve(serve) = cli.command else { panic!("serve") };
        serve.apply(&mut flags);
        let web = flags.layer.web.unwrap();
        assert_eq!(web.listen_address.unwrap()[1].to_string(), "[::1]:2");
        assert_eq!(web.telemetry_path.unwrap().as_str(), "/m");
        assert_eq!(web.allow_unauthenticated, Some(true));
        assert_eq!(flags.layer.quota.unwrap().enabled, Some(true));
    }

    #[test]
    fn a_report_says_its_kind_in_either_number() {
        for kind in ["daily", "day", "sessions", "session", "homes", "home"] {
            let Command::Report(report) = parsed(&format!("report {kind}")).unwrap().command else {
                panic!("report")
            };
            assert_eq!(report.kind, kind);
        }
        let Command::Report(report) = parsed("report").unwrap().command else { panic!("report") };
        assert_eq!(report.kind, "daily");
    }

    #[test]
    fn watching_has_a_default() {
        for (line, want) in
            [("report", None), ("report weekly --watch", Some(5)), ("report --watch 60 --chart", Some(60))]
        {
            let Command::Report(report) = parsed(line).unwrap().command else { panic!("report") };
            assert_eq!(report.watch, want, "{line}");
        }
    }

    #[test]
    fn one_format_at_a_time() {
        for (line, format) in [
            ("report", report::Format::Table),
            ("report -j", report::Format::Json),
            ("report --json", report::Format::Json),
            ("report --csv", report::Format::Csv),
            ("report --markdown", report::Format::Markdown),
            ("report --format csv", report::Format::Csv),
        ] {
            let Command::Report(report) = parsed(line).unwrap().command else { panic!("report") };
            assert_eq!(report.format(), format, "{line}");
        }
        for line in ["report --json --csv", "report --format json --markdown"] {
            assert_eq!(parsed(line).unwrap_err().kind(), ErrorKind::ArgumentConflict, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_usage() {
        for line in [
            "report yearly",
            "report --by user",
            "report --sort price",
            "report --watch 0",
            "quota --min 101",
            "quota --min -1",
            "quota --watch --json",
            "report --watch --json",
            "report --order up",
            "report --limit 0",
            "report --fromat csv",
            "serve --web.listen-address nowhere",
            "serve --web.telemetry-path metrics",
            "explain",
            "export --format xml",
            "export --grain week",
            "backfill --step 0s",
            "reconcile",
            "prices compare x",
            "prices check",
            "assets",
            "completions tcsh",
            "--log-format xml doctor",
            "frobnicate",
            "",
        ] {
            assert_eq!(parsed(line).unwrap_err().exit_code(), i32::from(USAGE), "{line}");
        }
    }

    #[test]
    fn every_option_says_what_it_is_for() {
        for command in command().get_subcommands().chain([&command()]) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{} {}", command.get_name(), arg.get_id());
            }
        }
    }

    #[test]
    fn what_a_variable_can_say_the_help_says() {
        let mut command = command();
        command.build();
        let serve = command.find_subcommand_mut("serve").unwrap();
        let help = serve.render_long_help().to_string();
        for key in crate::config::keys::KEYS {
            let Some(flag) = key.flag.filter(|flag| flag.starts_with("--")) else { continue };
            assert!(help.contains(flag) && help.contains(key.env), "{flag} {}", key.env);
        }
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&help).contains(&words(crate::config::QUOTA_RISK)), "quota Q1: {help}");
    }

    #[test]
    fn a_reader_that_has_seen_enough_is_no_failure() {
        let error =
            anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing the report");
        assert!(is_broken_pipe(&error));
        assert!(!is_broken_pipe(&anyhow::anyhow!("else")));
    }
}
