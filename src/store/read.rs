//! Read models: what the surfaces ask of the ledger, each in one short read
//! transaction.

use std::collections::BTreeMap;
use std::ops::Range;

use rusqlite::{Connection, Transaction};

use super::StoreError;
use crate::ledger::bound::Reasons;
use crate::ledger::model::Role;
use crate::ledger::tokens::{Classes, Reading};

/// A home with its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeRow {
    pub id: i64,
    pub path: String,
    pub name: String,
    /// Whether its first import is done.
    pub imported: bool,
}

/// A project under its label; hash directories are already folded into their slug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRow {
    pub id: i64,
    pub home_id: i64,
    pub dir: String,
    pub name: String,
}

/// A session, nameless ones already folded into the session they fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    pub id: i64,
    /// The CLI's session id, or `~` and eight characters.
    pub session: String,
    pub home_id: i64,
    /// The id of the project it is shown under.
    pub project_id: i64,
    /// Unix ms of the earliest header.
    pub started_at: Option<i64>,
    /// Unix ms of the first and the last prompt a person gave, where seen.
    pub prompts: Option<(i64, i64)>,
    /// What demotes its figure beyond being seen by the watcher only:
    /// torn lines still open, journals that failed or were lost.
    pub reasons: Reasons,
    /// No file that held its requests remains.
    pub source_deleted: bool,
}

/// Everything a request row refers to by id.
#[derive(Clone, Debug, Default)]
pub struct Dimensions {
    pub homes: BTreeMap<i64, HomeRow>,
    pub projects: BTreeMap<i64, ProjectRow>,
    pub models: BTreeMap<i64, String>,
    pub sessions: BTreeMap<i64, SessionRow>,
}

/// One billed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRow {
    pub id: i64,
    /// A key of [`Dimensions::sessions`]: its home and project are the session's.
    pub session_id: i64,
    pub model_id: i64,
    pub role: Role,
    /// When the answer ended, unix ms.
    pub at: i64,
    pub reading: Reading,
    pub model_inferred: bool,
}

/// A counter label set with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TupleRow {
    pub id: i64,
    pub home: String,
    pub project: String,
    pub model: String,
    pub role: String,
    /// Unix ms of its birth; `None` for what a first import brought.
    pub born_at: Option<i64>,
    pub requests: u64,
    pub tokens: Classes,
}

/// One journal as `doctor` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRow {
    pub home_id: i64,
    pub project_dir: String,
    pub file: String,
    pub state: String,
    pub reason: Option<String>,
    pub offset: u64,
    pub len: u64,
    /// Unix ms of the last modification seen.
    pub modified_at: i64,
}

/// A line that could not be decoded, of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecodableRow {
    pub project_dir: String,
    pub file: String,
    pub offset: u64,
    pub len: u64,
    pub reason: String,
    pub at: i64,
    /// Whether every message id legible in it was read elsewhere.
    pub settled: bool,
}

/// A consistent view of the ledger: all calls see the same moment.
pub struct Snapshot<'c> {
    pub(super) tx: Transaction<'c>,
}

/// A reading connection (`query_only`).
pub struct Reader {
    pub(super) connection: Connection,
}

impl Reader {
    /// Runs `f` on one consistent view of the ledger.
    ///
    /// # Errors
    /// Whatever SQLite or `f` says.
    pub fn snapshot<T>(&mut self, f: impl FnOnce(&Snapshot<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        f(&Snapshot { tx: self.connection.transaction()? })
    }
}

impl Snapshot<'_> {
    /// Homes, projects, models and sessions.
    pub fn dimensions(&self) -> Result<Dimensions, StoreError> {
        todo!()
    }

    /// Calls `each` for every request with `at` in `range` (unix ms).
    pub fn requests(&self, range: Range<i64>, mut each: impl FnMut(RequestRow)) -> Result<(), StoreError> {
        todo!()
    }

    /// Calls `each` for every request of one session, oldest first.
    pub fn session_requests(&self, session_id: i64) -> Result<Vec<(String, RequestRow)>, StoreError> {
        todo!()
    }

    /// Undecodable lines of one session, in file order.
    pub fn session_undecodable(&self, session_id: i64) -> Result<Vec<UndecodableRow>, StoreError> {
        todo!()
    }

    /// Counter label sets with their values, by id.
    pub fn tuples(&self) -> Result<Vec<TupleRow>, StoreError> {
        todo!()
    }

    /// The service's own counters: (name, label) to value.
    pub fn counters(&self) -> Result<BTreeMap<(String, String), u64>, StoreError> {
        todo!()
    }

    /// How many journals are in each state.
    pub fn journal_states(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        todo!()
    }

    /// Every journal ever noticed.
    pub fn journals(&self) -> Result<Vec<JournalRow>, StoreError> {
        todo!()
    }
}
