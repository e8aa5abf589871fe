//! Starting a command exactly as it was written: no shell, the same
//! environment, directory and process group.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::process::{Child, Command};

/// The command could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be started: {error}", .program.display())]
pub struct NotStarted {
    program: OsString,
    error: io::Error,
}

impl NotStarted {
    /// What kept a program from being started.
    #[must_use]
    pub fn new(program: &OsString, error: io::Error) -> Self {
        Self { program: program.clone(), error }
    }

    /// What a shell would exit with: 127 where there is no such program, else 126.
    #[must_use]
    pub fn code(&self) -> u8 {
        if self.error.kind() == ErrorKind::NotFound { 127 } else { 126 }
    }
}

/// A command that gets SIGTERM when the thread that starts it ends before it
/// does (Linux): start it from the main thread.
#[must_use]
pub fn command(program: &OsString, arguments: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    #[cfg(target_os = "linux")]
    die_with_us(&mut command);
    command
}

/// Starts a command of [`command`].
///
/// # Errors
/// It cannot be started; nothing ran.
pub fn spawn(command: &mut Command) -> Result<Child, NotStarted> {
    command.spawn().map_err(|error| NotStarted { program: command.get_program().to_owned(), error })
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "only between fork and exec can a process ask for its parent's death signal")]
fn die_with_us(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let us = getpid();
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // Had we ended before that, nobody would tell it.
        if getppid() == Some(us) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    // SAFETY: the closure makes two system calls, allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(ask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d2_6_what_cannot_be_started_says_so_as_a_shell_does() {
        let directory = tempfile::tempdir().unwrap();
        for (program, code) in [
            (directory.path().join("nowhere").into_os_string(), 127),
            ("gemgauge-no-such-program".into(), 127),
            (directory.path().as_os_str().to_owned(), 126),
        ] {
            let error = spawn(&mut command(&program, &[])).unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            assert!(error.to_string().starts_with(&program.display().to_string()), "{error}");
        }
    }
}
