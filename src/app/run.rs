//! `gemgauge run`: stands between a headless run and its reader, or at the end
//! of its pipe, and leaves what it saw in a spool file (accounting 3, D3).
//!
//! Bytes go first: the copying threads write what they read before anybody
//! looks at it, and looking at it needs no disk. Only events do, on a thread of
//! their own.

use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use super::clock::Clock;
use crate::cli;
use crate::config::{Config, Env, Flags, effective_home};
use crate::ledger::doors::{Door, DoorEvent, EventKind, Exit};
use crate::ledger::runtime;
use crate::sources::headless::{Observer, Origin};
use crate::sources::process::{Patient, copy};
use crate::sources::spool::{SpoolWriter, fresh_name};

/// Events that wait for the disk; a run has a handful.
const QUEUED: usize = 1024;

/// How long the end of a run waits for the disk.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn run(flags: &Flags, env: &Env, args: &cli::run::Run) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    let spool = Spool::start(flags, env);
    if args.command.is_empty() {
        let watch = Watch::new(Origin::Pipe { started_ms: clock.now_ms() }, spool, clock);
        return pipe(env, watch);
    }
    #[cfg(unix)]
    return wrapped::run(env, args, spool, clock);
    #[cfg(not(unix))]
    anyhow::bail!("commands are wrapped on Unix only so far: pipe the output into `gemgauge run`");
}

/// Copies standard input to standard output. Nothing of ours is told of it.
fn pipe(env: &Env, watch: Watch) -> anyhow::Result<ExitCode> {
    watch.started(env, &[]);
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
    fn start(flags: &Flags, env: &Env) -> Self {
        let (events, queue) = sync_channel::<DoorEvent>(QUEUED);
        let (done, written) = channel();
        let lost = Arc::<AtomicU64>::default();
        let dir = Config::spool_dir(flags, env);
        let missed = lost.clone();
        thread::spawn(move || {
            let mut file = dir.map(|dir| SpoolWriter::create(&dir, &fresh_name()));
            for event in queue {
                let ended = matches!(event.kind, EventKind::ProcessEnded { .. });
                let Some(file) = &mut file else { continue };
                match missed.swap(0, Ordering::AcqRel) {
                    0 => {}
                    count => {
                        file.append(&DoorEvent {
                            at: event.at,
                            kind: EventKind::Lost { count: Some(count) },
                        });
                    }
                }
                file.append(&event);
                if ended {
                    break;
                }
            }
            let _ = done.send(());
            // The file's lock says that this process lives: it is held to its end.
            std::mem::forget(file);
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
    started_ms: i64,
}

impl Watch {
    fn new(origin: Origin, spool: Spool, clock: Clock) -> Self {
        let (Origin::Process { started_ms } | Origin::Pipe { started_ms }) = origin;
        let observer = Arc::new(Mutex::new(Some(Observer::new(origin))));
        Self { observer, spool, clock, started_ms }
    }

    /// Tells that the run began. `words` are its command.
    fn started(&self, env: &Env, words: &[String]) {
        let remote = runtime::is_remote(words);
        let home = (!remote).then(|| effective_home(env).to_string_lossy().into_owned());
        let configured_runtime = runtime::configured(words).map(str::to_owned);
        let pid = std::process::id();
        let kind = EventKind::ProcessStarted { door: Door::Run, home, configured_runtime, remote, pid };
        self.spool.tell(DoorEvent { at: self.started_ms, kind });
    }

    fn see(&self, stream: fn(&mut Observer, &[u8], i64, &mut dyn FnMut(DoorEvent)), bytes: &[u8]) {
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

/// A command with its output in our hands.
#[cfg(unix)]
mod wrapped {
    use std::fs::File;
    use std::io::IsTerminal;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::process::{Command, Stdio};

    use super::{
        Arc, AtomicU64, Clock, Context, Duration, Env, Exit, ExitCode, Observer, Ordering, Origin, Patient,
        Receiver, Spool, Watch, channel, cli, copy, io, thread,
    };
    use crate::sources::process::signals::Signals;
    use crate::sources::process::tree::Signaller;
    use crate::sources::process::{command, leave, spawn};

    /// What outlives the command and still holds its output open is given so
    /// long to say something.
    const LINGER: Duration = Duration::from_secs(1);

    /// Where a stream of the child goes, once it was read.
    struct Stream {
        from: Patient,
        to: Patient,
        seen: fn(&mut Observer, &[u8], i64, &mut dyn FnMut(crate::ledger::doors::DoorEvent)),
    }

    /// A stream that is being copied.
    struct Copying {
        waiting: Arc<AtomicU64>,
        done: Receiver<()>,
    }

    pub(super) fn run(
        env: &Env,
        args: &cli::run::Run,
        spool: Spool,
        clock: Clock,
    ) -> anyhow::Result<ExitCode> {
        let (program, arguments) = args.command.split_first().context("there is no command")?;
        let mut command = command(program, arguments);
        let streams = streams(&mut command).context("no pipes for the command's output")?;
        let signals = Signals::catch().context("signals cannot be caught")?;
        let started_ms = clock.now_ms();
        let mut child = match spawn(&mut command) {
            Ok(child) => child,
            Err(error) => {
                eprintln!("gemgauge: {error}");
                return Ok(ExitCode::from(error.code()));
            }
        };
        // Our ends of the pipes, or their readers would wait for us.
        drop(command);
        // From here on nothing of ours is printed, whatever happens.
        std::panic::set_hook(Box::new(|_| {}));
        let signaller = Signaller::of(&child);
        let handed_on = signaller.clone();
        thread::spawn(move || signals.hand_on(&handed_on));
        let watch = Watch::new(Origin::Process { started_ms }, spool, clock);
        let words: Vec<String> =
            args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        watch.started(env, &words);
        let copying: Vec<Copying> = streams.into_iter().map(|stream| stream.copy(&watch)).collect();
        let exit = signaller.wait(&mut child);
        copying.iter().for_each(Copying::drain);
        watch.finish(exit);
        Ok(leave(exit.unwrap_or(Exit::Code(1))))
    }

    /// Connects the command's output: standard output through us, standard
    /// error too, unless it is a terminal. Where both are one file, they share
    /// one pipe, and their order stays what it is.
    fn streams(command: &mut Command) -> io::Result<Vec<Stream>> {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let (from, output) = io::pipe()?;
        let mut streams = vec![Stream::new(from.into(), stdout.as_fd(), Observer::output)?];
        if stderr.is_terminal() {
            // It stays what it is.
        } else if same_file(stdout.as_fd(), stderr.as_fd()) {
            command.stderr(output.try_clone()?);
        } else {
            let (from, errors) = io::pipe()?;
            command.stderr(errors);
            streams.push(Stream::new(from.into(), stderr.as_fd(), Observer::errors)?);
        }
        command.stdin(Stdio::inherit()).stdout(output);
        Ok(streams)
    }

    fn same_file(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
        match (rustix::fs::fstat(a), rustix::fs::fstat(b)) {
            (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
            _ => false,
        }
    }

    impl Stream {
        fn new(
            from: OwnedFd,
            to: BorrowedFd<'_>,
            seen: fn(&mut Observer, &[u8], i64, &mut dyn FnMut(crate::ledger::doors::DoorEvent)),
        ) -> io::Result<Self> {
            let to = Patient(File::from(to.try_clone_to_owned()?));
            Ok(Self { from: Patient(File::from(from)), to, seen })
        }

        /// Copies on a thread of its own. When nobody reads any more, the
        /// child learns it as it would without us.
        fn copy(self, watch: &Watch) -> Copying {
            let waiting = Arc::<AtomicU64>::default();
            let (ended, done) = channel();
            let (watch, counted) = (watch.clone(), waiting.clone());
            thread::spawn(move || {
                let Self { from, to, seen } = self;
                let _ = copy(from, to, &counted, |bytes| watch.see(seen, bytes));
                let _ = ended.send(());
            });
            Copying { waiting, done }
        }
    }

    impl Copying {
        /// Waits until everything that the child wrote has passed, however
        /// slow its reader is; not for what others may write to the pipe.
        fn drain(&self) {
            use std::sync::mpsc::RecvTimeoutError::Timeout;

            let mut before = None;
            while self.done.recv_timeout(LINGER) == Err(Timeout) {
                let waiting = self.waiting.load(Ordering::Acquire);
                if waiting % 2 == 0 && before == Some(waiting) {
                    break;
                }
                before = Some(waiting);
            }
        }
    }
}
