//! Read models: what the surfaces ask of the ledger, each in one short read
//! transaction.

use std::collections::BTreeMap;
use std::ops::Range;

use rusqlite::{Connection, Row, Transaction};

use super::StoreError;
use crate::ledger::bound::{Reason, Reasons};
use crate::ledger::money::Picodollars;
use crate::ledger::tokens::{Class, Classes};

mod spend;
mod turns;

pub use super::quota::read::{BucketRow, QuotaHomeRow, QuotaModelRow, QuotaRows, RefusalRow};
pub use spend::{Claim, Mark, RequestRow};
pub use turns::{ConnectionRow, CounterRow, OpenTurn, SessionSpend, SessionStory, TurnRow, TurnsStamp};

/// A home with its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeRow {
    pub id: i64,
    pub path: String,
    pub name: String,
    /// Whether its first import is done.
    pub imported: bool,
}

/// A project under its label, whatever directories it has below `tmp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRow {
    pub id: i64,
    pub home_id: i64,
    pub name: String,
}

/// A session, nameless ones already folded into the session they fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// The agent that made it, where that is not Gemini CLI: it is not measured (accounting R1).
    pub runtime: Option<String>,
    /// What an orchestrator says it is for (accounting R45).
    pub session_role: Option<String>,
}

/// Everything a request row refers to by id.
#[derive(Clone, Debug, Default)]
pub struct Dimensions {
    pub homes: BTreeMap<i64, HomeRow>,
    pub projects: BTreeMap<i64, ProjectRow>,
    pub models: BTreeMap<i64, String>,
    pub sessions: BTreeMap<i64, SessionRow>,
}

/// A counter label set with its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// At the first price of each request: priced and not estimated, by class.
    pub cost: [Picodollars; 5],
    pub cost_estimated: Picodollars,
    pub cache_savings: Picodollars,
    pub long_context_surcharge: Picodollars,
    /// Tokens without a price.
    pub unpriced: Classes,
    /// What repricing changed since, signed.
    pub cost_adjustment: Picodollars,
    /// Tokens and their cost that became final, exact and at least.
    pub settled: [(u64, Picodollars); 2],
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
    pub fn snapshot<T>(
        &mut self,
        f: impl FnOnce(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        f(&Snapshot { tx: self.connection.transaction()? })
    }
}

impl Snapshot<'_> {
    /// Homes, projects, models and sessions.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn dimensions(&self) -> Result<Dimensions, StoreError> {
        let mut dimensions = Dimensions { homes: self.homes()?, ..Dimensions::default() };
        self.each("SELECT id, home_id, name FROM projects WHERE folded_into IS NULL", [], |row| {
            let project = ProjectRow { id: row.get(0)?, home_id: row.get(1)?, name: row.get(2)? };
            dimensions.projects.insert(project.id, project);
            Ok(())
        })?;
        self.each("SELECT id, name FROM models", [], |row| {
            dimensions.models.insert(row.get(0)?, row.get(1)?);
            Ok(())
        })?;
        self.sessions(&mut dimensions)?;
        Ok(dimensions)
    }

    /// Sessions, with nameless ones folded into the session they fit.
    fn sessions(&self, dimensions: &mut Dimensions) -> Result<(), StoreError> {
        let mut folded = Vec::new();
        self.each(
            "SELECT s.id, s.session, s.home_id, coalesce(p.folded_into, p.id),
                    (SELECT min(started_at) FROM session_starts WHERE session_id = s.id),
                    s.first_prompt_at, s.last_prompt_at, s.resolved_to, s.runtime,
                    (SELECT max(session_role) FROM connection_sessions WHERE session_id = s.id)
             FROM sessions s JOIN projects p ON p.id = s.project_id",
            [],
            |row| {
                let session = SessionRow {
                    id: row.get(0)?,
                    session: row.get(1)?,
                    home_id: row.get(2)?,
                    project_id: row.get(3)?,
                    started_at: row.get(4)?,
                    prompts: row.get::<_, Option<i64>>(5)?.zip(row.get(6)?),
                    reasons: Reasons::NONE,
                    source_deleted: false,
                    runtime: row.get(8)?,
                    session_role: row.get(9)?,
                };
                if let Some(target) = row.get(7)? {
                    folded.push((session.id, target, session.prompts));
                }
                dimensions.sessions.insert(session.id, session);
                Ok(())
            },
        )?;
        let mut shown_as = BTreeMap::new();
        for (id, target, prompts) in folded {
            dimensions.sessions.remove(&id);
            shown_as.insert(id, target);
            if let Some(session) = dimensions.sessions.get_mut(&target) {
                session.prompts = match (session.prompts, prompts) {
                    (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
                    (a, b) => a.or(b),
                };
            }
        }
        self.reasons(dimensions, &shown_as)
    }

    /// What demotes each session, and whose files are all gone.
    fn reasons(&self, dimensions: &mut Dimensions, shown_as: &BTreeMap<i64, i64>) -> Result<(), StoreError> {
        let mut demote = |sql: &str, reason: Reason| {
            self.each(sql, [], |row| {
                let id: i64 = row.get(0)?;
                if let Some(session) = dimensions.sessions.get_mut(shown_as.get(&id).unwrap_or(&id)) {
                    session.reasons.insert(reason);
                }
                Ok(())
            })
        };
        demote(
            &format!("SELECT DISTINCT u.session_id FROM undecodable u WHERE NOT ({SETTLED})"),
            Reason::TornLine,
        )?;
        demote(
            "SELECT DISTINCT js.session_id FROM journals j JOIN journal_sessions js ON js.journal_id = j.id
             WHERE j.failed IS NOT NULL OR j.state = 'failed'",
            Reason::JournalFailed,
        )?;
        demote(
            "SELECT DISTINCT js.session_id FROM journals j JOIN journal_sessions js ON js.journal_id = j.id
             WHERE j.state = 'lost'",
            Reason::JournalLost,
        )?;
        let mut left: BTreeMap<i64, bool> = BTreeMap::new();
        self.each(
            "SELECT js.session_id, max(j.state NOT IN ('gone', 'lost'))
             FROM journal_sessions js JOIN journals j ON j.id = js.journal_id GROUP BY js.session_id",
            [],
            |row| {
                let id: i64 = row.get(0)?;
                *left.entry(*shown_as.get(&id).unwrap_or(&id)).or_default() |= row.get::<_, bool>(1)?;
                Ok(())
            },
        )?;
        for (id, left) in left {
            if let Some(session) = dimensions.sessions.get_mut(&id) {
                session.source_deleted = !left;
            }
        }
        Ok(())
    }

    /// Homes by id.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn homes(&self) -> Result<BTreeMap<i64, HomeRow>, StoreError> {
        let mut homes = BTreeMap::new();
        self.each("SELECT id, path, name, imported_at IS NOT NULL FROM homes", [], |row| {
            let home =
                HomeRow { id: row.get(0)?, path: row.get(1)?, name: row.get(2)?, imported: row.get(3)? };
            homes.insert(home.id, home);
            Ok(())
        })?;
        Ok(homes)
    }

    /// Sessions with a prompt or a request in `range` (unix ms), as (session id, home id).
    ///
    /// # Errors
    /// What SQLite says.
    pub fn active_sessions(&self, range: Range<i64>) -> Result<BTreeMap<i64, i64>, StoreError> {
        let mut sessions = BTreeMap::new();
        self.each(
            "SELECT coalesce(resolved_to, id), home_id FROM sessions
             WHERE (last_at >= ?1 AND last_at < ?2) OR (last_prompt_at >= ?1 AND last_prompt_at < ?2)",
            [range.start, range.end],
            |row| {
                sessions.insert(row.get(0)?, row.get(1)?);
                Ok(())
            },
        )?;
        Ok(sessions)
    }

    /// Undecodable lines of one session, in file order.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn session_undecodable(&self, session_id: i64) -> Result<Vec<UndecodableRow>, StoreError> {
        let mut lines = Vec::new();
        self.each(
            &format!(
                "SELECT j.project_dir, j.file, u.offset, u.len, u.reason, u.at, {SETTLED}
                 FROM undecodable u JOIN journals j ON j.id = u.journal_id
                 WHERE u.session_id = ?1 OR u.session_id IN (SELECT id FROM sessions WHERE resolved_to = ?1)
                 ORDER BY j.file, u.offset"
            ),
            [session_id],
            |row| {
                lines.push(UndecodableRow {
                    project_dir: row.get(0)?,
                    file: row.get(1)?,
                    offset: count(row, 2)?,
                    len: count(row, 3)?,
                    reason: row.get(4)?,
                    at: row.get(5)?,
                    settled: row.get(6)?,
                });
                Ok(())
            },
        )?;
        Ok(lines)
    }

    /// Counter label sets with their values, by id.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn tuples(&self) -> Result<Vec<TupleRow>, StoreError> {
        let mut tuples = Vec::new();
        self.each(
            "SELECT t.id, h.name, t.project, t.model, t.role, t.born_at, t.requests,
                    t.uncached_input, t.cached_input, t.tool_input, t.output, t.thoughts,
                    t.cost_uncached_input, t.cost_cached_input, t.cost_tool_input, t.cost_output, t.cost_thoughts,
                    t.cost_estimated, t.cache_savings, t.long_context_surcharge,
                    t.unpriced_uncached_input, t.unpriced_cached_input, t.unpriced_tool_input,
                    t.unpriced_output, t.unpriced_thoughts, t.cost_adjustment,
                    t.settled_exact, t.settled_at_least, t.settled_cost_exact, t.settled_cost_at_least
             FROM tuples t CROSS JOIN homes h ON h.id = t.home_id ORDER BY t.id",
            [],
            |row| {
                tuples.push(TupleRow {
                    id: row.get(0)?,
                    home: row.get(1)?,
                    project: row.get(2)?,
                    model: row.get(3)?,
                    role: row.get(4)?,
                    born_at: row.get(5)?,
                    requests: count(row, 6)?,
                    tokens: classes(row, 7)?,
                    cost: [money(row, 12)?, money(row, 13)?, money(row, 14)?, money(row, 15)?, money(row, 16)?],
                    cost_estimated: money(row, 17)?,
                    cache_savings: money(row, 18)?,
                    long_context_surcharge: money(row, 19)?,
                    unpriced: classes(row, 20)?,
                    cost_adjustment: money(row, 25)?,
                    settled: [(count(row, 26)?, money(row, 28)?), (count(row, 27)?, money(row, 29)?)],
                });
                Ok(())
            },
        )?;
        Ok(tuples)
    }

    /// The service's own counters: (name, label) to value; names are those of
    /// [`counter_names`](super::counter_names).
    ///
    /// # Errors
    /// What SQLite says.
    pub fn counters(&self) -> Result<BTreeMap<(String, String), u64>, StoreError> {
        let mut counters = BTreeMap::new();
        self.each("SELECT name, label, value FROM counters", [], |row| {
            counters.insert((row.get(0)?, row.get(1)?), count(row, 2)?);
            Ok(())
        })?;
        Ok(counters)
    }

    /// How many journals are in each state.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn journal_states(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut states = BTreeMap::new();
        self.each("SELECT state, count(*) FROM journals GROUP BY state", [], |row| {
            states.insert(row.get(0)?, count(row, 1)?);
            Ok(())
        })?;
        Ok(states)
    }

    /// Every journal ever noticed.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn journals(&self) -> Result<Vec<JournalRow>, StoreError> {
        let mut journals = Vec::new();
        self.each(
            "SELECT home_id, project_dir, file, state, coalesce(reason, failed), offset, len, modified_ns / 1000000
             FROM journals ORDER BY home_id, project_dir, file",
            [],
            |row| {
                journals.push(JournalRow {
                    home_id: row.get(0)?,
                    project_dir: row.get(1)?,
                    file: row.get(2)?,
                    state: row.get(3)?,
                    reason: row.get(4)?,
                    offset: count(row, 5)?,
                    len: count(row, 6)?,
                    modified_at: row.get(7)?,
                });
                Ok(())
            },
        )?;
        Ok(journals)
    }

    fn each(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let mut statement = self.tx.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            each(row)?;
        }
        Ok(())
    }
}

/// Whether every message id legible in the undecodable line `u` was read
/// elsewhere; a line that shows none never settles (accounting R19).
const SETTLED: &str = "(EXISTS (SELECT 1 FROM undecodable_ids i
        WHERE i.journal_id = u.journal_id AND i.offset = u.offset AND i.len = u.len)
    AND NOT EXISTS (SELECT 1 FROM undecodable_ids i
        WHERE i.journal_id = u.journal_id AND i.offset = u.offset AND i.len = u.len
          AND NOT EXISTS (SELECT 1 FROM requests r
              WHERE r.key = i.key AND r.home_id = i.home_id AND r.message_id = i.message_id)))";

fn money(row: &Row<'_>, column: usize) -> rusqlite::Result<Picodollars> {
    row.get::<_, i64>(column).map(Picodollars::from)
}

/// Five counts from a row, beginning at a column.
fn classes(row: &Row<'_>, from: usize) -> rusqlite::Result<Classes> {
    let mut classes = Classes::default();
    for (n, class) in Class::ALL.into_iter().enumerate() {
        *classes.get_mut(class) = count(row, from + n)?;
    }
    Ok(classes)
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::unsigned_abs)
}
