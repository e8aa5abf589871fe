//! How a process ended, and ending the same way.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::ledger::doors::Exit;

/// How a process ended.
#[must_use]
pub fn of_status(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(1),
    }
}

/// Ends this process the way another one ended: with its code, or by the
/// signal that ended it, without a second core dump. Comes back for a code
/// only, and for a signal that cannot be raised (then 128 and its number, as a
/// shell says it).
#[must_use]
pub fn leave(exit: Exit) -> ExitCode {
    match exit {
        Exit::Code(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        Exit::Signal(signal) => {
            let core = getrlimit(Resource::Core);
            let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..core });
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            ExitCode::from(u8::try_from(128 + (signal & 0x7f)).unwrap_or(u8::MAX))
        }
    }
}
