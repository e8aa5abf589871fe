//! Turns as the surfaces show them: final or not, with what each source said.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{Snapshot, count};
use crate::ledger::bound::{Bound, Reasons};
use crate::ledger::doors::{Door, Exit};
use crate::ledger::money::Picodollars;
use crate::ledger::tokens::Reading;
use crate::ledger::turn::session::{SessionFacts, Turn, assess};
use crate::store::turns::bound_of;
use crate::store::{StoreError, facts};

/// A turn as its row holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRow {
    pub id: i64,
    /// Unix ms.
    pub started_at: i64,
    pub bound: Bound,
    pub reasons: Reasons,
    pub figure: Option<Reading>,
    /// Final since, unix ms; `None`: provisional (accounting 2.7).
    pub settled_at: Option<i64>,
}

/// A turn that is open now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTurn {
    pub session_id: i64,
    /// Unix ms.
    pub started_at: i64,
    /// The model in force, as it was named; `None`: not known.
    pub model_id: Option<i64>,
    pub bound: Bound,
    pub figure: Option<Reading>,
}

/// A process behind a door that opened a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionRow {
    pub id: i64,
    pub door: Option<Door>,
    pub configured: Option<String>,
    pub runtime: Option<String>,
    pub version: Option<String>,
    pub remote: bool,
    /// Unix ms.
    pub started_at: i64,
    pub ended_at: Option<i64>,
    pub exit: Option<Exit>,
}

/// Everything known of the turns of one session, put together again by the rules.
#[derive(Clone, Debug)]
pub struct SessionStory {
    pub facts: SessionFacts,
    /// By their start.
    pub turns: Vec<Turn>,
    /// The rows of turns by the key of their first view.
    pub rows: Vec<TurnRow>,
    pub connections: Vec<ConnectionRow>,
}

/// What a session spent so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSpend {
    pub session: String,
    pub home: String,
    pub project: String,
    /// Unix ms of its last request; 0: none.
    pub last_at: i64,
    pub tokens: u64,
    /// Its priced part; `None`: nothing of it is priced.
    pub cost: Option<Picodollars>,
}

/// Session, home, project, last request, tokens and priced cost: of its
/// requests and of what its turns hold above them.
const SPEND: &str = "SELECT s.session, h.name, p.name, s.last_at, coalesce(sum(x.tokens), 0), sum(x.cost)
     FROM sessions s JOIN homes h ON h.id = s.home_id
          JOIN projects q ON q.id = s.project_id JOIN projects p ON p.id = coalesce(q.folded_into, q.id)
          LEFT JOIN (
            SELECT max(prompt, cached) + tool + output + thoughts AS tokens, cost FROM requests
            WHERE session_id IN (SELECT id FROM sessions WHERE id = ?1 OR resolved_to = ?1)
            UNION ALL
            SELECT n.prompt + n.tool + n.output + n.thoughts, n.cost FROM turn_parts n JOIN turns t ON t.id = n.turn_id
            WHERE t.session_id IN (SELECT id FROM sessions WHERE id = ?1 OR resolved_to = ?1)
          ) x
     WHERE s.id = ?1 GROUP BY s.id";

/// A counter of a home by up to two labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRow {
    pub id: i64,
    pub home: String,
    pub name: String,
    pub first: String,
    pub second: String,
    pub value: u64,
    /// Unix ms of its birth; `None` for what a first import brought.
    pub born_at: Option<i64>,
}

/// Moves with what changes the claim of spend without a new request: turns,
/// what they hold above requests, and sessions that were prompted.
pub type TurnsStamp = [i64; 12];

impl Snapshot<'_> {
    /// # Errors
    /// What SQLite says.
    pub fn turns_stamp(&self) -> Result<TurnsStamp, StoreError> {
        let mut statement = self.tx.prepare_cached(
            "SELECT t.*, p.*, s.* FROM
                 (SELECT count(*), count(bound), coalesce(sum(bound), 0), coalesce(sum(reasons), 0), count(part_of),
                         coalesce(max(settled_at), 0),
                         coalesce(sum(coalesce(prompt, 0) + coalesce(output, 0) + coalesce(ended_at, 0) % 1000000), 0)
                  FROM turns) t,
                 (SELECT count(*), coalesce(sum(prompt + cached + tool + output + thoughts), 0) FROM turn_parts) p,
                 (SELECT count(last_prompt_at), count(runtime), coalesce(sum(torn_loose), 0) FROM sessions) s",
        )?;
        Ok(statement.query_row([], |row| {
            let mut stamp = TurnsStamp::default();
            for (place, value) in stamp.iter_mut().enumerate() {
                *value = row.get(place)?;
            }
            Ok(stamp)
        })?)
    }

    /// What all sources said of one session, turn by turn, at `now_ms`.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn session_story(&self, session_id: i64, now_ms: i64) -> Result<SessionStory, StoreError> {
        let facts = facts::load(&self.tx, session_id, now_ms)?.facts;
        let turns = assess(&facts);
        let mut rows = Vec::new();
        self.each(
            "SELECT id, started_at, bound, reasons, prompt, cached, tool, output, thoughts, settled_at FROM turns
             WHERE part_of IS NULL AND bound IS NOT NULL AND session_id IN
                 (SELECT id FROM sessions WHERE id = ?1 OR resolved_to = ?1) ORDER BY started_at, id",
            [session_id],
            |row| {
                let figure = row.get::<_, Option<i64>>(4)?.map(|_| crate::store::requests::reading(row, 4));
                rows.push(TurnRow {
                    id: row.get(0)?,
                    started_at: row.get(1)?,
                    bound: bound_of(row.get(2)?),
                    reasons: Reasons::from_bits(row.get(3)?),
                    figure: figure.transpose()?,
                    settled_at: row.get(9)?,
                });
                Ok(())
            },
        )?;
        Ok(SessionStory { facts, turns, rows, connections: self.session_connections(session_id)? })
    }

    fn session_connections(&self, session_id: i64) -> Result<Vec<ConnectionRow>, StoreError> {
        let mut connections = Vec::new();
        self.each(
            "SELECT c.id, c.door, c.configured, c.runtime, c.version, c.remote, c.started_at, c.ended_at,
                    c.exit_code, c.exit_signal
             FROM connection_sessions s JOIN connections c ON c.id = s.connection_id
             WHERE s.session_id = ?1 ORDER BY c.started_at, c.id",
            [session_id],
            |row| {
                let door: String = row.get(1)?;
                let code = row.get::<_, Option<i32>>(8)?.map(Exit::Code);
                connections.push(ConnectionRow {
                    id: row.get(0)?,
                    door: Door::ALL.into_iter().find(|known| known.as_str() == door),
                    configured: row.get(2)?,
                    runtime: row.get(3)?,
                    version: row.get(4)?,
                    remote: row.get(5)?,
                    started_at: row.get(6)?,
                    ended_at: row.get(7)?,
                    exit: code.or(row.get::<_, Option<i32>>(9)?.map(Exit::Signal)),
                });
                Ok(())
            },
        )?;
        Ok(connections)
    }

    /// The turns that are open, the newest of each session.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn open_turns(&self) -> Result<BTreeMap<i64, OpenTurn>, StoreError> {
        let resolved = self.resolved()?;
        let mut open = BTreeMap::new();
        self.each(
            "SELECT session_id, started_at, model_id, bound, prompt, cached, tool, output, thoughts FROM turns
             WHERE settled_at IS NULL AND part_of IS NULL AND ending = 'open' ORDER BY started_at, id",
            [],
            |row| {
                let session: i64 = row.get(0)?;
                let session_id = *resolved.get(&session).unwrap_or(&session);
                let figure = row.get::<_, Option<i64>>(4)?.map(|_| crate::store::requests::reading(row, 4));
                let turn = OpenTurn {
                    session_id,
                    started_at: row.get(1)?,
                    model_id: row.get(2)?,
                    bound: row.get::<_, Option<i64>>(3)?.map_or(Bound::Unmeasured, bound_of),
                    figure: figure.transpose()?,
                };
                open.insert(session_id, turn);
                Ok(())
            },
        )?;
        Ok(open)
    }

    /// The homes in which Gemini CLI is in use: a door to it is open, or a journal
    /// has something in `range` (unix ms). Other agents, and sessions of which
    /// it is not known that they are of a home here, are none of its use.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn homes_in_use(&self, range: Range<i64>) -> Result<BTreeSet<i64>, StoreError> {
        let mut homes = BTreeSet::new();
        self.each(
            "SELECT home_id FROM sessions
             WHERE runtime IS NULL
               AND ((last_at >= ?1 AND last_at < ?2) OR (last_prompt_at >= ?1 AND last_prompt_at < ?2))
             UNION
             SELECT d.home_id FROM connections c JOIN connection_sessions s ON s.connection_id = c.id
                 JOIN sessions d ON d.id = s.session_id
             WHERE c.ended_at IS NULL AND s.ended_at IS NULL AND d.runtime IS NULL
               AND c.home_id IS NOT NULL AND NOT c.remote
               AND (c.door <> 'http' OR EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.session_id
                                                AND t.connection_id = c.id AND t.ended_at IS NULL))",
            [range.start, range.end],
            |row| {
                homes.insert(row.get(0)?);
                Ok(())
            },
        )?;
        Ok(homes)
    }

    /// Of each home how many turns of Gemini CLI ended and how many requests were refused:
    /// what wakes whoever polls its quota.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn quota_wakes(&self) -> Result<Vec<(i64, u64, u64)>, StoreError> {
        let mut wakes = Vec::new();
        self.each(
            "SELECT h.id,
                    (SELECT count(*) FROM turns t JOIN sessions s ON s.id = t.session_id
                         LEFT JOIN connections c ON c.id = t.connection_id
                     WHERE s.home_id = h.id AND s.runtime IS NULL AND t.part_of IS NULL AND t.closed_at IS NOT NULL
                       AND (c.id IS NULL OR (c.home_id IS NOT NULL AND NOT c.remote))),
                    (SELECT count(*) FROM quota_rejections r WHERE r.home_id = h.id)
             FROM homes h",
            [],
            |row| {
                wakes.push((row.get(0)?, count(row, 1)?, count(row, 2)?));
                Ok(())
            },
        )?;
        Ok(wakes)
    }

    /// Sessions behind a door that is still open, with their homes; of those that
    /// are posted, which have no connection, those with an open turn.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn connected_sessions(&self) -> Result<BTreeMap<i64, i64>, StoreError> {
        let mut connected = BTreeMap::new();
        self.each(
            "SELECT s.session_id, d.home_id FROM connections c JOIN connection_sessions s ON s.connection_id = c.id
                 JOIN sessions d ON d.id = s.session_id
             WHERE c.ended_at IS NULL AND s.ended_at IS NULL
               AND (c.door <> 'http' OR EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.session_id
                                                AND t.connection_id = c.id AND t.ended_at IS NULL))",
            [],
            |row| {
                connected.insert(row.get(0)?, row.get(1)?);
                Ok(())
            },
        )?;
        Ok(connected)
    }

    /// Sessions with an open connection, or something in `range` (unix ms), as
    /// (session id, home id).
    ///
    /// # Errors
    /// What SQLite says.
    pub fn live_sessions(&self, range: Range<i64>) -> Result<BTreeMap<i64, i64>, StoreError> {
        let mut live = self.active_sessions(range)?;
        live.extend(self.connected_sessions()?);
        Ok(live)
    }

    /// What these sessions spent, those with news last first, at most `limit`.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn session_spend(
        &self,
        sessions: impl IntoIterator<Item = i64>,
        limit: usize,
    ) -> Result<Vec<SessionSpend>, StoreError> {
        let mut spend = Vec::new();
        for session in sessions {
            self.each(SPEND, [session], |row| {
                let (tokens, priced): (i64, Option<i64>) = (row.get(4)?, row.get(5)?);
                let row = SessionSpend {
                    session: row.get(0)?,
                    home: row.get(1)?,
                    project: row.get(2)?,
                    last_at: row.get::<_, Option<i64>>(3)?.unwrap_or(0),
                    tokens: tokens.unsigned_abs(),
                    cost: priced.map(Picodollars::from),
                };
                spend.push(row);
                Ok(())
            })?;
        }
        spend.sort_by(|a, b| (b.last_at, &b.session).cmp(&(a.last_at, &a.session)));
        spend.truncate(limit);
        Ok(spend)
    }

    /// Counters of homes; names are those of [`counter_names`](crate::store::counter_names).
    ///
    /// # Errors
    /// What SQLite says.
    pub fn home_counters(&self) -> Result<Vec<CounterRow>, StoreError> {
        let mut counters = Vec::new();
        self.each(
            "SELECT h.name, c.name, c.first, c.second, c.value, c.born_at, c.id
             FROM home_counters c JOIN homes h ON h.id = c.home_id ORDER BY h.name, c.name, c.first, c.second",
            [],
            |row| {
                counters.push(CounterRow {
                    id: row.get(6)?,
                    home: row.get(0)?,
                    name: row.get(1)?,
                    first: row.get(2)?,
                    second: row.get(3)?,
                    value: count(row, 4)?,
                    born_at: row.get(5)?,
                });
                Ok(())
            },
        )?;
        Ok(counters)
    }
}
