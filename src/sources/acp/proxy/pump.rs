//! The two copy loops. A chunk goes to its peer first, whole, and only then to
//! the observer; a slow peer holds its loop back, as a pipe would (D2 2 and 3).

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, read, write};

use crate::sources::acp::tee::Tap;

const CHUNK: usize = 64 << 10;

/// From the client to the agent, until either is gone or `stop` is closed at
/// its other end. Then the agent's standard input is closed.
pub(super) fn client_to_agent(input: ChildStdin, stop: OwnedFd, mut tap: Tap) {
    // A full pipe must not keep us from seeing `stop`. The flag is that of our end alone.
    if let Ok(flags) = fcntl_getfl(&input) {
        let _ = fcntl_setfl(&input, flags | OFlags::NONBLOCK);
    }
    let client = std::io::stdin();
    let (client, stop) = (client.as_fd(), Some(stop.as_fd()));
    let mut buffer = vec![0; CHUNK];
    while let Some(bytes) = next(client, &mut buffer, stop) {
        tap.read();
        if !write_all(input.as_fd(), bytes, stop) {
            break;
        }
        tap.written(bytes);
    }
    drop(input);
    // Who writes to us from now on learns that nobody reads.
    if let Ok(nothing) = File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(nothing);
    }
}

/// From the agent to the client, until either is gone. Then our standard
/// output is closed.
///
/// `moving` is odd while there are bytes to pass on, and grows with every chunk.
pub(super) fn agent_to_client(output: ChildStdout, mut tap: Tap, moving: &AtomicU64) {
    let client = std::io::stdout();
    let mut buffer = vec![0; CHUNK];
    while let Some(bytes) = next(output.as_fd(), &mut buffer, None) {
        moving.fetch_add(1, Ordering::AcqRel);
        tap.read();
        let written = write_all(client.as_fd(), bytes, None);
        // What the agent said is evidence, whether or not anybody took it.
        tap.written(bytes);
        if !written {
            break;
        }
        moving.fetch_add(1, Ordering::AcqRel);
    }
    drop(output);
    if let Ok(nothing) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(nothing);
    }
}

/// The next bytes; `None` at the end, after a failure, or told to stop.
fn next<'b>(from: BorrowedFd<'_>, buffer: &'b mut [u8], stop: Option<BorrowedFd<'_>>) -> Option<&'b [u8]> {
    if stop.is_some() && !ready(from, PollFlags::IN, stop) {
        return None;
    }
    loop {
        match read(from, &mut *buffer) {
            Ok(0) => return None,
            Ok(bytes) => return Some(&buffer[..bytes]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if ready(from, PollFlags::IN, stop) => {}
            Err(_) => return None,
        }
    }
}

/// Whether all of it was written.
fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8], stop: Option<BorrowedFd<'_>>) -> bool {
    while !bytes.is_empty() {
        match write(to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if ready(to, PollFlags::OUT, stop) => {}
            Err(_) => return false,
        }
    }
    true
}

/// Waits until something can be done with `fd`; false if told to stop before.
fn ready(fd: BorrowedFd<'_>, what: PollFlags, stop: Option<BorrowedFd<'_>>) -> bool {
    loop {
        let waiting = PollFd::from_borrowed_fd(fd, what);
        let done = match stop {
            None => poll(&mut [waiting], None).map(|_| false),
            Some(stop) => {
                let mut both = [waiting, PollFd::from_borrowed_fd(stop, PollFlags::IN)];
                poll(&mut both, None).map(|_| !both[1].revents().is_empty())
            }
        };
        match done {
            Ok(stopped) => return !stopped,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
