//! Starts the agent and sees it to its end, whichever end that is (D2 1, 6 and 7).

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{pump, tree::Tree};
use crate::ledger::doors::Exit;
use crate::sources::acp::tee::Tap;

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
    Signal(i32),
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
    /// The command cannot be started, or is empty.
    pub fn start(command: &[OsString]) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        // Before the agent is there, so that none of them can end us and leave it behind.
        let signals = Signals::new(wanted_signals())?;
        let stop = pipe_with(PipeFlags::CLOEXEC)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        #[cfg(target_os = "linux")]
        die_with_us(&mut command);
        let mut child = command.spawn()?;
        let input = child.stdin.take().expect("it was asked for");
        let output = child.stdout.take().expect("it was asked for");
        Ok(Self { child, input, output, signals, stop })
    }

    /// Copies what client and agent say to each other until the agent has
    /// ended, and says how. Returns never before the agent.
    #[must_use]
    pub fn attend(self, client: Tap, agent: Tap) -> Exit {
        let Self { child, input, output, mut signals, stop: (stop, stopper) } = self;
        let pid = Pid::from_child(&child);
        let (events, wait) = channel();
        thread::spawn(move || pump::client_to_agent(input, stop, client));
        let send = events.clone();
        thread::spawn(move || {
            pump::agent_to_client(output, agent);
            let _ = send.send(Event::OutputEnded);
        });
        let send = events.clone();
        thread::spawn(move || await_end(pid, &send));
        thread::spawn(move || {
            for signal in signals.forever() {
                let _ = events.send(Event::Signal(signal));
            }
        });
        let mut end = End { child, pid, exit: None, output: true, told: false, tree: Tree::default() };
        let mut stopper = Some(stopper);
        let mut killed = false;
        // Rounds left until patience ends; `None`: nothing is about to end.
        let mut rounds: Option<u32> = None;
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
                    0 if end.told && !killed => {
                        end.kill();
                        killed = true;
                        rounds = Some(LAST_ROUNDS);
                    }
                    0 => match end.exit {
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

/// The agent on its way out.
struct End {
    child: Child,
    pid: Pid,
    exit: Option<Exit>,
    /// Its output is open.
    output: bool,
    /// It was told to end, and has time to.
    told: bool,
    tree: Tree,
}

impl End {
    /// The agent's id, as long as nobody else can have it: until its status is taken.
    fn pid(&self) -> Option<Pid> {
        self.exit.is_none().then_some(self.pid)
    }

    fn tell(&mut self, signal: i32) {
        self.told = true;
        self.tree.look(self.pid());
        if let Some(signal) = Signal::from_named_raw(signal) {
            self.tree.signal(signal);
        }
    }

    fn kill(&mut self) {
        self.tree.look(self.pid());
        self.tree.signal(Signal::KILL);
    }

    fn take_status(&mut self) {
        let exit = |status: ExitStatus| {
            status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or_default()), Exit::Code)
        };
        // Only who ignores SIGCHLD is not told how a child ended.
        self.exit = self.exit.or_else(|| Some(self.child.wait().map_or(Exit::Code(1), exit)));
    }

    /// How the agent ended, once all it said is said, and what had to end with
    /// it has ended.
    fn over(&mut self) -> Option<Exit> {
        let exit = self.exit.filter(|_| !self.output)?;
        if self.told {
            self.tree.look(None);
        }
        (!self.told || self.tree.is_gone()).then_some(exit)
    }
}

/// Waits for the end of the agent without taking its status, so that its id
/// stays its own.
fn await_end(pid: Pid, events: &Sender<Event>) {
    while waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        .is_err_and(|error| error == rustix::io::Errno::INTR)
    {}
    let _ = events.send(Event::Ended);
}

/// The signals that ask to end, without those that whoever started us has
/// ignored (`nohup`): the agent shall ignore them too.
fn wanted_signals() -> Vec<i32> {
    let ignored = ignored_signals();
    [SIGTERM, SIGINT, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0).collect()
}

/// As bits, from the lowest for signal 1; none where the system does not say.
fn ignored_signals() -> u64 {
    let status = crate::config::read_bounded("/proc/self/status".as_ref(), 64 << 10).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

/// Has the system end the agent should we be killed.
#[cfg(target_os = "linux")]
fn die_with_us(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;

    use rustix::process::{getpid, getppid, set_parent_process_death_signal};

    let us = getpid();
    let in_child = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // We may have been killed before that.
        if getppid() == Some(us) { Ok(()) } else { Err(io::Error::from_raw_os_error(3)) }
    };
    #[expect(
        unsafe_code,
        reason = "only the child itself can ask for this, between fork and exec. What runs there makes two \
                  system calls and compares two numbers: no memory, no lock"
    )]
    // SAFETY: `in_child` is async-signal-safe, as the reason says.
    unsafe {
        command.pre_exec(in_child);
    }
}

/// Ends this process as the agent was ended. Where that signal does not end a
/// process, it returns the exit code that shells give.
#[must_use]
pub fn die_of(signal: i32) -> u8 {
    use rustix::process::{Resource, Rlimit, getpid, kill_process, setrlimit};
    // One core dump is enough.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    if signal == Signal::KILL.as_raw() {
        let _ = kill_process(getpid(), Signal::KILL);
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
