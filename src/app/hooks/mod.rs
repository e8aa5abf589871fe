//! Looks after the ledger's commits how the budgets stand, and tells the hooks
//! of each threshold once in a period.
//!
//! One thread looks, one more for each hook tells. None of them is waited for:
//! a receiver that is dead or slow disturbs nothing but its own notices. That a
//! threshold was told is noted in the ledger afterwards, so that a crash in
//! between tells it twice rather than never.

mod command;
mod stopper;
mod webhook;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use jiff::tz::TimeZone;

use super::clock::Clock;
use crate::config::Config;
use crate::health::Health;
use crate::ledger::budget::{Budget, Firing, Hook};
use crate::store::read::{Reader, Snapshot};
use crate::store::{StoreError, Writer, open_reader};
use crate::surfaces::budget::{Board, Line, payload, tallies};
use stopper::Stopper;

/// Between looks at whether anything was committed; that costs nothing.
const POLL: Duration = Duration::from_millis(500);

/// Between looks at the requests.
const GAP: Duration = Duration::from_secs(5);

/// How many notices wait for one hook; the rest is found again at a later look.
const QUEUE: usize = 64;

/// A notice on its way.
struct Notice {
    firing: Firing,
    payload: String,
}

/// The running threads.
pub(super) struct Hooks {
    stopper: Stopper,
    ended: Receiver<()>,
}

impl Hooks {
    /// Starts them, if there is a budget. `board` shows what they see.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(
        config: &Config,
        zone: TimeZone,
        board: Arc<Board>,
        health: &Arc<Health>,
        writer: &Writer,
        clock: Clock,
    ) -> std::io::Result<Self> {
        let stopper = Stopper::default();
        let (ends, ended) = channel();
        let hooks = Self { stopper: stopper.clone(), ended };
        if config.budgets.is_empty() {
            return Ok(hooks);
        }
        let mut tellers = Vec::new();
        if let Some(command) = config.hooks.command.clone() {
            let tell =
                move |notice: &Notice, stopper: &Stopper| command::tell(&command, notice, clock, stopper);
            tellers.push((Hook::Command, teller(Hook::Command, tell, writer, &stopper, &ends)?));
        }
        if let Some(settings) = &config.hooks.webhook {
            let webhook = webhook::Sender::new(settings.clone(), health.clone());
            let tell = move |notice: &Notice, stopper: &Stopper| webhook.tell(notice, stopper);
            tellers.push((Hook::Webhook, teller(Hook::Webhook, tell, writer, &stopper, &ends)?));
        }
        let watch = Watch {
            db: config.db.clone(),
            homes: config.homes.iter().map(|home| home.path.to_string_lossy().into_owned()).collect(),
            budgets: config.budgets.clone(),
            zone,
            board,
            tellers,
            clock,
            reader: None,
            handed: HashSet::new(),
        };
        std::thread::Builder::new().name("budgets".into()).spawn(move || {
            watch.run(&stopper);
            drop(ends);
        })?;
        Ok(hooks)
    }

    /// Ends them, and waits so long at most: what was not told by then is told
    /// after the next start.
    pub(super) fn stop(self, patience: Duration) {
        self.stopper.stop();
        // It ends when the last thread has dropped its end.
        let _ = self.ended.recv_timeout(patience);
    }
}

/// Starts the thread of one hook. `tell` says whether somebody took the
/// notice; `None`: it was stopped before that was known.
fn teller(
    hook: Hook,
    tell: impl Fn(&Notice, &Stopper) -> Option<bool> + Send + 'static,
    writer: &Writer,
    stopper: &Stopper,
    ends: &Sender<()>,
) -> std::io::Result<SyncSender<Notice>> {
    let (queue, notices) = sync_channel::<Notice>(QUEUE);
    let (writer, stopper, ends) = (writer.clone(), stopper.clone(), ends.clone());
    std::thread::Builder::new().name(hook.as_str().into()).spawn(move || {
        for notice in notices {
            if stopper.is_stopping() {
                break;
            }
            let Some(delivered) = tell(&notice, &stopper) else { break };
            // A writer that has ended notes it no more: it is told again.
            if writer.fired(notice.firing, delivered).is_err() {
                break;
            }
        }
        drop(ends);
    })?;
    Ok(queue)
}

/// Looks how the budgets stand.
struct Watch {
    db: PathBuf,
    homes: Vec<String>,
    budgets: Vec<Budget>,
    zone: TimeZone,
    board: Arc<Board>,
    tellers: Vec<(Hook, SyncSender<Notice>)>,
    clock: Clock,
    reader: Option<Reader>,
    /// What was handed to a teller in this process.
    handed: HashSet<Firing>,
}

/// What a look was based on.
struct Look {
    version: i64,
    at: Duration,
    /// Unix ms: the next period's start.
    until: i64,
    /// Whether everything could be handed over.
    complete: bool,
}

impl Watch {
    fn run(mut self, stopper: &Stopper) {
        let mut last: Option<Look> = None;
        let mut failing = false;
        loop {
            match self.look(last.as_ref()) {
                Ok(Some(look)) => {
                    last = Some(look);
                    failing = false;
                }
                Ok(None) => {}
                Err(error) => {
                    self.reader = None;
                    if !failing {
                        tracing::warn!(%error, "budgets cannot be looked at");
                    }
                    failing = true;
                }
            }
            if stopper.wait(POLL) {
                return;
            }
        }
    }

    /// Looks, if there is anything new; `None`: there is not, or history is
    /// still read.
    fn look(&mut self, last: Option<&Look>) -> Result<Option<Look>, StoreError> {
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => open_reader(&self.db)?,
        };
        let (version, now, at) = (reader.version()?, self.clock.now_ms(), self.clock.elapsed());
        let is_news = last.is_none_or(|last| {
            let changed = last.version != version || !last.complete;
            now >= last.until || changed && at.saturating_sub(last.at) >= GAP
        });
        let look = if is_news { reader.snapshot(|snapshot| self.see(snapshot, now))? } else { None };
        // A new connection counts from its own beginning, so it is kept.
        self.reader = Some(reader);
        Ok(look.map(|(until, complete)| Look { version, at, until, complete }))
    }

    /// Publishes how the budgets stand and hands over what is to be told.
    fn see(&mut self, snapshot: &Snapshot<'_>, now: i64) -> Result<Option<(i64, bool)>, StoreError> {
        let homes = snapshot.homes()?;
        let imported = |path: &String| homes.values().any(|home| home.path == *path && home.imported);
        if !self.homes.iter().all(imported) {
            return Ok(None);
        }
        let tallies = tallies(snapshot, &self.budgets, &self.zone, now)?;
        let until = tallies.iter().map(|tally| tally.span.end).min().unwrap_or(i64::MAX);
        let mut complete = true;
        for (budget, tally) in self.budgets.iter().zip(&tallies) {
            let line = Line::of(budget, tally, now);
            for threshold in &line.standing.reached {
                for (hook, queue) in &self.tellers {
                    let firing = line.firing(*threshold, *hook);
                    if self.handed.contains(&firing) || snapshot.has_fired(&firing)? {
                        continue;
                    }
                    let payload = payload(&line, &tally.contributors, *threshold, &self.zone);
                    let notice = Notice { firing: firing.clone(), payload };
                    match queue.try_send(notice) {
                        Ok(()) => drop(self.handed.insert(firing)),
                        Err(_) => complete = false,
                    }
                }
            }
        }
        self.board.publish(self.budgets.iter().cloned().zip(tallies).collect());
        Ok(Some((until, complete)))
    }
}
