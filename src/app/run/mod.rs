//! `gemgauge run`: stands between a headless run and its reader, or at the end
//! of its pipe, and leaves what it saw in a spool file (accounting 3, D3).
//!
//! Bytes go first: the copying threads write what they read before anybody
//! looks at it, and looking at it needs no disk. Only events do, on a thread of
//! their own.

#[cfg(unix)]
mod wrapped;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use super::acp::Settings;
use super::clock::Clock;
use crate::cli;
use crate::config::{Env, Flags, effective_home};
use crate::ledger::doors::{Door, DoorEvent, EventKind, Exit};
use crate::ledger::runtime;
use crate::sources::acp::tee::Sink;
use crate::sources::headless::{Observer, Origin};
use crate::sources::process::{Patient, copy};

/// One of the streams of a run, as its observer sees it.
type See = fn(&mut Observer, &[u8], i64, &mut dyn FnMut(DoorEvent));

/// Events that wait for the disk; a run has a handful.
const QUEUED: usize = 1024;

/// How long the end of a run waits for the disk.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn run(flags: &Flags, env: &Env, args: &cli::run::Run) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    let settings = Settings::of(flags, env)?;
    let started = started(env, &args.command);
    let sink = settings.sink(flags, &started);
    if args.command.is_empty() {
        let watch = Watch::start(Origin::Pipe { started_ms: clock.now_ms() }, started, sink, clock);
        return pipe(&watch);
    }
    #[cfg(unix)]
    return wrapped::run(args, started, sink, clock);
    #[cfg(not(unix))]
    anyhow::bail!("commands are wrapped on Unix only so far: pipe the output into `gemgauge run`");
}

/// What is known of the run before it starts; a pipe has no command.
fn started(env: &Env, command: &[OsString]) -> EventKind {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let remote = runtime::is_remote(&words);
    EventKind::ProcessStarted {
        door: Door::Run,
        home: (!remote).then(|| effective_home(env).to_string_lossy().into_owned()),
        configured_runtime: runtime::configured(&words).map(str::to_owned),
        remote,
        pid: std::process::id(),
    }
}

/// Copies standard input to standard output. Nothing of ours is told of it.
fn pipe(watch: &Watch) -> anyhow::Result<ExitCode> {
    let (from, to) = streams().context("standard input and output cannot be used")?;
    let copied = copy(from, to, &AtomicU64::new(0), |bytes| watch.see(Observer::output, bytes));
    watch.finish(None);
    match copied {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // As any filter whose reader has seen enough.
        #[cfg(unix)]
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            Ok(crate::sources::process::leave(Exit::Signal(rustix::process::Signal::PIPE.as_raw())))
        }
        Err(error) => Err(error).context("standard input cannot be copied"),
    }
}

#[cfg(unix)]
fn streams() -> io::Result<(Patient, Patient)> {
    use std::os::fd::AsFd;

    let own = |fd: std::os::fd::BorrowedFd<'_>| Ok::<_, io::Error>(Patient(fd.try_clone_to_owned()?.into()));
    Ok((own(io::stdin().as_fd())?, own(io::stdout().as_fd())?))
}

#[cfg(not(unix))]
fn streams() -> io::Result<(io::StdinLock<'static>, io::StdoutLock<'static>)> {
    Ok((io::stdin().lock(), io::stdout().lock()))
}

/// The spool file, written by a thread of its own: a disk that hangs holds up
/// nobody's bytes.
#[derive(Clone)]
struct Spool {
    events: SyncSender<DoorEvent>,
    /// Events that found no room.
    lost: Arc<AtomicU64>,
    written: Arc<Mutex<Receiver<()>>>,
}

impl Spool {
    /// `sink` is called on that thread.
    fn start(mut sink: Sink) -> Self {
        let (events, queue) = sync_channel::<DoorEvent>(QUEUED);
        let (done, written) = channel();
        let lost = Arc::<AtomicU64>::default();
        let missed = lost.clone();
        thread::spawn(move || {
            for event in queue {
                let ended = matches!(event.kind, EventKind::ProcessEnded { .. });
                let count = missed.swap(0, Ordering::AcqRel);
                if count > 0 {
                    sink(DoorEvent { at: event.at, kind: EventKind::Lost { count: Some(count) } });
                }
                sink(event);
                if ended {
                    break;
                }
            }
            let _ = done.send(());
            // The file's lock says that this process lives: it is held to its end.
            std::mem::forget(sink);
        });
        Self { events, lost, written: Arc::new(Mutex::new(written)) }
    }

    fn tell(&self, event: DoorEvent) {
        if self.events.try_send(event).is_err() {
            self.lost.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Waits until what was told is written, or the disk was given its time.
    fn flush(&self) {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = written.recv_timeout(PATIENCE);
    }
}

/// What looks at the bytes of a run. Should it fail, the bytes go on.
#[derive(Clone)]
struct Watch {
    observer: Arc<Mutex<Option<Observer>>>,
    spool: Spool,
    clock: Clock,
}

impl Watch {
    /// Tells of the start at once.
    fn start(origin: Origin, started: EventKind, sink: Sink, clock: Clock) -> Self {
        let (Origin::Process { started_ms } | Origin::Pipe { started_ms }) = origin;
        let spool = Spool::start(sink);
        spool.tell(DoorEvent { at: started_ms, kind: started });
        Self { observer: Arc::new(Mutex::new(Some(Observer::new(origin)))), spool, clock }
    }

    fn see(&self, stream: See, bytes: &[u8]) {
        let now_ms = self.clock.now_ms();
        self.look(|mut observer| {
            stream(&mut observer, bytes, now_ms, &mut |event| self.spool.tell(event));
            Some(observer)
        });
    }

    fn finish(&self, exit: Option<Exit>) {
        let now_ms = self.clock.now_ms();
        let seen = self.look(|observer| {
            observer.finish(exit, now_ms, &mut |event| self.spool.tell(event));
            None
        });
        if !seen {
            self.spool.tell(DoorEvent { at: now_ms, kind: EventKind::ProcessEnded { exit } });
        }
        self.spool.flush();
    }

    /// `false` if there is no observer, or none any more.
    fn look(&self, at: impl FnOnce(Observer) -> Option<Observer>) -> bool {
        let mut held = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(observer) = held.take() else { return false };
        match catch_unwind(AssertUnwindSafe(|| at(observer))) {
            Ok(observer) => *held = observer,
            Err(_) => {
                let kind = EventKind::Lost { count: None };
                self.spool.tell(DoorEvent { at: self.clock.now_ms(), kind });
                return false;
            }
        }
        true
    }
}
