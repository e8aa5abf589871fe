//! `gemgauge acp`: an agent behind the proxy.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use super::catch_up::CatchUp;
use super::clock::Clock;
use crate::cli;
use crate::config::{Config, ConfigError, Env, Flags, effective_home};
use crate::ledger::doors::{Door, DoorEvent, EventKind, Exit};
use crate::ledger::runtime;
use crate::sources::acp::observer::Observer;
use crate::sources::acp::proxy::Agent;
use crate::sources::acp::tee::{Sink, Tee};
use crate::sources::spool::{SpoolWriter, fresh_name};

/// Starts the agent, sees it to its end, and ends as it did.
pub(super) fn acp(flags: &Flags, args: &cli::acp::Acp) -> anyhow::Result<ExitCode> {
    let env = Env::of_process();
    let settings = Settings::of(flags, &env)?;
    let (program, arguments) = args.command.split_first().expect("the command line asks for one");
    let agent = match Agent::start(program, arguments) {
        Ok(agent) => agent,
        Err(error) => {
            eprintln!("gemgauge: {error}");
            return Ok(ExitCode::from(error.code()));
        }
    };
    // From here on the terminal and the connection are the agent's: not a word of ours.
    std::panic::set_hook(Box::new(|_| {}));
    let started = started(&args.command, &env);
    let sink = settings.sink(flags, &started);
    let clock = Clock::start();
    let observer = Observer::new(args.session_role.clone());
    let (tee, of_client, of_agent) = Tee::start(observer, started, Arc::new(move || clock.now_ms()), sink);
    let exit = agent.attend(of_client, of_agent);
    tee.finish(Some(exit));
    Ok(leave(exit))
}

/// Ends as the agent did.
fn leave(exit: Exit) -> ExitCode {
    #[cfg(unix)]
    return crate::sources::process::leave(exit);
    #[cfg(not(unix))]
    match exit {
        Exit::Code(code) | Exit::Signal(code) => ExitCode::from(code.to_le_bytes()[0]),
    }
}

fn started(command: &[OsString], env: &Env) -> EventKind {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let remote = runtime::is_remote(&words);
    EventKind::ProcessStarted {
        door: Door::Acp,
        home: (!remote).then(|| effective_home(env).to_string_lossy().into_owned()),
        configured_runtime: runtime::configured(&words).map(str::to_owned),
        remote,
        pid: std::process::id(),
    }
}

/// What a front door itself needs of the configuration.
pub(super) struct Settings {
    /// `None`: there is no place for a spool, and nothing is noted.
    config: Option<Config>,
    /// The file could be used, so the ledger is where it says.
    whole: bool,
}

impl Settings {
    /// A configuration file that cannot be used must not keep anybody's agent
    /// from starting: then the spool is where it is without one, and the ledger
    /// is left to those who say what is wrong.
    pub(super) fn of(flags: &Flags, env: &Env) -> Result<Self, ConfigError> {
        match Config::load(flags, env) {
            Ok(config) => Ok(Self { config: Some(config), whole: true }),
            Err(error) if error.is_usage() => Err(error),
            Err(_) => Ok(Self { config: Config::load_without_file(flags, env).ok(), whole: false }),
        }
    }

    /// Writes events to the spool, and has the journals read at the moments
    /// after which Gemini CLI may delete them.
    pub(super) fn sink(self, flags: &Flags, started: &EventKind) -> Sink {
        let Some(config) = self.config else { return Box::new(|_| {}) };
        let mut spool = SpoolWriter::create(&config.spool, &fresh_name());
        let home = match started {
            EventKind::ProcessStarted { home, .. } => home.as_deref(),
            _ => None,
        };
        let catch_up = self.whole.then(|| CatchUp::start(&config.db, flags, home));
        Box::new(move |event: DoorEvent| {
            spool.append(&event);
            let Some(catch_up) = &catch_up else { return };
            match event.kind {
                EventKind::TurnEnded { .. } | EventKind::LoadFailed { .. } => catch_up.ask(),
                EventKind::ProcessEnded { .. } => catch_up.last(),
                _ => {}
            }
        })
    }
}
