//! Where there are no Unix signals: the same copy loops over the standard
//! library. Nobody has watched it run on Windows yet.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use crate::ledger::doors::Exit;
use crate::sources::acp::tee::Tap;

const CHUNK: usize = 64 << 10;

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
    /// The command cannot be started, or is empty.
    pub fn start(command: &[OsString]) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut child =
            Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().expect("it was asked for");
        let output = child.stdout.take().expect("it was asked for");
        Ok(Self { child, input, output })
    }

    /// Copies what client and agent say to each other until the agent has
    /// ended, and says how.
    #[must_use]
    pub fn attend(mut self, client: Tap, agent: Tap) -> Exit {
        let input = self.input;
        thread::spawn(move || copy(io::stdin().lock(), input, client));
        copy(self.output, io::stdout().lock(), agent);
        let code = self.child.wait().ok().and_then(|status| status.code());
        Exit::Code(code.unwrap_or(1))
    }
}

fn copy(mut from: impl Read, mut to: impl Write, mut tap: Tap) {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        tap.read(read);
        if to.write_all(&buffer[..read]).and_then(|()| to.flush()).is_err() {
            return;
        }
        tap.written(&buffer[..read]);
    }
}

/// The exit code for an agent that a signal ended.
#[must_use]
pub fn die_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
