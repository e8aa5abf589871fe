//! Journals, written the way Gemini CLI writes them, with a running total of
//! what they hold.

use std::cell::{Cell, RefCell};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use gemgauge::ledger::tokens::{Classes, Reading};
use jiff::Timestamp;

pub(crate) const MODEL: &str = "gemini-2.5-pro";

/// One project directory of a home.
pub(crate) struct Project {
    dir: PathBuf,
    root: String,
}

/// One session's journal.
pub(crate) struct Journal {
    pub(crate) path: PathBuf,
    pub(crate) session: String,
    next: Cell<u64>,
    spent: RefCell<Spent>,
}

/// Requests and their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) requests: u64,
    pub(crate) tokens: Classes,
}

impl Spent {
    pub(crate) fn add(&mut self, requests: u64, tokens: &Classes) {
        self.requests += requests;
        self.tokens.add(tokens);
    }

    pub(crate) fn plus(mut self, other: Self) -> Self {
        self.add(other.requests, &other.tokens);
        self
    }

    pub(crate) fn pair(self) -> (u64, Classes) {
        (self.requests, self.tokens)
    }
}

/// Now, as the CLI writes times.
pub(crate) fn stamp() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

impl Project {
    /// Makes `<home>/.gemini/tmp/<name>` with what the CLI puts there.
    pub(crate) fn new(home: &Path, name: &str) -> Self {
        let dir = home.join(".gemini/tmp").join(name);
        let root = format!("/home/dev/src/{name}");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(".project_root"), &root).unwrap();
        fs::create_dir_all(dir.join("chats")).unwrap();
        Self { dir, root }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    /// Begins the session's journal: its name, and its header.
    pub(crate) fn session(&self, id: &str) -> Journal {
        let minute = Timestamp::now().strftime("%Y-%m-%dT%H-%M");
        let path = self.dir.join("chats").join(format!("session-{minute}-{}.jsonl", &id[..8]));
        let journal = Journal { path, session: id.to_owned(), next: Cell::new(1), spent: RefCell::default() };
        let now = stamp();
        journal.line(&format!(
            r#"{{"sessionId":"{id}","projectHash":"0","startTime":"{now}","lastUpdated":"{now}","kind":"main"}}"#
        ));
        journal
    }
}

impl Journal {
    /// Appends bytes as they are.
    pub(crate) fn raw(&self, bytes: &[u8]) {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path).unwrap();
        file.write_all(bytes).unwrap();
    }

    pub(crate) fn line(&self, line: &str) {
        self.raw(format!("{line}\n").as_bytes());
    }

    /// Appends a prompt, an answer that was billed, and what follows it.
    pub(crate) fn request(&self) -> Spent {
        let n = self.next.replace(self.next.get() + 1);
        let now = stamp();
        self.line(&format!(
            r#"{{"id":"u{n}","timestamp":"{now}","type":"user","content":[{{"text":"prompt {n}"}}]}}"#
        ));
        let (id, reading) = (format!("{}#{n}", self.session), reading(n));
        self.line(&answer(&id, MODEL, reading));
        self.line(&format!(r#"{{"$set":{{"lastUpdated":"{now}"}}}}"#));
        let spent = Spent { requests: 1, tokens: reading.classes() };
        self.spent.borrow_mut().add(1, &spent.tokens);
        spent
    }

    pub(crate) fn requests(&self, count: u64) {
        for _ in 0..count {
            self.request();
        }
    }

    /// What its requests were billed.
    pub(crate) fn spent(&self) -> Spent {
        *self.spent.borrow()
    }

    pub(crate) fn len(&self) -> u64 {
        self.path.metadata().unwrap().len()
    }

    pub(crate) fn delete(&self) {
        fs::remove_file(&self.path).unwrap();
    }

    /// Makes it look as if nobody wrote it for an hour.
    pub(crate) fn age(&self) {
        let file = File::options().write(true).open(&self.path).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3600)).unwrap();
    }
}

/// Made-up counts, none equal to another of the same request or of a neighbour.
pub(crate) fn reading(n: u64) -> Reading {
    Reading {
        prompt: 5000 + 111 * n,
        cached: 2000 + 7 * n,
        tool: 3 + n,
        output: 100 + 13 * n,
        thoughts: 50 + 3 * n,
    }
}

/// The line of a billed answer.
pub(crate) fn answer(id: &str, model: &str, reading: Reading) -> String {
    let Reading { prompt, cached, tool, output, thoughts } = reading;
    let total = prompt + tool + output + thoughts;
    let now = stamp();
    format!(
        r#"{{"id":"{id}","timestamp":"{now}","type":"gemini","content":"done.","thoughts":[{{"subject":"Thinking","description":"of it","timestamp":"{now}"}}],"tokens":{{"input":{prompt},"output":{output},"cached":{cached},"thoughts":{thoughts},"tool":{tool},"total":{total}}},"model":"{model}"}}"#
    )
}
