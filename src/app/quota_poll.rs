//! The thread that polls quota while `serve` runs, and what wakes it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::clock::Clock;
use crate::config::{Config, Env, Home};
use crate::ledger::evidence::HomeId;
use crate::ledger::quota::poll::Poll;
use crate::sources::quota::{self, Consent, Event, Outside, Poller, Target, Wake, Waker};
use crate::store::{Writer, open_reader};
use crate::surfaces::metrics::sessions;

/// Between looks at what may wake the poller.
const LOOK: Duration = Duration::from_secs(2);

/// Polling as configured, with the thread that tells it what happens.
pub(super) struct QuotaPoll {
    poller: Option<Poller>,
    stopping: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

fn targets(homes: &[(HomeId, PathBuf)]) -> Vec<Target> {
    homes.iter().map(|(home, path)| Target { home: *home, path: path.clone() }).collect()
}

fn outside(clock: Clock) -> Outside {
    Outside::of_system(Env::of_process(), move || clock.now_ms())
}

impl QuotaPoll {
    /// Starts polling, where the configuration says so.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(
        config: &Config,
        homes: &[(HomeId, PathBuf)],
        writer: &Writer,
        clock: Clock,
    ) -> std::io::Result<Self> {
        let stopping = Arc::<AtomicBool>::default();
        let Some(consent) = Consent::configured(&config.quota) else {
            // A home that nobody ever asked for is off, and what was seen of others ages.
            return Ok(Self { poller: None, stopping, watcher: None });
        };
        let sink = {
            let writer = writer.clone();
            move |poll: Poll| drop(writer.poll(poll))
        };
        let poller = Poller::start(consent, targets(homes), &config.quota, outside(clock), sink)?;
        let mut watch = Watch {
            db: config.db.clone(),
            waker: poller.waker(),
            clock,
            homes: homes.iter().map(|(home, _)| (*home, None)).collect(),
        };
        // Before anybody can post what a later look would take for old.
        watch.step();
        let stop = stopping.clone();
        let watcher =
            std::thread::Builder::new().name("quota-wakes".into()).spawn(move || watch.run(&stop))?;
        Ok(Self { poller: Some(poller), stopping, watcher: Some(watcher) })
    }

    pub(super) fn stop(self, patience: Duration) {
        self.stopping.store(true, Ordering::Release);
        if let Some(watcher) = self.watcher {
            watcher.thread().unpark();
            // A panic there was logged when it happened.
            let _ = watcher.join();
        }
        if let Some(poller) = self.poller {
            poller.stop(patience);
        }
    }
}

/// What was last seen of a home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    live: bool,
    /// Turns that ended, and requests refused.
    ended: u64,
    refused: u64,
}

impl Seen {
    /// What is new since the last look. What the first one finds happened
    /// before, and the poll at start answers it (quota Q2).
    fn since(self, was: Option<Self>) -> impl Iterator<Item = Event> {
        let before = was.unwrap_or(Self { live: false, ..self });
        let sessions = (self.live != before.live).then_some(Event::Sessions { live: self.live });
        let ended = (self.ended > before.ended).then_some(Event::TurnEnded);
        let refused = (self.refused > before.refused).then_some(Event::Refused);
        [sessions, ended, refused].into_iter().flatten()
    }
}

/// Looks at the ledger for what moves the next poll (quota Q2).
struct Watch {
    db: PathBuf,
    waker: Waker,
    clock: Clock,
    /// `None`: not looked at yet.
    homes: BTreeMap<HomeId, Option<Seen>>,
}

impl Watch {
    fn run(mut self, stopping: &AtomicBool) {
        while !stopping.load(Ordering::Acquire) {
            std::thread::park_timeout(LOOK);
            self.step();
        }
    }

    fn step(&mut self) {
        // A ledger that cannot be read for now is looked at again.
        let Ok(seen) = self.look() else { return };
        for (home, is) in seen {
            let was = self.homes.insert(home, Some(is)).flatten();
            for event in is.since(was) {
                tracing::debug!(home = home.0, ?event, "something may move the next poll of quota");
                self.waker.wake(Wake { home, event });
            }
        }
    }

    fn look(&self) -> Result<BTreeMap<HomeId, Seen>, crate::store::StoreError> {
        let now = self.clock.now_ms();
        open_reader(&self.db)?.snapshot(|snapshot| {
            let mut seen: BTreeMap<HomeId, Seen> =
                self.homes.keys().map(|home| (*home, Seen::default())).collect();
            for home in snapshot.homes_in_use(sessions::window(now))? {
                seen.entry(HomeId(home)).or_default().live = true;
            }
            for (home, ended, refused) in snapshot.quota_wakes()? {
                let seen = seen.entry(HomeId(home)).or_default();
                (seen.ended, seen.refused) = (ended, refused);
            }
            Ok(seen)
        })
    }
}

/// Asks once for each of these homes, now; what cannot be asked is a state.
pub(super) fn poll_once(config: &Config, homes: &[(HomeId, &Home)], clock: Clock) -> Vec<Poll> {
    let outside = outside(clock);
    let target = |(home, of): &(HomeId, &Home)| Target { home: *home, path: of.path.clone() };
    homes
        .iter()
        .map(|home| quota::poll_once(target(home), Consent::by_flag(), &config.quota, &outside))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q2_what_happened_before_the_first_look_wakes_nobody() {
        let events = |is: Seen, was| is.since(was).collect::<Vec<_>>();
        let old = Seen { live: false, ended: 7, refused: 2 };
        assert_eq!(events(old, None), []);
        let live = Seen { live: true, ..old };
        assert_eq!(events(live, None), [Event::Sessions { live: true }]);
        assert_eq!(events(live, Some(live)), []);
        assert_eq!(events(old, Some(live)), [Event::Sessions { live: false }]);
        let more = Seen { live: true, ended: 8, refused: 3 };
        assert_eq!(events(more, Some(live)), [Event::TurnEnded, Event::Refused]);
        // Refusals of long ago are dropped.
        assert_eq!(events(Seen { refused: 0, ..live }, Some(live)), []);
    }
}
