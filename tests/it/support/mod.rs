//! What integration tests share: a machine of their own to run gemgauge on.

#[cfg(unix)]
pub(crate) mod acp;
pub(crate) mod books;
#[cfg(unix)]
pub(crate) mod browser;
#[cfg(unix)]
pub(crate) mod chats;
pub(crate) mod code_assist;
#[cfg(unix)]
pub(crate) mod exposition;
pub(crate) mod files;
pub(crate) mod otlp;
pub(crate) mod overheard;
#[cfg(unix)]
pub(crate) mod poll;
pub(crate) mod records;
#[cfg(unix)]
pub(crate) mod service;
pub(crate) mod signed_in;
pub(crate) mod skip;
pub(crate) mod spool;
#[cfg(unix)]
pub(crate) mod tls;
#[cfg(unix)]
pub(crate) mod transcript;
#[cfg(unix)]
pub(crate) mod tree;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The configuration of property tests; `PROPTEST_CASES` makes them longer.
pub(crate) fn cases(cases: u32) -> proptest::test_runner::Config {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|asked| asked.parse().ok());
    proptest::test_runner::Config {
        cases: asked.unwrap_or(cases),
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    }
}

/// A directory with a user's home in it. What runs there sees nothing of the
/// real user: no environment but `HOME`, and a time zone.
pub(crate) struct Sandbox {
    dir: tempfile::TempDir,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        Self { dir }
    }

    /// The working directory of what runs.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The ledger, where it is by default.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.home().join(".local/share/gemgauge/ledger.db")
    }

    /// The user's home, which is the default Gemini home.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Writes a file below the sandbox and makes the directories it needs.
    pub(crate) fn write(&self, file: &str, content: &str) -> PathBuf {
        let path = self.dir.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// gemgauge, ready to run here.
    pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gemgauge"));
        command.args(args).current_dir(self.path()).env_clear().env("HOME", self.home()).env("TZ", "UTC");
        command
    }

    /// Runs gemgauge to its end.
    pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Said {
        self.command(args).output().unwrap().into()
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it was not killed"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
