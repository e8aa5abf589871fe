//! Where there are no Unix signals: the same copy loops over the standard
//! library. Nobody has watched it run on Windows yet.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::AtomicU64;
use std::thread;

use super::NotStarted;
use crate::ledger::doors::Exit;
use crate::sources::acp::tee::Tap;
use crate::sources::process::{command, copy, spawn};

/// A running agent, with its streams in our hands.
pub struct Agent {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Agent {
    /// Starts the command as it stands.
    ///
    /// # Errors
    /// The command cannot be started; nothing ran.
    pub fn start(program: &OsString, arguments: &[OsString]) -> Result<Self, NotStarted> {
        let mut command = command(program, arguments);
        let mut child = spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let input = child.stdin.take().expect("it was asked for");
        let output = child.stdout.take().expect("it was asked for");
        Ok(Self { child, input, output })
    }

    /// Copies what client and agent say to each other until the agent has
    /// ended, and says how.
    #[must_use]
    pub fn attend(mut self, client: Tap, agent: Tap) -> Exit {
        let input = self.input;
        thread::spawn(move || pass(io::stdin().lock(), input, client));
        pass(self.output, io::stdout().lock(), agent);
        let code = self.child.wait().ok().and_then(|status| status.code());
        Exit::Code(code.unwrap_or(1))
    }
}

fn pass(from: impl Read, to: impl Write, mut tap: Tap) {
    let _ = copy(from, to, &AtomicU64::new(0), |bytes| {
        tap.read();
        tap.written(bytes);
    });
}
