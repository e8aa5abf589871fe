//! Tells a program, on its standard input.

use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Notice;
use super::stopper::Stopper;
use crate::app::clock::Clock;
use crate::config::HookCommand;

/// A program that takes longer is ended.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Between looks at whether it has ended.
const POLL: Duration = Duration::from_millis(50);

/// Whether the program took the notice; it gets one chance.
pub(super) fn tell(command: &HookCommand, notice: &Notice, clock: Clock, stopper: &Stopper) -> Option<bool> {
    let budget = &notice.firing.budget;
    match run(command, &notice.payload, clock, stopper) {
        Ok(Some(true)) => {
            tracing::info!(budget, threshold = %notice.firing.threshold, "the hook's command was told");
            Some(true)
        }
        Ok(Some(false)) => Some(false),
        Ok(None) => None,
        Err(error) => {
            tracing::warn!(budget, program = command.program(), %error, "the hook's command cannot be run");
            Some(false)
        }
    }
}

fn run(command: &HookCommand, payload: &str, clock: Clock, stopper: &Stopper) -> io::Result<Option<bool>> {
    let mut program = Command::new(command.program());
    program.args(command.args()).stdin(Stdio::piped()).stdout(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut program, 0);
    let mut child = program.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // It fits into the pipe; a program that reads nothing is no failure.
        let _ = writeln!(input, "{payload}");
    }
    let started = clock.elapsed();
    loop {
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                tracing::warn!(program = command.program(), %status, "the hook's command failed");
            }
            return Ok(Some(status.success()));
        }
        let late = clock.elapsed().saturating_sub(started) >= TIMEOUT;
        if late {
            tracing::warn!(program = command.program(), "the hook's command took too long and was ended");
        }
        if late || stopper.wait(POLL) {
            end(&mut child);
            return Ok(late.then_some(false));
        }
    }
}

/// Ends it, and what it started.
fn end(child: &mut Child) {
    #[cfg(unix)]
    let _ = rustix::process::kill_process_group(
        rustix::process::Pid::from_child(child),
        rustix::process::Signal::KILL,
    );
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}
