//! From the journals into the ledger: once, or for as long as `serve` runs.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

use anyhow::Context;

use super::clock::Clock;
use super::spools::{Spools, StaleSpool};
use crate::config::Config;
use crate::health::Health;
use crate::ledger::doors::SpoolCursor;
use crate::ledger::evidence::{HomeId, JournalStep, ProjectFact};
use crate::ledger::telemetry::OutfileCursor;
use crate::sources::journal::Limits;
use crate::sources::journal::scan::{Closed, JournalSource, Seen, Sink};
use crate::sources::journal::watch::{Wake, Watch};
use crate::sources::otlp::outfile::{self, Outfiles};
use crate::sources::spool::Seen as SpoolsSeen;
use crate::store::pricing::Pricing;
use crate::store::writer::{Ledger, WriterEvents, WriterThread};
use crate::store::{Stale, StoreError, Writer, WriterSettings};

/// A session that had news within this time makes scans frequent, in ms.
const ACTIVE_MS: i64 = 5 * 60 * 1000;

/// Scans that events ask for are at least this far apart.
const SCAN_GAP: Duration = Duration::from_millis(100);

/// How many wake-ups wait; more than that is one scan.
const WAKES: usize = 1024;

/// A journal source connected to a ledger's writer.
pub struct Ingest {
    source: JournalSource,
    writer: Writer,
    thread: WriterThread,
    stale: Receiver<Stale>,
    spools: Spools,
    outfiles: Outfiles,
    stale_outfiles: Receiver<(PathBuf, OutfileCursor)>,
    homes: Vec<(HomeId, String)>,
    imported: bool,
    health: Arc<Health>,
    clock: Clock,
    stopping: Arc<AtomicBool>,
}

impl Ingest {
    /// Registers the homes and starts the writer. While it is `patient`, it
    /// waits for a ledger that cannot be written for now.
    ///
    /// # Errors
    /// What keeps the ledger from being used.
    pub fn start(
        config: &Config,
        mut ledger: Ledger,
        health: Arc<Health>,
        clock: Clock,
        patient: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let mut homes = Vec::new();
        let mut known = Vec::new();
        let mut lists = HashMap::new();
        for home in &config.homes {
            let (id, name) = ledger.home(&home.path, &home.name)?;
            known.extend(ledger.journals(id)?);
            health.home_ok(&name);
            lists.insert(id, home.pricing().list);
            homes.push((id, home.path.clone(), name));
        }
        let pricing = Pricing { table: config.prices.clone(), lists };
        let (stale_sender, stale) = channel();
        let (spools, stale_spools) = Spools::new(config.spool.clone(), ledger.spools()?);
        let (outfile_sender, stale_outfiles) = channel();
        let held: HashMap<PathBuf, OutfileCursor> = ledger.outfiles()?.into_iter().collect();
        let outfiles = config.outfiles().into_iter().map(|path| {
            let cursor = held.get(&path).cloned().unwrap_or_default();
            (path, cursor)
        });
        let outfiles = Outfiles::new(outfiles, outfile::Limits::default());
        let events = Arc::new(Events {
            health: health.clone(),
            stale: stale_sender,
            stale_spools,
            stale_outfiles: outfile_sender,
        });
        let settings = WriterSettings {
            max_tuples: config.metrics.max_tuples,
            pricing,
            patient: Arc::new(patient),
            clock: Arc::new(move || clock.now_ms()),
            stopwatch: Arc::new(move || clock.elapsed()),
        };
        let (writer, thread) = ledger.start(settings, events);
        let limits = Limits {
            max_file_bytes: config.journals.max_file_bytes,
            max_line_bytes: usize::try_from(config.journals.max_line_bytes).unwrap_or(usize::MAX),
            strict: config.strict,
            ..Limits::default()
        };
        let roots: Vec<(HomeId, PathBuf)> = homes.iter().map(|(id, path, _)| (*id, path.clone())).collect();
        let source = JournalSource::new(roots, limits, known);
        let homes = homes.into_iter().map(|(id, _, name)| (id, name)).collect();
        Ok(Self {
            source,
            writer,
            thread,
            stale,
            spools,
            outfiles,
            stale_outfiles,
            homes,
            imported: false,
            health,
            clock,
            stopping: Arc::default(),
        })
    }

    /// The homes of this configuration, as the ledger knows them.
    #[must_use]
    pub fn homes(&self) -> Vec<HomeId> {
        self.homes.iter().map(|(home, _)| *home).collect()
    }

    /// A handle on the ledger's writer.
    #[must_use]
    pub fn writer(&self) -> Writer {
        self.writer.clone()
    }

    /// Brings the ledger up to date.
    ///
    /// # Errors
    /// What kept it from being written.
    pub fn once(mut self) -> anyhow::Result<()> {
        // Another process may read the same journals: its word is taken, then looked again.
        for _ in 0..10 {
            if self.scan().is_err() {
                break;
            }
            let flushed = self.writer.flush();
            if flushed.is_err() || !self.take_stale() {
                break;
            }
        }
        let flushed = self.writer.flush();
        self.writer.stop();
        self.thread.join().context("the ledger was not brought up to date")?;
        flushed.map_err(anyhow::Error::msg)
    }

    /// Looks at everything and hands over what is new.
    fn scan(&mut self) -> Result<Seen, Closed> {
        // Doors first: a request that one of them claims is no orphan.
        let spools = self.spools()?;
        let writer = &self.writer;
        self.outfiles.look(self.clock.now_ms(), &mut |step| writer.outfile(step).map_err(|_| Closed))?;
        let begun = self.clock.now_ms();
        let mut sink = ToWriter(&self.writer, &self.health, self.clock, &self.stopping);
        let mut seen = self.source.scan(begun, &mut sink)?;
        seen.newest_ms = seen.newest_ms.max(spools.newest_ms);
        if self.spools.dir().is_dir() {
            seen.watch.push(self.spools.dir().to_owned());
        }
        for home in &seen.homes {
            let Some((_, name)) = self.homes.iter().find(|(id, _)| *id == home.home) else { continue };
            match home.unread.first() {
                None => self.health.home_ok(name),
                Some((path, error)) => {
                    self.health.home_degraded(name, format!("{}: {error}", path.display()))
                }
            }
        }
        self.health.journal.lag_bytes.set(seen.lag_bytes);
        self.health.journal.up.set(seen.homes.iter().all(|home| home.unread.is_empty()));
        if !self.imported {
            for (home, _) in &self.homes {
                self.writer.imported(*home).map_err(|_| Closed)?;
            }
            self.imported = true;
        }
        for (home, _) in &self.homes {
            self.writer.scanned(*home, begun).map_err(|_| Closed)?;
        }
        Ok(seen)
    }

    /// Hands over what is new in the spools.
    fn spools(&mut self) -> Result<SpoolsSeen, Closed> {
        let spools = self.spools.scan(&self.writer, self.clock.now_ms())?;
        for (path, error) in &spools.unread {
            tracing::warn!(path = %path.display(), %error, "a spool cannot be read");
        }
        self.health.spool.up.set(spools.unread.is_empty());
        if let Some(at) = spools.newest_ms {
            self.health.spool.last_event.advance(at);
        }
        Ok(spools)
    }

    /// Takes the ledger's word on journals that another process read.
    fn take_stale(&mut self) -> bool {
        let mut any = false;
        while let Ok((path, cursor, condition)) = self.stale.try_recv() {
            self.source.reset(path, cursor, condition);
            any = true;
        }
        while let Ok((path, cursor)) = self.stale_outfiles.try_recv() {
            self.outfiles.reset(path, cursor);
            any = true;
        }
        any | self.spools.take_stale()
    }

    /// Scans and follows events until told to stop.
    pub fn run(mut self, config: &Config, stop: &Stop) -> Result<(), StoreError> {
        self.stopping = stop.stopping.clone();
        let waker = stop.waker.clone();
        let mut watch =
            if config.journals.watch { Watch::start(move |wake| waker.wake(wake)) } else { Watch::off() };
        let mut warned = None;
        let mut scan = true;
        let mut interval = config.journals.rescan;
        let mut scanned_at = Duration::ZERO;
        while !stop.stopping.load(Ordering::Acquire) {
            if scan {
                let Ok(seen) = self.scan() else { break };
                scanned_at = self.clock.elapsed();
                // What happened in a directory before it was watched, only a scan sees.
                scan = watch.follow(&seen.watch);
                self.health.journal.watch_fallback.set(watch.failure().is_some());
                if warned.as_deref() != watch.failure() {
                    warned = watch.failure().map(str::to_owned);
                    if let Some(failure) = &warned {
                        tracing::warn!(%failure, "watching failed; journals are looked at periodically");
                    }
                }
                let active = seen.newest_ms.is_some_and(|at| self.clock.now_ms() - at < ACTIVE_MS);
                interval = if active { config.journals.rescan } else { config.journals.idle_rescan };
            }
            scan |= self.take_stale();
            if scan {
                continue;
            }
            scan = match stop.wakes(interval) {
                Wakes::Timeout => true,
                Wakes::Some(wakes) => {
                    let Ok(scan) = self.hints(wakes) else { break };
                    scan
                }
            };
            let since = self.clock.elapsed().saturating_sub(scanned_at);
            if scan && since < SCAN_GAP {
                std::thread::sleep(SCAN_GAP - since);
            }
        }
        self.health.journal.up.set(false);
        self.writer.stop();
        self.thread.join()
    }

    /// Looks at what events named; `true` where a scan is needed.
    fn hints(&mut self, wakes: HashSet<Wake>) -> Result<bool, Closed> {
        let mut scan = false;
        // Doors first: the prompt of a new record may be among what they say.
        if wakes.iter().any(|wake| matches!(wake, Wake::Look(_))) {
            self.spools()?;
        }
        for wake in wakes {
            scan |= match wake {
                Wake::Scan => true,
                Wake::Look(path) => {
                    let mut sink = ToWriter(&self.writer, &self.health, self.clock, &self.stopping);
                    self.source.hint(&path, self.clock.now_ms(), &mut sink)?
                }
            };
        }
        self.health.journal.lag_bytes.set(self.source.lag_bytes());
        Ok(scan)
    }
}

/// Hands evidence to the writer until the process is to end: a long import
/// goes on at the next start.
struct ToWriter<'a>(&'a Writer, &'a Health, Clock, &'a AtomicBool);

impl Sink for ToWriter<'_> {
    fn project(&mut self, fact: ProjectFact) -> Result<(), Closed> {
        self.0.project(fact).map_err(|_| Closed)
    }

    fn step(&mut self, step: JournalStep) -> Result<(), Closed> {
        if self.3.load(Ordering::Acquire) {
            return Err(Closed);
        }
        if step.bytes > 0 {
            self.1.journal.last_event.advance(self.2.now_ms());
        }
        self.0.step(step).map_err(|_| Closed)
    }
}

/// Moves the instruments as the writer works.
struct Events {
    health: Arc<Health>,
    stale: Sender<Stale>,
    stale_spools: Sender<StaleSpool>,
    stale_outfiles: Sender<(PathBuf, OutfileCursor)>,
}

impl WriterEvents for Events {
    fn committed(&self, took: Duration) {
        self.health.writer.commits.observe(took);
    }

    fn changed(&self) {
        self.health.writer.changed.ring();
    }

    fn blocked(&self, error: Option<&StoreError>) {
        let was = self.health.writer.blocked.get();
        self.health.writer.blocked.set(error.is_some());
        if was != error.is_some() {
            self.health.writer.changed.ring();
        }
        match error {
            Some(error) if !was => tracing::error!(%error, "the ledger cannot be written"),
            None if was => tracing::info!("the ledger can be written again"),
            _ => {}
        }
    }

    fn queued(&self) {
        self.health.writer.queue_length.add(1);
    }

    fn taken(&self, messages: usize) {
        self.health.writer.queue_length.sub(messages as u64);
    }

    fn stale(&self, stale: Stale) {
        // Nobody looks any more where the source ended.
        let _ = self.stale.send(stale);
    }

    fn stale_spool(&self, name: Arc<str>, cursor: SpoolCursor) {
        let _ = self.stale_spools.send((name, cursor));
    }

    fn stale_outfile(&self, path: PathBuf, cursor: OutfileCursor) {
        let _ = self.stale_outfiles.send((path, cursor));
    }
}

/// Wakes the source; bounded, as what does not fit becomes one scan.
#[derive(Clone)]
struct Waker {
    sender: SyncSender<Wake>,
    overflow: Arc<AtomicBool>,
}

impl Waker {
    fn wake(&self, wake: Wake) {
        if let Err(TrySendError::Full(_)) = self.sender.try_send(wake) {
            self.overflow.store(true, Ordering::Release);
        }
    }
}

/// How a running source is woken and stopped.
pub struct Stop {
    waker: Waker,
    wakes: Receiver<Wake>,
    stopping: Arc<AtomicBool>,
}

/// Ends a running source.
#[derive(Clone)]
pub struct StopHandle {
    waker: Waker,
    stopping: Arc<AtomicBool>,
}

impl StopHandle {
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.waker.wake(Wake::Scan);
    }

    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

enum Wakes {
    Timeout,
    Some(HashSet<Wake>),
}

impl Stop {
    #[must_use]
    pub fn new() -> (Self, StopHandle) {
        let (sender, wakes) = sync_channel(WAKES);
        let waker = Waker { sender, overflow: Arc::default() };
        let stopping = Arc::<AtomicBool>::default();
        let handle = StopHandle { waker: waker.clone(), stopping: stopping.clone() };
        (Self { waker, wakes, stopping }, handle)
    }

    /// What woke the source, each once; a timeout where nothing did.
    fn wakes(&self, timeout: Duration) -> Wakes {
        let first = match self.wakes.recv_timeout(timeout) {
            Ok(wake) => wake,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Wakes::Timeout,
        };
        let mut wakes = HashSet::from([first]);
        wakes.extend(self.wakes.try_iter());
        if self.waker.overflow.swap(false, Ordering::AcqRel) {
            wakes.insert(Wake::Scan);
        }
        Wakes::Some(wakes)
    }
}
