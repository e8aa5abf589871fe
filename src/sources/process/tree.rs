//! A process and everything it started. `gemini` is a launcher with a child:
//! a signal to the launcher alone does not end it, and the group is the
//! client's too, so it is never signalled (accounting 3, D2 6).

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, test_kill_process, waitid};

use super::exit::of_status;
use crate::ledger::doors::Exit;

/// A process that cannot be taken for a later one of the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    pid: Pid,
    parent: i32,
    /// When it started, in the system's ticks.
    started: u64,
}

/// A process and its descendants at one moment, parents first.
#[derive(Clone, Debug, Default)]
pub struct Tree(Vec<Member>);

impl Tree {
    /// The tree below `root`. Where the system shows no processes (`/proc`), it
    /// is the root alone.
    #[must_use]
    pub fn of(root: Pid) -> Self {
        let all = everyone();
        let lone = Member { pid: root, parent: 0, started: 0 };
        let mut tree = Self(vec![all.iter().copied().find(|member| member.pid == root).unwrap_or(lone)]);
        tree.add_descendants(&all);
        tree
    }

    /// Forgets who has ended and adds what the others have started meanwhile.
    /// Who was seen once stays a member, even after its parent is gone.
    pub fn look_again(&mut self) {
        self.0.retain(|member| member.is_there());
        self.add_descendants(&everyone());
    }

    fn add_descendants(&mut self, all: &[Member]) {
        let mut next = 0;
        while let Some(parent) = self.0.get(next).map(|member| member.pid.as_raw_nonzero().get()) {
            let known = |one: &Member| self.0.iter().any(|member| member.pid == one.pid);
            let children = all.iter().copied().filter(|one| one.parent == parent && !known(one));
            let children: Vec<Member> = children.collect();
            self.0.extend(children);
            next += 1;
        }
    }

    /// Sends a signal to each process that is still there.
    pub fn signal(&self, signal: Signal) {
        for member in self.0.iter().filter(|member| member.is_there()) {
            let _ = kill_process(member.pid, signal);
        }
    }

    /// Whether any of them is still there.
    #[must_use]
    pub fn lives(&self) -> bool {
        self.0.iter().any(|member| member.is_there())
    }
}

impl Member {
    fn is_there(&self) -> bool {
        if self.started == 0 {
            return test_kill_process(self.pid).is_ok();
        }
        member(self.pid).is_some_and(|now| now.started == self.started)
    }
}

/// Everyone whom the system shows.
fn everyone() -> Vec<Member> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    pids.filter_map(member).collect()
}

/// What `/proc` says of a process that is no zombie.
fn member(pid: Pid) -> Option<Member> {
    let path = PathBuf::from("/proc").join(pid.as_raw_nonzero().to_string()).join("stat");
    let mut stat = Vec::new();
    File::open(path).ok()?.take(4096).read_to_end(&mut stat).ok()?;
    // The name stands in parentheses and may hold anything, parentheses too.
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let fields: Vec<&str> = std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace().collect();
    let [state, parent] = [fields.first()?, fields.get(1)?];
    let started = fields.get(19)?.parse().ok()?;
    (*state != "Z" && *state != "X").then_some(Member { pid, parent: parent.parse().ok()?, started })
}

/// Signals a child and everything below it, for as long as it is the child: its
/// id is not used once it was waited for.
#[derive(Clone)]
pub struct Signaller(Arc<Mutex<Option<Pid>>>);

impl Signaller {
    #[must_use]
    pub fn of(child: &Child) -> Self {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Self(Arc::new(Mutex::new(pid)))
    }

    /// Signals the tree below the child as it is now, and returns it; `None`
    /// once the child has ended.
    pub fn signal(&self, signal: Signal) -> Option<Tree> {
        let pid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tree = Tree::of((*pid)?);
        tree.signal(signal);
        Some(tree)
    }

    /// Waits for the child's end.
    #[must_use]
    pub fn wait(&self, child: &mut Child) -> Option<Exit> {
        let watched = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = watched {
            // It stays a zombie, and its id its own, until nobody signals it any more.
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), ended), Err(rustix::io::Errno::INTR)) {}
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        child.wait().ok().map(of_status)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn d2_6_a_signal_reaches_what_the_launcher_started() {
        // A launcher that is deaf to SIGTERM, and a child of its child.
        let script = "trap '' TERM; sh -c 'sh -c \"echo ready; exec sleep 600\" & wait' & wait; wait; exit 7";
        let mut child =
            Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("sh starts");
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let signaller = Signaller::of(&child);
        // A trap that ignores is inherited: KILL for those below, as a launcher survives its child.
        let tree = signaller.signal(Signal::CONT).expect("it runs");
        assert_eq!(tree.0.len(), 3, "{tree:?}");
        assert_eq!(tree.0[0].pid.as_raw_nonzero().get().unsigned_abs(), child.id());
        Tree(tree.0[1..].to_vec()).signal(Signal::KILL);
        assert_eq!(signaller.wait(&mut child), Some(Exit::Code(7)));
        // The killed one has no parent left that would have waited for it.
        while tree.lives() {
            std::thread::yield_now();
        }
        assert!(signaller.signal(Signal::KILL).is_none(), "an id that was waited for is nobody's");
    }

    #[test]
    fn a_signal_that_ended_it_is_its_exit() {
        let mut child = Command::new("sleep").arg("600").spawn().expect("sleep starts");
        let signaller = Signaller::of(&child);
        signaller.signal(Signal::TERM);
        assert_eq!(signaller.wait(&mut child), Some(Exit::Signal(15)));
    }
}
