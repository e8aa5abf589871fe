//! A running `gemgauge serve` and a client that takes nothing for granted.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::Sandbox;
use super::chats::Spent;
use super::exposition::Exposition;
use super::poll::until;

/// A child that serves; it is killed where a test forgets it.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    said: Arc<Mutex<Vec<String>>>,
    log: PathBuf,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// Reads an answer to its end.
    pub(crate) fn read(from: &mut impl std::io::Read) -> std::io::Result<Self> {
        let mut text = String::new();
        from.read_to_string(&mut text)?;
        let bad = || std::io::Error::other(format!("no HTTP: {text}"));
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(bad)?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).ok_or_else(bad)?;
        let header = |line: &str| {
            line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        Ok(Self { status, headers: lines.filter_map(header).collect(), body: body.to_owned() })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Sandbox {
    /// The command that serves on a free port.
    pub(crate) fn serve_command(&self, args: &[&str]) -> Command {
        self.command(&[&["serve", "--web.listen-address", "127.0.0.1:0"], args].concat())
    }

    /// Serves the user's home and returns once it says where.
    pub(crate) fn serve(&self, args: &[&str]) -> Service {
        Service::start(self.serve_command(args), self.path().join("serve.log"))
    }

    /// Serves, and returns once the first import is done.
    pub(crate) fn serve_ready(&self, args: &[&str]) -> Service {
        let service = self.serve(args);
        service.wait_ready();
        service
    }
}

impl Service {
    /// Starts it; standard error is added to `log`.
    pub(crate) fn start(mut command: Command, log: PathBuf) -> Self {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).spawn().unwrap();
        let said = Arc::<Mutex<Vec<String>>>::default();
        let (lines, out) = (said.clone(), BufReader::new(child.stdout.take().unwrap()));
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                lines.lock().unwrap().push(line);
            }
        });
        let address = until("the address", || {
            let ended = child.try_wait().unwrap();
            let said = said.lock().unwrap();
            let address = said.iter().find_map(|line| {
                let at = line.strip_prefix("gemgauge serves http")?.trim_start_matches('s');
                at.strip_prefix("://")?.split('/').next()?.parse().ok()
            });
            match (address, ended) {
                (Some(address), _) => Ok(address),
                (None, None) => Err(said.clone()),
                (None, Some(status)) => {
                    panic!("serve ended with {status}: {}", std::fs::read_to_string(&log).unwrap())
                }
            }
        });
        Self { child, address, said, log }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lines on its standard output.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// Its standard error.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// One request as it stands on the wire; the answer is read to its end.
    pub(crate) fn exchange(&self, request: &str) -> std::io::Result<Answer> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(request.as_bytes())?;
        Answer::read(&mut stream)
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        self.exchange(&(request + "\r\n")).unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }

    /// A document of the API.
    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// One scrape.
    pub(crate) fn metrics(&self) -> Exposition {
        let answer = self.get("/metrics");
        assert_eq!(answer.status, 200);
        Exposition::parse(&answer.body)
    }

    /// The total of everything in the ledger.
    pub(crate) fn spent(&self) -> Spent {
        total(&self.json("/api/v1/report/sessions?since=all"))
    }

    /// Waits until the ledger holds exactly that.
    pub(crate) fn wait_spent(&self, wanted: Spent) {
        super::poll::until_eq("these figures", &wanted, || self.spent());
    }

    pub(crate) fn wait_ready(&self) {
        until("the first import", || {
            let answer = self.get("/-/ready");
            if answer.status == 200 { Ok(()) } else { Err(answer) }
        });
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Asks it to end and returns its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        let log = self.log();
        until("the end after SIGTERM", || self.child.try_wait().unwrap().ok_or(&log)).code()
    }

    /// Kills it in the middle of whatever it does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The total of a report's JSON.
pub(crate) fn total(report: &Value) -> Spent {
    spent(&report["total"])
}

/// Requests and tokens of a row of a report's JSON.
pub(crate) fn spent(row: &Value) -> Spent {
    use gemgauge::ledger::tokens::{Class, Classes};
    let mut tokens = Classes::default();
    for class in Class::ALL {
        *tokens.get_mut(class) = row["tokens"][class.as_str()].as_u64().unwrap_or(0);
    }
    Spent { requests: row["requests"].as_u64().unwrap(), tokens }
}
