//! Signals that are meant for the process behind the door.

use std::io;

use rustix::process::{Signal, getpgrp};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Handle;

use super::tree::Signaller;
use crate::config::read_bounded;

/// What is handed on.
const HANDED_ON: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Signals caught from now on. Caught before the child starts, so that none is
/// lost in between; the child itself starts with their default actions.
pub struct Signals(signal_hook::iterator::Signals);

impl Signals {
    /// Catches the signals that ask a process to end, those excepted that this
    /// one was started to ignore (`nohup`): so will the child.
    ///
    /// # Errors
    /// What the system says.
    pub fn catch() -> io::Result<Self> {
        let ignored = ignored();
        let caught = HANDED_ON.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        signal_hook::iterator::Signals::new(caught).map(Self)
    }

    /// Waits for each signal, for as long as the process lives.
    pub fn each(mut self, mut act: impl FnMut(Signal)) {
        for signal in self.0.forever().filter_map(Signal::from_named_raw) {
            act(signal);
        }
    }

    /// Ends [`Self::hand_on`] from another thread.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.handle()
    }

    /// Hands each signal on to the child's tree until the handle is closed.
    /// What comes after the child's end is for this process: it ends by it.
    pub fn hand_on(mut self, child: &Signaller) {
        for number in self.0.forever() {
            let Some(signal) = Signal::from_named_raw(number) else { continue };
            // The terminal sent it to the child as well: once is enough.
            let by_key = matches!(number, SIGINT | SIGQUIT) && in_foreground();
            if !by_key && child.signal(signal).is_none() {
                let _ = signal_hook::low_level::emulate_default_handler(number);
            }
        }
    }
}

/// The signals that this process ignores, one bit each; 0 where the system does not say.
fn ignored() -> u64 {
    let status = read_bounded("/proc/self/status".as_ref(), 64 * 1024).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Whether the keys of a terminal go to this process's group.
fn in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal) == Ok(getpgrp())
}
