//! The processes that belong to the agent. Client, proxy and agent share one
//! process group, so a group is never signalled: each process is, by its id.

use std::collections::HashSet;

use rustix::process::{Pid, Signal, kill_process};

/// One process; an id that is given out again is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Process {
    pid: Pid,
    /// When it started, in the system's own unit; 0 where that is not known.
    started: u64,
}

/// A row of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    process: Process,
    parent: Option<Pid>,
    /// Ended, and its parent has not looked yet.
    zombie: bool,
}

/// The agent and what it started, as far as it was seen: a process whose
/// parent ended is nobody's child any more, and stays one of ours.
#[derive(Default)]
pub(super) struct Tree {
    known: HashSet<Process>,
}

impl Tree {
    /// Looks again for what descends from the agent, or from what is known.
    pub(super) fn look(&mut self, agent: Option<Pid>) {
        let rows = table();
        let alive: HashSet<Process> = rows.iter().filter(|row| !row.zombie).map(|row| row.process).collect();
        self.known.retain(|process| alive.contains(process));
        let mut family: HashSet<Pid> = self.known.iter().map(|process| process.pid).chain(agent).collect();
        let in_family = |row: &Row, family: &HashSet<Pid>| {
            family.contains(&row.process.pid) || row.parent.is_some_and(|parent| family.contains(&parent))
        };
        loop {
            let before = family.len();
            family.extend(
                rows.iter()
                    .filter(|row| in_family(row, &family))
                    .map(|row| row.process.pid)
                    .collect::<Vec<_>>(),
            );
            if family.len() == before {
                break;
            }
        }
        let ours = rows.iter().filter(|row| !row.zombie && family.contains(&row.process.pid));
        self.known.extend(ours.map(|row| row.process));
    }

    /// Nothing of it runs any more, as of the last look.
    pub(super) fn is_gone(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn signal(&self, signal: Signal) {
        for process in &self.known {
            // It may have ended, or be somebody else's.
            let _ = kill_process(process.pid, signal);
        }
    }
}

#[cfg(target_os = "linux")]
fn table() -> Vec<Row> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = crate::config::read_bounded(format!("/proc/{pid}/stat").as_ref(), 4096).ok()?;
        row(&stat)
    })
    .collect()
}

/// A line of `/proc/PID/stat`: `PID (NAME) STATE PARENT …`, where the name may
/// hold anything; the start is field 22.
#[cfg(target_os = "linux")]
fn row(stat: &str) -> Option<Row> {
    let pid = Pid::from_raw(stat.split(' ').next()?.parse().ok()?)?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    let zombie = matches!(fields.next()?, "Z" | "X");
    let parent = Pid::from_raw(fields.next()?.parse().ok()?);
    let started = fields.nth(17)?.parse().ok()?;
    Some(Row { process: Process { pid, started }, parent, zombie })
}

/// Elsewhere `ps` knows, as best it can: without the times of start an id that
/// is given out again within the five seconds would be taken for the old one.
#[cfg(not(target_os = "linux"))]
fn table() -> Vec<Row> {
    use std::process::{Command, Stdio};
    let ps = Command::new("ps")
        .args(["-A", "-o", "pid=,ppid=,stat="])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = ps.map(|ps| String::from_utf8_lossy(&ps.stdout).into_owned()).unwrap_or_default();
    let row = |line: &str| {
        let mut fields = line.split_whitespace();
        let pid = Pid::from_raw(fields.next()?.parse().ok()?)?;
        let parent = Pid::from_raw(fields.next()?.parse().ok()?);
        let zombie = fields.next()?.starts_with('Z');
        Some(Row { process: Process { pid, started: 0 }, parent, zombie })
    };
    text.lines().filter_map(row).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn d2_6_a_process_may_be_called_anything() {
        let stat = "17 (a) Z (b) ) S 4 17 17 0 -1 4194304 1 0 0 0 3 1 0 0 20 0 1 0 8812 0 0";
        let row = row(stat).expect("a row");
        assert_eq!((row.process.pid.as_raw_nonzero().get(), row.process.started), (17, 8812));
        assert_eq!((row.parent, row.zombie), (Pid::from_raw(4), false));
        assert!(super::row("17 (x) Z 4 17 17 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9").expect("a row").zombie);
        assert_eq!(super::row("17 (x"), None);
    }

    #[test]
    fn d2_6_the_table_holds_this_process_and_its_parent() {
        let me = rustix::process::getpid();
        let rows = table();
        let mine = rows.iter().find(|row| row.process.pid == me).expect("we run");
        assert_eq!(mine.parent, rustix::process::getppid());
        assert!(!mine.zombie && mine.process.started > 0);
    }
}
