//! What is found where, what is missing, and what to do.
//!
//! - **In**: plain facts ([`Facts`]): homes and journals, what the CLI will delete,
//!   the ledger's file, limits of the system, settings with their origin.
//! - **Out**: a [`Diagnosis`], as text for a person and as JSON for a script.
//! - **Never**: change anything. The only file reads are in [`look`].
//! - **Look first** at [`Diagnosis::of`] (facts become findings), then [`retention`]
//!   (which journals Gemini CLI is about to delete).

mod findings;
pub mod listeners;
pub mod look;
pub mod retention;
mod telemetry;
mod text;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::config::{CliSettings, Setting};
use listeners::Listener;
use retention::{Doomed, Retention};
pub use telemetry::{TelemetryFacts, TelemetryReport};

/// Everything a diagnosis rests on.
#[derive(Clone, Debug)]
pub struct Facts {
    pub version: String,
    /// Unix ms.
    pub now: i64,
    pub homes: Vec<HomeFacts>,
    pub watch: WatchFacts,
    pub ledger: LedgerFacts,
    /// Why `serve` would refuse to listen, if it would.
    pub listener_refused: Option<String>,
    /// Why its locks cannot be used: the web configuration, or the token for writes.
    pub lock_broken: Option<String>,
    /// Where it listens; empty where its locks cannot be told.
    pub listeners: Vec<Listener>,
    pub telemetry: TelemetryFacts,
    pub settings: Vec<Setting>,
    pub unknown_variables: Vec<String>,
}

/// A home: `look::home` finds all of it.
#[derive(Clone, Debug)]
pub struct HomeFacts {
    pub name: String,
    pub path: PathBuf,
    pub state: HomeState,
    /// Whether the ledger has read all of its history.
    pub imported: bool,
    pub journals: Vec<JournalFacts>,
    pub retention: CliSettings,
    /// Directories below it that `serve` watches.
    pub directories: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HomeState {
    /// The directory does not exist yet.
    Absent,
    /// It is there and Gemini CLI never ran in it.
    NoGemini,
    /// Something keeps it from being read.
    Unreadable(String),
    Present,
}

impl HomeState {
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::NoGemini => "no_gemini",
            Self::Unreadable(_) => "unreadable",
            Self::Present => "present",
        }
    }
}

impl Serialize for HomeState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A journal: a row of the ledger, and what the CLI would say of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalFacts {
    pub project_dir: String,
    /// Below `chats`.
    pub file: String,
    pub state: String,
    pub reason: Option<String>,
    /// Unix ms.
    pub modified_at: i64,
    /// Whether Gemini CLI can resume it; `None` where that was not found out.
    pub resumable: Option<bool>,
}

/// What the system allows a watcher; `None` where there are no such limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WatchFacts {
    /// Whether the configuration asks for file events at all.
    pub enabled: bool,
    pub max_user_watches: Option<u64>,
    pub max_user_instances: Option<u64>,
}

/// The ledger's file: `look::ledger_file` finds what can be seen from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LedgerFacts {
    pub path: PathBuf,
    pub exists: bool,
    /// With its `-wal`.
    pub bytes: u64,
    /// Permission bits, on unix.
    #[serde(serialize_with = "octal")]
    pub mode: Option<u32>,
    /// Permission bits of its directory, on unix.
    #[serde(serialize_with = "octal")]
    pub directory_mode: Option<u32>,
    pub schema_version: Option<i64>,
    /// The schema this program writes.
    pub known_schema: i64,
    /// Why it could not be opened.
    pub error: Option<String>,
    /// The `serve` that holds the lock.
    pub serve_pid: Option<u32>,
}

fn octal<S: Serializer>(mode: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
    mode.map(|mode| format!("{mode:04o}")).serialize(serializer)
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    pub schema: u32,
    pub version: String,
    /// Whether nothing is wrong.
    pub healthy: bool,
    pub findings: Vec<Finding>,
    pub homes: Vec<HomeReport>,
    pub watch: WatchFacts,
    pub watched_directories: u64,
    pub ledger: LedgerFacts,
    pub listeners: Vec<Listener>,
    /// `null` where no address is known beforehand.
    pub telemetry: Option<TelemetryReport>,
    pub settings: Vec<SettingReport>,
    #[serde(skip)]
    now: i64,
}

#[derive(Clone, Debug, Serialize)]
pub struct HomeReport {
    pub name: String,
    pub path: PathBuf,
    pub state: HomeState,
    pub imported: bool,
    pub projects: usize,
    /// How many journals are there by format (`jsonl`, `json`, `subagent`, `other`).
    pub formats: BTreeMap<&'static str, usize>,
    /// How many journals the ledger knows by state, with the reason where there is one.
    pub states: BTreeMap<String, usize>,
    pub retention: Retention,
    /// Journals that Gemini CLI deletes at its next start in their project.
    pub doomed: Vec<Doomed>,
    /// Unix ms at which the next journal gets too old.
    pub next_expiry: Option<i64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SettingReport {
    pub key: &'static str,
    pub value: String,
    pub origin: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be, and good to know.
    Note,
    /// Works, and something may be lost or slow.
    Warning,
    /// Does not work.
    Wrong,
}

/// One thing to know, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    /// A stable name for scripts.
    pub code: &'static str,
    pub message: String,
    /// The line to run or the setting to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Diagnosis {
    /// Judges the facts.
    #[must_use]
    pub fn of(facts: Facts) -> Self {
        let homes: Vec<HomeReport> = facts.homes.iter().map(|home| home_report(home, facts.now)).collect();
        let findings = findings::all(&facts, &homes);
        let setting =
            |s: &Setting| SettingReport { key: s.key, value: s.value.clone(), origin: s.origin.to_string() };
        Self {
            schema: 1,
            version: facts.version,
            healthy: findings.iter().all(|finding| finding.level < Level::Wrong),
            findings,
            homes,
            watched_directories: facts.homes.iter().map(|home| home.directories).sum(),
            watch: facts.watch,
            ledger: facts.ledger,
            listeners: facts.listeners,
            telemetry: TelemetryReport::of(&facts.telemetry),
            settings: facts.settings.iter().map(setting).collect(),
            now: facts.now,
        }
    }

    /// Writes it for a person.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn write_text(&self, out: &mut dyn io::Write) -> io::Result<()> {
        text::write(self, out)
    }

    /// Writes it for a script.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        out.write_all(b"\n")
    }
}

fn home_report(home: &HomeFacts, now: i64) -> HomeReport {
    let retention = Retention::of(&home.retention);
    let mut formats = BTreeMap::new();
    let mut states = BTreeMap::new();
    let mut projects = std::collections::BTreeSet::new();
    for journal in &home.journals {
        projects.insert(&journal.project_dir);
        *formats.entry(journal.format()).or_default() += 1;
        let state = match &journal.reason {
            Some(reason) => format!("{} ({reason})", journal.state),
            None => journal.state.clone(),
        };
        *states.entry(state).or_default() += 1;
    }
    HomeReport {
        name: home.name.clone(),
        path: home.path.clone(),
        state: home.state.clone(),
        imported: home.imported,
        projects: projects.len(),
        formats,
        states,
        doomed: retention::doomed(&retention, &home.journals, now),
        next_expiry: retention::next_expiry(&retention, &home.journals, now),
        retention,
    }
}

impl JournalFacts {
    /// Whether the file is still there, as far as the ledger knows.
    #[must_use]
    pub fn is_there(&self) -> bool {
        !matches!(self.state.as_str(), "gone" | "lost")
    }

    fn format(&self) -> &'static str {
        let extension = |end: &str| self.file.ends_with(end);
        match () {
            () if self.file.contains('/') => "subagent",
            () if extension(".jsonl") => "jsonl",
            () if extension(".json") => "json",
            () => "other",
        }
    }
}
