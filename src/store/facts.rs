//! Everything the ledger holds of one session, as the rules take it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use super::StoreError;
use super::requests::{is_undated, reading, role_of};
use crate::ledger::bound::Reason;
use crate::ledger::doors::{Door, TurnResult};
use crate::ledger::identity;
use crate::ledger::tokens::Reading;
use crate::ledger::turn::session::{
    JournalFacts, ModelFact, RequestFact, SessionFacts, TornFact, View, ViewKey,
};
use crate::ledger::turn::settle::OPEN_TURN_MAX;
use crate::ledger::turn::telemetry::{Kind, Record};

/// The facts of a session, with what its rows hold beside them.
pub(super) struct Loaded {
    pub facts: SessionFacts,
    /// Of each request, in the order of the facts: its turn and whether it is settled.
    pub requests: Vec<(Option<i64>, bool)>,
    /// One of its journals holds more than was read.
    pub behind: bool,
    /// Its own id, and those of the nameless sessions that are it.
    pub sessions: Vec<i64>,
}

/// Which sessions are shown as this one: itself, and nameless ones that fit it.
pub(super) fn folded(c: &Connection, session: i64) -> Result<Vec<i64>, StoreError> {
    let mut statement = c.prepare_cached("SELECT id FROM sessions WHERE id = ?1 OR resolved_to = ?1")?;
    Ok(statement.query_map([session], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Loads the facts of a session.
pub(super) fn load(c: &Connection, session: i64, now_ms: i64) -> Result<Loaded, StoreError> {
    let sessions = folded(c, session)?;
    let mut loaded = Loaded { facts: SessionFacts::default(), requests: Vec::new(), behind: false, sessions };
    let facts = &mut loaded.facts;
    let models = models(c)?;
    let ids = loaded.sessions.clone();
    for id in ids {
        each(c, VIEWS, id, |row| {
            facts.views.push(view(row)?);
            Ok(())
        })?;
        each(
            c,
            "SELECT connection_id, at, model FROM model_settings WHERE session_id = ?1 ORDER BY at, id",
            id,
            |row| {
                let model: Option<String> = row.get(2)?;
                facts.models.push(ModelFact {
                    connection: row.get(0)?,
                    at: row.get(1)?,
                    model: model.map(Into::into),
                });
                Ok(())
            },
        )?;
        each(c, REQUESTS, id, |row| {
            let flags: i64 = row.get(10)?;
            facts.requests.push(RequestFact {
                id: row.get(0)?,
                at: row.get(1)?,
                undated: is_undated(flags),
                role: role_of(row.get(2)?),
                model: name(&models, row.get(3)?),
                reading: reading(row, 5)?,
            });
            loaded.requests.push((row.get(4)?, row.get(11)?));
            Ok(())
        })?;
        each(c, "SELECT at FROM silent_prompts WHERE session_id = ?1", id, |row| {
            facts.silent_prompts.push(row.get(0)?);
            Ok(())
        })?;
        each(c, TORN, id, |row| {
            let role = if row.get(1)? {
                crate::ledger::model::Role::Subagent
            } else {
                crate::ledger::model::Role::Main
            };
            facts.torn.push(TornFact { at: row.get(0)?, role });
            Ok(())
        })?;
        each(c, TELEMETRY, id, |row| {
            facts.records.push(record(row, &models)?);
            Ok(())
        })?;
        journal(c, id, &mut facts.journal)?;
        loaded.behind |= behind(c, id)?;
    }
    let (id, foreign) = c
        .prepare_cached("SELECT session, runtime IS NOT NULL FROM sessions WHERE id = ?1")?
        .query_row([session], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    facts.foreign = foreign;
    facts.journal.unreadable_id = identity::lookup_part(&id).is_none();
    facts.lapsed_before = now_ms - OPEN_TURN_MAX;
    let received = "SELECT EXISTS (SELECT 1 FROM telemetry WHERE session_id = ?1 AND received = 1)";
    if !facts.records.is_empty() && c.prepare_cached(received)?.query_row([session], |row| row.get(0))? {
        facts.listening = Some(listening(c)?);
    }
    Ok(loaded)
}

const VIEWS: &str =
    "SELECT t.id, k.door, t.connection_id, t.started_at, t.ended_at, t.result, t.cancel_sent, t.lossy,
            t.lapsed, k.remote, coalesce(k.ended_at, s.ended_at), coalesce(s.resumed, 0)
     FROM turns t JOIN connections k ON k.id = t.connection_id
          LEFT JOIN connection_sessions s ON s.connection_id = t.connection_id AND s.session_id = t.session_id
     WHERE t.session_id = ?1 ORDER BY t.id";

const REQUESTS: &str =
    "SELECT id, at, role, model_id, turn_id, prompt, cached, tool, output, thoughts, flags, settled
     FROM requests WHERE session_id = ?1 ORDER BY at, id";

const TELEMETRY: &str = "SELECT at, kind, prompt_id, role, model_id, prompt, cached, tool, output, thoughts
     FROM telemetry WHERE session_id = ?1 ORDER BY at, id";

/// Lines that still demote: what was legible in them was not read elsewhere.
const TORN: &str = "SELECT u.at, j.subagent OR instr(j.file, '/') > 0
     FROM undecodable u JOIN journals j ON j.id = u.journal_id
     WHERE u.session_id = ?1 AND NOT (
         EXISTS (SELECT 1 FROM undecodable_ids i
                 WHERE i.journal_id = u.journal_id AND i.offset = u.offset AND i.len = u.len)
         AND NOT EXISTS (
           SELECT 1 FROM undecodable_ids i
           WHERE i.journal_id = u.journal_id AND i.offset = u.offset AND i.len = u.len
             AND NOT EXISTS (SELECT 1 FROM requests r
                             WHERE r.key = i.key AND r.home_id = i.home_id AND r.message_id = i.message_id)))";

fn each(
    c: &Connection,
    sql: &str,
    id: i64,
    mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> Result<(), StoreError> {
    let mut statement = c.prepare_cached(sql)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        each(row)?;
    }
    Ok(())
}

fn view(row: &Row<'_>) -> rusqlite::Result<View> {
    let door: String = row.get(1)?;
    let result: Option<String> = row.get(5)?;
    Ok(View {
        key: ViewKey::Door(row.get(0)?),
        door: Door::ALL.into_iter().find(|known| known.as_str() == door),
        connection: row.get(2)?,
        prompt_id: None,
        begun: true,
        started_at: row.get(3)?,
        ended_at: row.get(4)?,
        // What we wrote ourselves reads back; anything else says nothing of its ending.
        result: result.map(|text| {
            serde_json::from_str(&text)
                .unwrap_or_else(|_| TurnResult { unread: true, ..TurnResult::default() })
        }),
        cancel_sent: row.get(6)?,
        lossy: row.get(7)?,
        lapsed: row.get(8)?,
        remote: row.get(9)?,
        process_ended_at: row.get(10)?,
        resumed: row.get(11)?,
    })
}

fn record(row: &Row<'_>, models: &BTreeMap<i64, Arc<str>>) -> rusqlite::Result<Record> {
    Ok(Record {
        at: row.get(0)?,
        kind: match row.get::<_, i64>(1)? {
            0 => Kind::Prompt,
            1 => Kind::Request,
            2 => Kind::Response,
            3 => Kind::Error,
            _ => Kind::CleanExit,
        },
        prompt_id: row.get::<_, String>(2)?.into(),
        role: role_of(row.get(3)?),
        model: name(models, row.get(4)?),
        reading: reading(row, 5)?,
        times: 1,
    })
}

fn models(c: &Connection) -> Result<BTreeMap<i64, Arc<str>>, StoreError> {
    let mut statement = c.prepare_cached("SELECT id, name FROM models")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?.into())))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn name(models: &BTreeMap<i64, Arc<str>>, id: i64) -> Arc<str> {
    models.get(&id).cloned().unwrap_or_else(|| crate::ledger::model::UNKNOWN.into())
}

/// Adds what the journals of one session say of themselves.
fn journal(c: &Connection, id: i64, facts: &mut JournalFacts) -> Result<(), StoreError> {
    let found = "SELECT EXISTS (SELECT 1 FROM session_starts WHERE session_id = ?1)
                     OR EXISTS (SELECT 1 FROM journal_sessions WHERE session_id = ?1)";
    facts.found |= c.prepare_cached(found)?.query_row([id], |row| row.get::<_, bool>(0))?;
    each(
        c,
        "SELECT j.state, coalesce(j.failed_since, 0) FROM journals j JOIN journal_sessions s ON s.journal_id = j.id
         WHERE s.session_id = ?1 AND (j.failed IS NOT NULL OR j.state IN ('failed', 'lost'))",
        id,
        |row| {
            let reason = if row.get::<_, String>(0)? == "lost" { Reason::JournalLost } else { Reason::JournalFailed };
            let since: i64 = row.get(1)?;
            if facts.failed.is_none_or(|(known, _)| since < known) {
                facts.failed = Some((since, reason));
            }
            Ok(())
        },
    )
}

/// Whether a journal of the session holds more than was read.
fn behind(c: &Connection, id: i64) -> Result<bool, StoreError> {
    let behind = "SELECT EXISTS (SELECT 1 FROM journals j JOIN journal_sessions s ON s.journal_id = j.id
                                 WHERE s.session_id = ?1 AND j.state IN ('behind', 'pending'))";
    Ok(c.prepare_cached(behind)?.query_row([id], |row| row.get(0))?)
}

/// When the receiver was there.
fn listening(c: &Connection) -> Result<Vec<(i64, i64)>, StoreError> {
    let mut statement = c.prepare_cached("SELECT started, until FROM listening ORDER BY started")?;
    Ok(statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?)
}

/// A reading as five columns.
pub(super) fn columns(reading: &Reading) -> [i64; 5] {
    [reading.prompt, reading.cached, reading.tool, reading.output, reading.thoughts].map(super::tuples::clamp)
}

/// The home that a session's row is of, and its project's name and id.
pub(super) fn whose(c: &Connection, session: i64) -> Result<(i64, i64), StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT s.home_id, coalesce(p.folded_into, p.id) FROM sessions s JOIN projects p ON p.id = s.project_id
         WHERE s.id = ?1",
    )?;
    Ok(statement.query_row(params![session], |row| Ok((row.get(0)?, row.get(1)?)))?)
}
