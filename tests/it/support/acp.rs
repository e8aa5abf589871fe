//! An agent behind the proxy, and the client in front of it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use gemgauge::ledger::doors::{DoorEvent, EventKind};
use serde_json::{Value, json};

use super::Sandbox;
use super::skip::missing;

/// The command of the scripted agent; `None`, with a word, where there is no Python.
pub(crate) fn agent(mode: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|python| python.status.success()) {
        missing("python3");
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/agent.py");
    let words = ["python3", script, mode].into_iter().chain(arguments.iter().copied());
    Some(words.map(str::to_owned).collect())
}

impl Sandbox {
    /// The proxy in front of a command, ready to run.
    pub(crate) fn proxy<S: AsRef<std::ffi::OsStr>>(&self, command: &[S]) -> Command {
        let mut proxy = self.command(&["acp", "--"]);
        proxy.args(command).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        proxy
    }

    /// The same command without it, in the same surroundings.
    pub(crate) fn bare<S: AsRef<std::ffi::OsStr>>(&self, command: &[S]) -> Command {
        let mut bare = Command::new(&command[0]);
        bare.args(&command[1..]).current_dir(self.path()).env_clear();
        bare.env("HOME", self.home()).env("TZ", "UTC");
        bare.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        bare
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.home().join(".local/state/gemgauge/spool")
    }

    /// What the spools hold, one list a file, in the order of their first events.
    pub(crate) fn spooled(&self) -> Vec<Vec<DoorEvent>> {
        let mut spools = Vec::new();
        for entry in std::fs::read_dir(self.spool()).into_iter().flatten() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let events: Vec<DoorEvent> =
                text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
            spools.push(events);
        }
        spools.sort_by_key(|events| events.first().map(|event| event.at));
        spools
    }

    /// What the one spool holds.
    pub(crate) fn events(&self) -> Vec<EventKind> {
        let mut spools = self.spooled();
        assert_eq!(spools.len(), 1, "{spools:?}");
        spools.remove(0).into_iter().map(|event| event.kind).collect()
    }
}

/// A client of the scripted agent.
pub(crate) struct Client {
    pub(crate) proxy: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut proxy = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (proxy.stdin.take(), BufReader::new(proxy.stdout.take().unwrap()));
        Self { proxy, input, output, next: 0 }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().expect("it is open"), "{message}").unwrap();
    }

    /// Asks and returns the answer; what comes before it is passed over.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the agent is gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.next {
                return message;
            }
        }
    }

    /// A handshake, a session and a prompt.
    pub(crate) fn one_turn(&mut self) {
        self.call("initialize", &json!({}));
        self.call("session/new", &json!({"cwd": "/", "mcpServers": []}));
        let answer = self.call("session/prompt", &json!({"sessionId": "s-1", "prompt": []}));
        assert_eq!(answer["result"]["stopReason"], "end_turn");
    }

    /// Closes standard input and waits for the end.
    pub(crate) fn close(mut self) -> ExitStatus {
        self.input = None;
        self.proxy.wait().unwrap()
    }
}
