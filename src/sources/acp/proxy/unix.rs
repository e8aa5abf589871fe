//! Starts the agent and sees it to its end, whichever end that is (D2 1, 6 and 7).

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::{NotStarted, pump};
use crate::ledger::doors::Exit;
use crate::sources::acp::tee::Tap;
use crate::sources::process::signals::Signals;
use crate::sources::process::tree::Tree;
use crate::sources::process::{command, of_status, spawn};

/// While something is about to end, it is looked at so often …
const ROUND: Duration = Duration::from_millis(20);

/// … and so often in all: 5 s.
const ROUNDS: u32 = 250;

/// Rounds to die in, after SIGKILL.
const LAST_ROUNDS: u32 = 50;

/// A running agent, with its streams in our hands.
pub struct Agent {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    signals: Signals,
    /// Closing the second tells the loop that reads the client to stop.
    stop: (OwnedFd, OwnedFd),
}

/// What happens to the agent.
enum Event {
    /// We were told to end.
    Signal(Signal),
    /// The agent ended; its status waits to be taken.
    Ended,
    /// No more of its output comes, or nobody reads it.
    OutputEnded,
}

impl Agent {
    /// Starts the command as it stands: no shell, and environment, working
    /// directory, standard error and process group are ours.
    ///
    /// The thread that calls must be the main one: should it end, Linux ends
    /// the agent with SIGTERM.
    ///
    /// # Errors
    /// The command cannot be started; nothing ran.
    pub fn start(program: &OsString, arguments: &[OsString]) -> Result<Self, NotStarted> {
        let failed = |error| NotStarted::new(program, error);
        // Before the agent is there, so that no signal ends us and leaves it behind.
        let signals = Signals::catch().map_err(failed)?;
        let stop = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).map_err(failed)?;
        let mut command = command(program, arguments);
        let mut child = spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let input = child.stdin.take().expect("it was asked for");
        let output = child.stdout.take().expect("it was asked for");
        Ok(Self { child, input, output, signals, stop })
    }

    /// Copies what client and agent say to each other until the agent has
    /// ended, and says how. Returns never before the agent.
    #[must_use]
    pub fn attend(self, client: Tap, agent: Tap) -> Exit {
        let Self { child, input, output, signals, stop: (stop, stopper) } = self;
        let pid = Pid::from_child(&child);
        let (events, wait) = channel();
        thread::spawn(move || pump::client_to_agent(input, stop, client));
        let send = events.clone();
        let moving = Arc::new(AtomicU64::new(0));
        let copied = Arc::clone(&moving);
        thread::spawn(move || {
            pump::agent_to_client(output, agent, &copied);
            let _ = send.send(Event::OutputEnded);
        });
        let send = events.clone();
        thread::spawn(move || await_end(pid, &send));
        thread::spawn(move || {
            signals.each(|signal| {
                let _ = events.send(Event::Signal(signal));
            });
        });
        let mut end = End { child, pid, exit: None, output: true, tree: None };
        let mut stopper = Some(stopper);
        let mut killed = false;
        // Rounds left until patience ends; `None`: nothing is about to end.
        let mut rounds: Option<u32> = None;
        let mut moved = None;
        loop {
            let event = match rounds {
                None => wait.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => wait.recv_timeout(ROUND),
            };
            match event {
                Ok(Event::Signal(signal)) => {
                    stopper = None;
                    end.tell(signal);
                    rounds.get_or_insert(ROUNDS);
                }
                Ok(Event::Ended) => {
                    end.take_status();
                    // What it left behind may hold its output open: not for ever.
                    rounds.get_or_insert(ROUNDS);
                }
                Ok(Event::OutputEnded) => end.output = false,
                Err(_) => match rounds.unwrap_or_default().saturating_sub(1) {
                    0 if end.tree.is_some() && !killed => {
                        end.kill();
                        killed = true;
                        rounds = Some(LAST_ROUNDS);
                    }
                    0 => match end.exit {
                        // A client may take its time with what the agent said before it ended by itself.
                        Some(_) if end.tree.is_none() && passes(&moving, &mut moved) => rounds = Some(ROUNDS),
                        Some(exit) => return exit,
                        None => rounds = Some(LAST_ROUNDS),
                    },
                    left => rounds = Some(left),
                },
            }
            if let Some(exit) = end.over() {
                drop(stopper);
                return exit;
            }
        }
    }
}

/// Whether output is on its way to the client, or some of it passed since the
/// last time.
fn passes(moving: &AtomicU64, moved: &mut Option<u64>) -> bool {
    let now = moving.load(Ordering::Acquire);
    now % 2 == 1 || moved.replace(now).is_some_and(|before| before != now)
}

/// The agent on its way out.
struct End {
    child: Child,
    pid: Pid,
    exit: Option<Exit>,
    /// Its output is open.
    output: bool,
    /// Once it was told to end: the agent and all that it started.
    tree: Option<Tree>,
}

impl End {
    fn tell(&mut self, signal: Signal) {
        match &mut self.tree {
            Some(tree) => tree.look_again(),
            // Its id is its own until its status is taken.
            None if self.exit.is_none() => self.tree = Some(Tree::of(self.pid)),
            None => self.tree = Some(Tree::default()),
        }
        self.signal(signal);
    }

    fn kill(&mut self) {
        if let Some(tree) = &mut self.tree {
            tree.look_again();
        }
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(tree) = &self.tree {
            tree.signal(signal);
        }
    }

    fn take_status(&mut self) {
        // Only to those who ignore SIGCHLD nobody says how a child ended.
        self.exit = self.exit.or_else(|| Some(self.child.wait().map_or(Exit::Code(1), of_status)));
    }

    /// How the agent ended, once all it said is said, and what had to end with
    /// it has ended.
    fn over(&self) -> Option<Exit> {
        let lives = || self.tree.as_ref().is_some_and(Tree::lives);
        self.exit.filter(|_| !self.output && !lives())
    }
}

/// Waits for the end of the agent without taking its status, so that its id
/// stays its own.
fn await_end(pid: Pid, events: &Sender<Event>) {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(pid), ended).is_err_and(|error| error == Errno::INTR) {}
    let _ = events.send(Event::Ended);
}
