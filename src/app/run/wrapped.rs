//! A command with its output in our hands.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError::Timeout;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use super::{See, Watch};
use crate::app::clock::Clock;
use crate::cli;
use crate::ledger::doors::{EventKind, Exit};
use crate::sources::acp::tee::Sink;
use crate::sources::headless::{Observer, Origin};
use crate::sources::process::signals::Signals;
use crate::sources::process::tree::Signaller;
use crate::sources::process::{Patient, command, copy, leave, spawn};

/// What outlives the command and still holds its output open is given so
/// long to say something.
const LINGER: Duration = Duration::from_secs(1);

/// Where a stream of the child goes, once it was read.
struct Stream {
    from: Patient,
    to: Patient,
    seen: See,
}

/// A stream that is being copied.
struct Copying {
    waiting: Arc<AtomicU64>,
    done: Receiver<()>,
}

pub(super) fn run(
    args: &cli::run::Run,
    started: EventKind,
    sink: Sink,
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
    let watch = Watch::start(Origin::Process { started_ms }, started, sink, clock);
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
    fn new(from: OwnedFd, to: BorrowedFd<'_>, seen: See) -> io::Result<Self> {
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
        let mut before = None;
        while self.done.recv_timeout(LINGER) == Err(Timeout) {
            let waiting = self.waiting.load(Ordering::Acquire);
            if waiting.is_multiple_of(2) && before == Some(waiting) {
                break;
            }
            before = Some(waiting);
        }
    }
}
