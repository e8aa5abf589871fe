//! The one thread that writes: takes evidence from a bounded queue, commits
//! it in batches, keeps what it cannot write yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::apply::{Applied, Applier};
use super::doors::{self, Spooled};
use super::fresh::Fresh;
use super::pricing::{self, Pricing, Repriced};
use super::{StoreError, hooks, journals, names, open, quota, telemetry};
use crate::ledger::budget::Firing;
use crate::ledger::doors::{Posted, PostedBatch, SpoolCursor, SpoolStep};
use crate::ledger::evidence::{Condition, Cursor, HomeId, JournalPath, JournalStep, ProjectFact};
use crate::ledger::quota::poll::Poll;
use crate::ledger::quota::refusal::Rejected;
use crate::ledger::telemetry::{OutfileCursor, OutfileStep, TelemetryBatch};

/// How many messages wait at most: sources block behind them.
const QUEUE: usize = 64;

/// How many messages and requests one transaction takes at most: an import
/// touches every page of an index each time, so it commits rarely.
const BATCH: usize = 1024;
const BATCH_REQUESTS: usize = 16 * 1024;

/// How long a failed commit waits before it is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// A journal whose cursor another process moved: the ledger's word on it.
pub type Stale = (JournalPath, Cursor, Condition);

/// What the writer tells whoever watches it.
pub trait WriterEvents: Send + Sync {
    /// A transaction committed; it took so long.
    fn committed(&self, took: Duration);
    /// It changed a row; whoever shows nothing need not know.
    fn changed(&self) {}
    /// The ledger cannot be written for now; `None`: it can again.
    fn blocked(&self, error: Option<&StoreError>);
    /// A message waits.
    fn queued(&self);
    /// So many messages wait no longer.
    fn taken(&self, messages: usize);
    /// A step was refused by compare-and-set.
    fn stale(&self, stale: Stale);
    /// The same of a spool's; whoever reads none need not know.
    fn stale_spool(&self, _name: Arc<str>, _cursor: SpoolCursor) {}
    /// The same of an outfile's.
    fn stale_outfile(&self, _path: PathBuf, _cursor: OutfileCursor) {}
}

/// How the writer works.
#[derive(Clone)]
pub struct WriterSettings {
    /// Most label sets a home's counters have.
    pub max_tuples: u64,
    /// What requests cost when they are first read.
    pub pricing: Pricing,
    /// Whether to wait and try again what failed for now; otherwise the failure
    /// ends the writer. Asked each time: whoever stops the service waits for no disk.
    pub patient: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Unix milliseconds.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Time since any fixed moment, for the commit duration.
    pub stopwatch: Arc<dyn Fn() -> Duration + Send + Sync>,
}

enum Message {
    Project(ProjectFact),
    Step(Box<JournalStep>),
    Imported(HomeId),
    Poll(Box<Poll>),
    Rejected(Box<Rejected>),
    Fired {
        firing: Firing,
        delivered: bool,
    },
    Spool(Box<SpoolStep>),
    Posted(PostedBatch, SyncSender<Posted>),
    Telemetry(TelemetryBatch, SyncSender<()>),
    Outfile(Box<OutfileStep>),
    /// All journals of a home were read to their ends in a scan begun then.
    Scanned(HomeId, i64),
    Flush(SyncSender<Result<(), String>>),
    Stop,
}

/// A handle on the writer thread; dropping the last one lets it finish.
#[derive(Clone)]
pub struct Writer {
    queue: SyncSender<Message>,
    events: Arc<dyn WriterEvents>,
}

/// The thread behind [`Writer`]; joins after [`Writer::stop`].
pub struct WriterThread {
    thread: JoinHandle<Result<(), StoreError>>,
}

impl WriterThread {
    /// Waits for the thread.
    ///
    /// # Errors
    /// What ended it early.
    pub fn join(self) -> Result<(), StoreError> {
        self.thread.join().unwrap_or(Err(StoreError::Stopped))
    }
}

/// A ledger opened for writing, before its thread starts.
pub struct Ledger {
    connection: Connection,
    path: PathBuf,
    fresh: Option<Fresh>,
}

impl Ledger {
    /// Opens, creates or migrates the ledger's file.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the file and what to do.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let mut connection = open::open_writer(path)?;
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let fresh = Fresh::of(&tx)?;
        tx.commit()?;
        Ok(Self { connection, path: path.to_owned(), fresh })
    }

    /// Registers a home; its name is given once and made unique.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn home(&mut self, path: &Path, name: &str) -> Result<(HomeId, String), StoreError> {
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let home = names::home(&tx, &path.to_string_lossy(), name)?;
        tx.commit()?;
        Ok(home)
    }

    /// The journals of a home with their cursors.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn journals(&self, home: HomeId) -> Result<Vec<Stale>, StoreError> {
        journals::all(&self.connection, home)
    }

    /// The spools that the ledger knows, with how far they were read.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn spools(&self) -> Result<Vec<(Arc<str>, SpoolCursor)>, StoreError> {
        doors::spools(&self.connection)
    }

    /// The outfiles that the ledger knows, with how far they were read.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn outfiles(&self) -> Result<Vec<(PathBuf, OutfileCursor)>, StoreError> {
        telemetry::outfiles(&self.connection)
    }

    /// Notes that the telemetry receiver is there from now on.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn listens(&self, now_ms: i64) -> Result<(), StoreError> {
        telemetry::listens(&self.connection, now_ms)
    }

    /// Prices every request of the homes that `pricing` names anew: figures
    /// follow, counters keep the first price.
    ///
    /// # Errors
    /// What SQLite says; then nothing was changed.
    pub fn reprice(&mut self, pricing: &Pricing) -> Result<Repriced, StoreError> {
        pricing::reprice(&mut self.connection, pricing)
    }

    /// Keeps what one poll said, at once: for commands that ask once.
    ///
    /// # Errors
    /// What SQLite says; then nothing was changed.
    pub fn poll(&mut self, poll: &Poll, now_ms: i64) -> Result<(), StoreError> {
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        quota::poll(&tx, poll, now_ms)?;
        Ok(tx.commit()?)
    }

    /// Starts the writer thread.
    ///
    /// # Panics
    /// Where the system gives no thread.
    #[must_use]
    pub fn start(self, settings: WriterSettings, events: Arc<dyn WriterEvents>) -> (Writer, WriterThread) {
        let (queue, messages) = sync_channel(QUEUE);
        let applier = Applier::new(settings.max_tuples, Arc::new(settings.pricing.clone()), self.fresh);
        let mut work = Work {
            reindex: false,
            connection: self.connection,
            path: self.path,
            applier,
            settings,
            events: events.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("ledger".into())
            .spawn(move || work.run(&messages))
            .expect("a thread can be started");
        (Writer { queue, events }, WriterThread { thread })
    }
}

impl Writer {
    /// # Errors
    /// [`StoreError::Stopped`] where the writer ended.
    pub fn project(&self, fact: ProjectFact) -> Result<(), StoreError> {
        self.send(Message::Project(fact))
    }

    /// Hands a step over; blocks while the queue is full.
    ///
    /// # Errors
    /// [`StoreError::Stopped`] where the writer ended.
    pub fn step(&self, step: JournalStep) -> Result<(), StoreError> {
        self.send(Message::Step(Box::new(step)))
    }

    /// Marks the first import of a home as done: what comes now is spend.
    ///
    /// # Errors
    /// [`StoreError::Stopped`] where the writer ended.
    pub fn imported(&self, home: HomeId) -> Result<(), StoreError> {
        self.send(Message::Imported(home))
    }

    /// Notes that a hook was told of a threshold, or that this was given up.
    ///
    /// # Errors
    /// [`StoreError::Stopped`] where the writer ended.
    pub fn fired(&self, firing: Firing, delivered: bool) -> Result<(), StoreError> {
        self.send(Message::Fired { firing, delivered })
    }

    /// Hands over what a poll of the quota said.
    ///
    /// # Errors
    /// [`StoreError::Stopped`] where the writer ended.
    pub fn poll(&self, poll: Poll) -> Result<(), StoreError> {
        self.send(Message::Poll(Box::new(poll)))
    }

    /// Hands over a request refused for quota or capacity (quota Q14).
    ///
    /// # Errors
    /// [`StoreError::Stopped`] where the writer ended.
    pub fn rejected(&self, rejected: Rejected) -> Result<(), StoreError> {
        self.send(Message::Rejected(Box::new(rejected)))
    }

    /// Hands a spool's step over; blocks while the queue is full.
    ///
    /// # Errors
    /// [`StoreError::Stopped`] where the writer ended.
    pub fn spool(&self, step: SpoolStep) -> Result<(), StoreError> {
        self.send(Message::Spool(Box::new(step)))
    }

    /// Hands posted events over and waits until they are committed.
    ///
    /// # Errors
    /// [`StoreError::Stopped`] where the writer ended.
    pub fn posted(&self, batch: PostedBatch) -> Result<Posted, StoreError> {
        let (reply, done) = sync_channel(1);
        self.send(Message::Posted(batch, reply))?;
        done.recv().map_err(|_| StoreError::Stopped)
    }

    /// Hands telemetry over and waits until it is committed.
    ///
    /// # Errors
    /// [`StoreError::Behind`] where too much waits already, [`StoreError::Stopped`]
    /// where the writer ended.
    pub fn telemetry(&self, batch: TelemetryBatch) -> Result<(), StoreError> {
        let (reply, done) = sync_channel(1);
        self.events.queued();
        self.queue.try_send(Message::Telemetry(batch, reply)).map_err(|error| match error {
            TrySendError::Full(_) => {
                self.events.taken(1);
                StoreError::Behind
            }
            TrySendError::Disconnected(_) => StoreError::Stopped,
        })?;
        done.recv().map_err(|_| StoreError::Stopped)
    }

    /// Hands an outfile's step over; blocks while the queue is full.
    ///
    /// # Errors
    /// [`StoreError::Stopped`] where the writer ended.
    pub fn outfile(&self, step: OutfileStep) -> Result<(), StoreError> {
        self.send(Message::Outfile(Box::new(step)))
    }

    /// Says that all journals of a home were read to their ends, in a scan
    /// begun at `at` (unix ms): turns that ended before may become final.
    ///
    /// # Errors
    /// [`StoreError::Stopped`] where the writer ended.
    pub fn scanned(&self, home: HomeId, at: i64) -> Result<(), StoreError> {
        self.send(Message::Scanned(home, at))
    }

    /// Waits until everything handed over before is committed.
    ///
    /// # Errors
    /// What kept it from being committed, as a sentence.
    pub fn flush(&self) -> Result<(), String> {
        let (reply, done) = sync_channel(1);
        self.send(Message::Flush(reply)).map_err(|error| error.to_string())?;
        done.recv().map_err(|_| StoreError::Stopped.to_string())?
    }

    /// Lets the writer end after what was handed over.
    pub fn stop(&self) {
        // A writer that already ended needs no word.
        let _ = self.send(Message::Stop);
    }

    fn send(&self, message: Message) -> Result<(), StoreError> {
        self.events.queued();
        self.queue.send(message).map_err(|_| StoreError::Stopped)
    }
}

/// What one transaction takes.
#[derive(Default)]
struct Batch {
    messages: Vec<Message>,
    requests: usize,
}

impl Batch {
    fn push(&mut self, message: Message) {
        if let Message::Step(step) = &message {
            self.requests += step.sections.iter().map(|section| section.requests.len()).sum::<usize>();
        }
        self.messages.push(message);
    }

    fn is_full(&self) -> bool {
        self.messages.len() >= BATCH
            || self.requests >= BATCH_REQUESTS
            || matches!(self.messages.last(), Some(Message::Flush(_) | Message::Stop))
    }
}

/// What a transaction leaves to say once it is committed.
#[derive(Default)]
struct Done {
    stale: Vec<Stale>,
    spools: Vec<(Arc<str>, SpoolCursor)>,
    outfiles: Vec<(PathBuf, OutfileCursor)>,
    replies: Vec<Reply>,
}

enum Reply {
    Posted(SyncSender<Posted>, Posted),
    Taken(SyncSender<()>),
}

impl Reply {
    /// Nobody waiting any more is no failure.
    fn send(&self) {
        match self {
            Self::Posted(reply, posted) => drop(reply.send(*posted)),
            Self::Taken(reply) => drop(reply.send(())),
        }
    }
}

struct Work {
    /// A commit failed that may have built the indexes: they are asked for again.
    reindex: bool,
    connection: Connection,
    path: PathBuf,
    applier: Applier,
    settings: WriterSettings,
    events: Arc<dyn WriterEvents>,
}

impl Work {
    fn run(&mut self, messages: &Receiver<Message>) -> Result<(), StoreError> {
        loop {
            let first = match messages.recv_timeout(Duration::from_secs(3600)) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => {
                    self.tidy();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let mut batch = Batch::default();
            batch.push(first);
            while !batch.is_full()
                && let Ok(message) = messages.try_recv()
            {
                batch.push(message);
            }
            let mut batch = batch.messages;
            let result = self.persist(&batch);
            self.events.taken(batch.len());
            if let Ok(replies) = &result {
                replies.iter().for_each(Reply::send);
            }
            let stop = matches!(batch.last(), Some(Message::Stop));
            if let Some(Message::Flush(reply)) = batch.pop() {
                // Nobody waiting any more is no failure.
                let _ = reply.send(result.as_ref().map(|_| ()).map_err(ToString::to_string));
            }
            result?;
            if stop {
                break;
            }
        }
        self.tidy();
        // It only makes later questions faster: all that was handed over is committed.
        let _ = self.connection.execute_batch("PRAGMA optimize;");
        Ok(())
    }

    /// Commits a batch, again and again where waiting may help.
    fn persist(&mut self, batch: &[Message]) -> Result<Vec<Reply>, StoreError> {
        let mut blocked = false;
        loop {
            let result = self.commit(batch);
            match result {
                Ok(done) => {
                    if blocked {
                        self.events.blocked(None);
                    }
                    done.stale.into_iter().for_each(|stale| self.events.stale(stale));
                    done.spools.into_iter().for_each(|(name, cursor)| self.events.stale_spool(name, cursor));
                    done.outfiles.into_iter().for_each(|(path, to)| self.events.stale_outfile(path, to));
                    return Ok(done.replies);
                }
                Err(error) => {
                    self.applier.forget();
                    self.reindex = true;
                    let error = error.at(&self.path);
                    blocked = true;
                    self.events.blocked(Some(&error));
                    if !(error.may_pass() && (self.settings.patient)()) {
                        return Err(error);
                    }
                    std::thread::sleep(RETRY);
                }
            }
        }
    }

    fn commit(&mut self, batch: &[Message]) -> Result<Done, StoreError> {
        if batch.iter().all(|message| matches!(message, Message::Flush(_) | Message::Stop)) {
            return Ok(Done::default());
        }
        let started = (self.settings.stopwatch)();
        let before = self.connection.total_changes();
        let now_ms = (self.settings.clock)();
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        match &self.applier.fresh {
            Some(fresh) if !fresh.still_alone(&tx)? => self.applier.finish_fresh(&tx)?,
            None if self.reindex => Fresh::finish(&tx)?,
            _ => {}
        }
        let mut done = Done::default();
        for message in batch {
            match message {
                Message::Project(fact) => drop(self.applier.project_fact(&tx, fact)?),
                Message::Step(step) => match self.applier.step(&tx, step, now_ms)? {
                    Applied::Done => {}
                    Applied::Stale(cursor, condition) => {
                        done.stale.push((step.path.clone(), cursor, condition));
                    }
                },
                Message::Imported(home) => {
                    self.applier.finish_fresh(&tx)?;
                    tx.execute(
                        "UPDATE homes SET imported_at = ?2 WHERE id = ?1 AND imported_at IS NULL",
                        [home.0, now_ms],
                    )?;
                }
                Message::Fired { firing, delivered } => hooks::note(&tx, firing, *delivered, now_ms)?,
                Message::Poll(poll) => quota::poll(&tx, poll, now_ms)?,
                Message::Rejected(rejected) => quota::refused(&tx, rejected, now_ms)?,
                Message::Spool(step) => {
                    if let Spooled::Stale(cursor) = self.applier.spool(&tx, step)? {
                        done.spools.push((step.name.clone(), cursor));
                    }
                }
                Message::Posted(batch, reply) => {
                    let posted = self.applier.posted(&tx, batch, now_ms)?;
                    done.replies.push(Reply::Posted(reply.clone(), posted));
                }
                Message::Telemetry(batch, reply) => {
                    self.applier.telemetry(&tx, batch, now_ms)?;
                    done.replies.push(Reply::Taken(reply.clone()));
                }
                Message::Outfile(step) => {
                    if let Some(cursor) = self.applier.outfile(&tx, step, now_ms)? {
                        done.outfiles.push((step.path.clone(), cursor));
                    }
                }
                Message::Scanned(home, at) => self.applier.scanned(&tx, *home, *at, now_ms)?,
                Message::Flush(_) | Message::Stop => {}
            }
        }
        self.applier.flush(&tx, now_ms)?;
        tx.commit()?;
        self.reindex = false;
        self.events.committed((self.settings.stopwatch)() - started);
        if self.connection.total_changes() != before {
            self.events.changed();
        }
        Ok(done)
    }

    /// Gives the write-ahead log back. A reader in the way is no failure: next time.
    fn tidy(&self) {
        let _ = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);");
    }
}
