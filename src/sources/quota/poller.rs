//! Polls homes when it is time: [`Engine`] does, whenever it is asked to step;
//! [`Poller`] is the thread that asks it.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::files::{Stamp, stamp};
use super::home::{Home, Polled};
use super::outside::Outside;
use super::{Consent, Target, credentials};
use crate::config::{Env, Launch, Quota, settings_files};
use crate::ledger::evidence::HomeId;
use crate::ledger::quota::poll::Poll;
use crate::ledger::quota::schedule::{Event, Schedule};

/// Between looks at whether a sign-in or the settings changed.
const TICK: Duration = Duration::from_secs(5);

/// What happened to a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    pub home: HomeId,
    pub event: Event,
}

/// All homes with their schedules. It has no thread and no clock of its own.
pub struct Engine {
    outside: Outside,
    homes: Vec<Watched>,
}

struct Watched {
    home: Home,
    schedule: Schedule,
    credential: Stamps,
    settings: Stamps,
}

/// Files, and what they looked like when last seen.
struct Stamps {
    files: Vec<PathBuf>,
    seen: Vec<Option<Stamp>>,
}

impl Stamps {
    fn of(files: Vec<PathBuf>) -> Self {
        let seen = files.iter().map(|file| stamp(file)).collect();
        Self { files, seen }
    }

    /// Whether one of them was written since.
    fn changed(&mut self) -> bool {
        let now: Vec<_> = self.files.iter().map(|file| stamp(file)).collect();
        let before = std::mem::replace(&mut self.seen, now);
        self.seen != before
    }
}

impl Watched {
    fn new(target: Target, settings: &Quota, env: &Env) -> Self {
        let root = target.path.join(".gemini");
        let credential = credentials::FILES.iter().map(|name| root.join(name)).collect();
        let mut says: Vec<PathBuf> = settings_files(&target.path, env).into();
        says.extend(Launch::files(&target.path));
        Self {
            home: Home::new(target, settings.clone()),
            schedule: Schedule::default(),
            credential: Stamps::of(credential),
            settings: Stamps::of(says),
        }
    }
}

impl Engine {
    /// Two targets that are one home are polled as one.
    #[must_use]
    pub fn new(_: Consent, targets: Vec<Target>, settings: &Quota, outside: Outside) -> Self {
        let mut homes: Vec<Watched> = Vec::new();
        for target in targets {
            if homes.iter().all(|known| known.home.target().home != target.home) {
                homes.push(Watched::new(target, settings, &outside.env));
            }
        }
        let now = (outside.now)();
        for home in &mut homes {
            home.schedule.on(Event::Started, now);
        }
        Self { outside, homes }
    }

    /// Takes in what happened; a home that is not known has no schedule.
    pub fn wake(&mut self, wake: Wake) {
        let now = (self.outside.now)();
        if let Some(home) = self.homes.iter_mut().find(|known| known.home.target().home == wake.home) {
            home.on(wake.event, now);
        }
    }

    /// Looks whether a sign-in or the settings changed, and polls each home
    /// whose time has come. `go_on` is asked before each.
    pub fn step(&mut self, go_on: &dyn Fn() -> bool, sink: &mut dyn FnMut(Poll)) {
        for home in &mut self.homes {
            let now = (self.outside.now)();
            if home.settings.changed() {
                home.on(Event::SettingsChanged, now);
            }
            if home.credential.changed() {
                home.on(Event::CredentialChanged, now);
            }
            if !home.schedule.is_due(now) {
                continue;
            }
            if !go_on() {
                return;
            }
            let Polled { mut poll, outcome } = home.home.poll(&self.outside);
            home.schedule.done(outcome, poll.at, (self.outside.chance)());
            poll.next_poll_at = home.schedule.next();
            tracing::debug!(
                home = poll.home.0,
                state = poll.state.as_str(),
                asked = poll.asked,
                buckets = poll.buckets.len(),
                "quota was polled"
            );
            sink(poll);
        }
    }

    /// When the next poll is due, unix ms; `None`: not before something happens.
    #[must_use]
    pub fn next(&self) -> Option<i64> {
        self.homes.iter().filter_map(|home| home.schedule.next()).min()
    }
}

impl Watched {
    fn on(&mut self, event: Event, now: i64) {
        self.home.forget(event);
        self.schedule.on(event, now);
    }
}

/// What the thread waits for.
#[derive(Default)]
struct Inbox {
    /// Each event of each home once: it is bounded by their number.
    wakes: Vec<Wake>,
    stopping: bool,
}

#[derive(Default)]
struct Shared {
    inbox: Mutex<Inbox>,
    bell: Condvar,
}

/// The running thread.
pub struct Poller {
    waker: Waker,
    ended: Receiver<()>,
}

/// Tells the poller what happened. Cheap to clone, and never waits for a poll.
#[derive(Clone)]
pub struct Waker(Arc<Shared>);

impl Waker {
    pub fn wake(&self, wake: Wake) {
        let same_kind = |other: &Wake| {
            other.home == wake.home
                && std::mem::discriminant(&other.event) == std::mem::discriminant(&wake.event)
        };
        self.inbox(|inbox| {
            inbox.wakes.retain(|other| !same_kind(other));
            inbox.wakes.push(wake);
        });
    }

    fn inbox(&self, change: impl FnOnce(&mut Inbox)) {
        change(&mut self.0.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.bell.notify_all();
    }

    fn is_stopping(&self) -> bool {
        self.0.inbox.lock().unwrap_or_else(PoisonError::into_inner).stopping
    }

    /// Waits so long, or for a wake; `None`: it is to stop.
    fn wait(&self, duration: Duration) -> Option<Vec<Wake>> {
        let inbox = self.0.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |inbox: &mut Inbox| inbox.wakes.is_empty() && !inbox.stopping;
        let waited = self.0.bell.wait_timeout_while(inbox, duration, idle);
        let mut inbox = waited.unwrap_or_else(PoisonError::into_inner).0;
        (!inbox.stopping).then(|| std::mem::take(&mut inbox.wakes))
    }
}

impl Poller {
    /// Starts the thread. Each poll goes into `sink`, which may wait.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        consent: Consent,
        targets: Vec<Target>,
        settings: &Quota,
        outside: Outside,
        mut sink: impl FnMut(Poll) + Send + 'static,
    ) -> std::io::Result<Self> {
        let waker = Waker(Arc::default());
        let (ends, ended) = channel::<()>();
        let mut engine = Engine::new(consent, targets, settings, outside);
        let heard = waker.clone();
        std::thread::Builder::new().name("quota".into()).spawn(move || {
            loop {
                engine.step(&|| !heard.is_stopping(), &mut sink);
                let Some(wakes) = heard.wait(engine.patience()) else { break };
                for wake in wakes {
                    engine.wake(wake);
                }
            }
            drop(ends);
        })?;
        Ok(Self { waker, ended })
    }

    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    pub fn wake(&self, wake: Wake) {
        self.waker.wake(wake);
    }

    /// Ends the thread, and waits so long at most: a request under way may
    /// take longer, and its poll reaches no sink that is gone by then.
    pub fn stop(self, patience: Duration) {
        self.waker.inbox(|inbox| inbox.stopping = true);
        // It ends when the thread has dropped its end.
        let _ = self.ended.recv_timeout(patience);
    }
}

impl Engine {
    /// How long nothing needs to be looked at.
    fn patience(&self) -> Duration {
        let until = self.next().map(|at| at.saturating_sub((self.outside.now)()).max(0));
        until.map_or(TICK, |until| Duration::from_millis(until.unsigned_abs()).min(TICK))
    }
}
