//! Where no `serve` runs, whoever sees a turn end has the journals read at
//! once: Gemini CLI deletes some of them soon (accounting 3, D2 8).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use super::clock::Clock;
use super::{lock, show};
use crate::config::{Config, Flags};

/// Starts processes of this program that bring the ledger up to date, one at a time.
pub(super) struct CatchUp {
    asks: Option<SyncSender<()>>,
    reader: Reader,
}

#[derive(Clone)]
struct Reader {
    db: PathBuf,
    arguments: Vec<OsString>,
}

impl CatchUp {
    /// `home` is looked at beside those that the flags name.
    pub(super) fn start(db: &Path, flags: &Flags, home: Option<&str>) -> Self {
        let option = |name: &str, value: &Path| [OsString::from(name), value.as_os_str().to_owned()];
        let mut arguments = vec![OsString::from("ingest")];
        let single = [("--db", &flags.layer.db), ("--config", &flags.config)];
        let prices = flags.layer.prices.as_ref().and_then(|prices| prices.file.as_deref());
        let named = single.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        let homes = flags.homes.iter().map(PathBuf::as_path).chain(home.map(Path::new));
        arguments.extend(named.chain(prices.map(|file| ("--prices", file))).flat_map(|(n, v)| option(n, v)));
        arguments.extend(homes.flat_map(|home| option("--home", home)));
        let reader = Reader { db: db.to_owned(), arguments };
        let of_thread = reader.clone();
        // One runs, one may wait: what is asked for meanwhile, the waiting one does.
        let (asks, asked) = sync_channel(1);
        let serve_asks = move || {
            while asked.recv().is_ok() {
                if let Some(mut child) = of_thread.spawn() {
                    let _ = child.wait();
                }
            }
        };
        let thread = thread::Builder::new().name("catch-up".to_owned()).spawn(serve_asks);
        Self { asks: thread.ok().map(|_| asks), reader }
    }

    /// The journals should be read now. Never waits.
    pub(super) fn ask(&self) {
        if let Some(asks) = &self.asks {
            let _ = asks.try_send(());
        }
    }

    /// The same, for the last time: this process is about to end, and the other
    /// one outlives it. Should one be running, the new one waits for it.
    pub(super) fn last(&self) {
        let _ = self.reader.spawn();
    }
}

impl Reader {
    /// A process on its own, unless a `serve` does the work.
    fn spawn(&self) -> Option<Child> {
        if lock::holder(&self.db).is_some() {
            return None;
        }
        let program = std::env::current_exe().ok()?;
        Command::new(program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()
    }
}

/// `gemgauge ingest`: brings the ledger up to date, in a session of its own, so
/// that what ends the agent does not end it.
pub(super) fn catch_up(config: &Config) -> anyhow::Result<ExitCode> {
    #[cfg(unix)]
    {
        // Whoever typed the command leads a session of one already.
        let _ = rustix::process::setsid();
    }
    lock::in_turn(&config.db, || {
        if lock::holder(&config.db).is_some() {
            return Ok(ExitCode::SUCCESS);
        }
        show::update(config, Clock::start(), &Arc::default())?;
        Ok(ExitCode::SUCCESS)
    })
}
