//! What front doors saw becomes rows, each event once: a spool's events by the
//! offset they stand at, posted ones by their id (accounting R71).

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::StoreError;
use super::apply::Applier;
use super::counter_names::{
    DOOR_ODDITIES, EVENTS, NO_LABEL, RUNTIME_MISMATCHES, SAME_MINUTE_LOADS, event_label,
};
use super::{names, quota};
use crate::ledger::doors::{
    Door, DoorEvent, EventKind, Exit, Posted, PostedBatch, PostedEvent, SpoolCursor, SpoolStep, TurnResult,
};
use crate::ledger::evidence::{HomeId, ProjectFact};
use crate::ledger::model::UNKNOWN;
use crate::ledger::quota::refusal::Rejected;
use crate::ledger::runtime::{self, Agreement, Difference};

/// What a command names where it names Gemini CLI (accounting R2).
const GEMINI: &str = "gemini";

/// What became of a spool's step.
pub(super) enum Spooled {
    Done,
    /// The ledger holds another offset: another process read this spool meanwhile.
    Stale(SpoolCursor),
}

/// The spools that the ledger knows, with how far they were read.
pub(super) fn spools(c: &Connection) -> Result<Vec<(Arc<str>, SpoolCursor)>, StoreError> {
    let mut statement = c.prepare("SELECT name, offset, ended FROM spools")?;
    let rows = statement.query_map([], |row| {
        let offset: i64 = row.get(1)?;
        Ok((
            row.get::<_, String>(0)?.into(),
            SpoolCursor { offset: offset.cast_unsigned(), ended: row.get(2)? },
        ))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A process behind a door, as its row has it.
struct Process {
    id: i64,
    door: Door,
    home: Option<HomeId>,
}

impl Applier {
    /// Applies one step of one spool inside the caller's transaction.
    pub(super) fn spool(&mut self, c: &Connection, step: &SpoolStep) -> Result<Spooled, StoreError> {
        c.prepare_cached("INSERT OR IGNORE INTO spools (name, offset, ended) VALUES (?1, 0, 0)")?
            .execute([&*step.name])?;
        let moved = c
            .prepare_cached(
                "UPDATE spools SET offset = ?3, ended = ended OR ?4
                 WHERE name = ?1 AND offset = ?2 AND (?2 <> ?3 OR NOT ended)",
            )?
            .execute(params![&*step.name, step.from.cast_signed(), step.to.cast_signed(), step.ended])?;
        if moved == 0 {
            let cursor =
                c.query_row("SELECT offset, ended FROM spools WHERE name = ?1", [&*step.name], |row| {
                    Ok(SpoolCursor { offset: row.get::<_, i64>(0)?.cast_unsigned(), ended: row.get(1)? })
                })?;
            return Ok(Spooled::Stale(cursor));
        }
        let mut door = Door::Acp;
        for event in &step.events {
            let process = self.process(c, &step.name, event)?;
            door = process.door;
            self.event(c, &process, event)?;
        }
        let source = door.as_str();
        self.count(EVENTS, event_label(source, "accepted"), step.events.len() as u64);
        self.count(EVENTS, event_label(source, "invalid"), step.broken);
        self.count(EVENTS, event_label(source, "unknown"), step.unknown);
        Ok(Spooled::Done)
    }

    /// Applies events that were posted.
    pub(super) fn posted(
        &mut self,
        c: &Connection,
        batch: &PostedBatch,
        now_ms: i64,
    ) -> Result<Posted, StoreError> {
        let mut posted = Posted::default();
        for item in &batch.events {
            let new = c
                .prepare_cached("INSERT OR IGNORE INTO posted (event_id, at) VALUES (?1, ?2)")?
                .execute(params![item.event_id, now_ms])?;
            if new == 0 {
                posted.duplicate += 1;
                continue;
            }
            posted.accepted += 1;
            let process = self.host(c, item)?;
            self.event(c, &process, &item.event)?;
            if let Some(oddity) = item.odd {
                self.count(DOOR_ODDITIES, oddity.as_str(), 1);
            }
        }
        self.count(EVENTS, event_label("http", "accepted"), posted.accepted);
        self.count(EVENTS, event_label("http", "duplicate"), posted.duplicate);
        self.count(EVENTS, event_label("http", "unknown"), batch.unknown);
        self.count(EVENTS, event_label("http", "invalid"), batch.refused);
        Ok(posted)
    }

    /// The process whose spool this is; its first event says what it is.
    fn process(&mut self, c: &Connection, name: &str, event: &DoorEvent) -> Result<Process, StoreError> {
        if let Some(known) = find_process(c, name)? {
            return Ok(known);
        }
        let (door, home, configured, remote) = match &event.kind {
            EventKind::ProcessStarted { door, home, configured_runtime, remote, .. } => {
                (*door, home.as_deref(), configured_runtime.as_deref(), *remote)
            }
            // The first line was lost: whose it is, is not known.
            _ => (Door::Acp, None, None, false),
        };
        let home = home.map(|path| self.home_at(c, path)).transpose()?;
        c.execute(
            "INSERT INTO connections (name, door, home_id, configured, remote, started_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![name, door.as_str(), home.map(|home| home.0), configured, remote, event.at],
        )?;
        Ok(Process { id: c.last_insert_rowid(), door, home })
    }

    /// What a host posts of one session is one connection. Whoever posts turns
    /// and names no command means Gemini CLI.
    fn host(&mut self, c: &Connection, item: &PostedEvent) -> Result<Process, StoreError> {
        let home = item.home.as_deref().map(|path| self.home_at(c, path)).transpose()?;
        let session = item.event.kind.session_id().unwrap_or_default();
        let name = format!("http:{}:{session}", item.host);
        c.prepare_cached(
            "INSERT INTO connections (name, door, home_id, configured, remote, started_at)
             VALUES (?1, 'http', ?2, ?3, ?4, ?5)
             ON CONFLICT (name) DO UPDATE SET home_id = coalesce(home_id, ?2),
                 configured = coalesce(?6, configured), remote = remote OR ?4",
        )?
        .execute(params![
            name,
            home.map(|home| home.0),
            item.configured_runtime.as_deref().unwrap_or(GEMINI),
            item.remote,
            item.event.at,
            item.configured_runtime,
        ])?;
        Ok(find_process(c, &name)?.expect("the row was made above"))
    }

    /// The home at a path; one that is not configured gets a row of its own.
    fn home_at(&mut self, c: &Connection, path: &str) -> Result<HomeId, StoreError> {
        let name = std::path::Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or("home");
        Ok(names::home(c, path, name)?.0)
    }

    fn event(&mut self, c: &Connection, process: &Process, event: &DoorEvent) -> Result<(), StoreError> {
        let at = event.at;
        match &event.kind {
            EventKind::ProcessStarted { .. } => Ok(()),
            EventKind::Handshake { name, version } => {
                c.prepare_cached("UPDATE connections SET runtime = ?2, version = ?3 WHERE id = ?1")?
                    .execute(params![process.id, name, version])?;
                self.compare_runtimes(c, process.id, name.as_deref())
            }
            EventKind::SessionOpened { session_id, model, resumed, session_role } => {
                let session = self.door_session(c, process, session_id)?;
                c.prepare_cached(
                    "INSERT INTO connection_sessions (connection_id, session_id, opened_at, resumed, session_role)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (connection_id, session_id)
                     DO UPDATE SET session_role = coalesce(excluded.session_role, session_role)",
                )?
                .execute(params![process.id, session, at, resumed, session_role])?;
                self.model_set(c, process, session, at, model.as_deref())
            }
            EventKind::ModelSet { session_id, model } => {
                let session = self.door_session(c, process, session_id)?;
                self.model_set(c, process, session, at, model.as_deref())
            }
            EventKind::LoadFailed { same_minute, .. } => {
                self.count(SAME_MINUTE_LOADS, NO_LABEL, u64::from(*same_minute));
                Ok(())
            }
            EventKind::TurnStarted { session_id, turn } => {
                let session = self.door_session(c, process, session_id)?;
                insert_turn(c, process, session, turn, at).map(drop)
            }
            EventKind::CancelSent { session_id, turn } => {
                let session = self.door_session(c, process, session_id)?;
                c.prepare_cached(
                    "UPDATE turns SET cancel_sent = 1 WHERE connection_id = ?1 AND session_id = ?2
                        AND ended_at IS NULL AND (?3 IS NULL OR key = ?3)",
                )?
                .execute(params![process.id, session, turn])?;
                Ok(())
            }
            EventKind::TurnEnded { session_id, turn, result } => {
                let session = self.door_session(c, process, session_id)?;
                // The proxy sees beginnings: one was lost, and a cancel perhaps with it.
                if insert_turn(c, process, session, turn, at)? && process.door == Door::Acp {
                    self.lost(c, process, at)?;
                }
                end_turn(c, process, session, turn, at, result)?;
                let Some(rejection) = result.rejection.clone() else { return Ok(()) };
                let home = c
                    .prepare_cached("SELECT home_id FROM sessions WHERE id = ?1")?
                    .query_row([session], |row| row.get(0).map(HomeId))?;
                let session = session_id.as_str().into();
                quota::refused(c, &Rejected { home, session, at, door: true, rejection }, at)
            }
            EventKind::Lost { .. } => self.lost(c, process, at),
            EventKind::Odd { oddity } => {
                self.count(DOOR_ODDITIES, oddity.as_str(), 1);
                Ok(())
            }
            EventKind::ProcessEnded { exit } => {
                let (code, signal) = match exit {
                    Some(Exit::Code(code)) => (Some(code), None),
                    Some(Exit::Signal(signal)) => (None, Some(signal)),
                    None => (None, None),
                };
                c.prepare_cached(
                    "UPDATE connections SET ended_at = ?2, exit_code = ?3, exit_signal = ?4
                     WHERE id = ?1 AND ended_at IS NULL",
                )?
                .execute(params![process.id, at, code, signal])?;
                self.dirty_process(c, process.id)
            }
            EventKind::SessionEnded { session_id } => {
                let session = self.door_session(c, process, session_id)?;
                c.prepare_cached(
                    "UPDATE connection_sessions SET ended_at = ?3 WHERE connection_id = ?1 AND session_id = ?2",
                )?
                .execute(params![process.id, session, at])?;
                Ok(())
            }
        }
    }

    /// News of a process were lost: of its open turns, of others that the last
    /// one of a session then seems to hold, and perhaps of another model.
    fn lost(&mut self, c: &Connection, process: &Process, at: i64) -> Result<(), StoreError> {
        c.prepare_cached(
            "UPDATE turns SET lossy = 1 WHERE connection_id = ?1 AND (ended_at IS NULL
                 OR id IN (SELECT max(id) FROM turns WHERE connection_id = ?1 GROUP BY session_id))",
        )?
        .execute([process.id])?;
        c.prepare_cached(
            "INSERT INTO model_settings (connection_id, session_id, at, model)
             SELECT connection_id, session_id, ?2, NULL FROM connection_sessions WHERE connection_id = ?1",
        )?
        .execute(params![process.id, at])?;
        self.dirty_process(c, process.id)
    }

    /// The session that a door names; before its journal is read, nobody knows its project.
    fn door_session(&mut self, c: &Connection, process: &Process, id: &str) -> Result<i64, StoreError> {
        let home = match process.home {
            Some(home) => home,
            None => HomeId(c.query_row("SELECT min(id) FROM homes", [], |row| row.get(0))?),
        };
        let session = self.outside_session(c, home, id)?;
        let foreign = c
            .prepare_cached("SELECT runtime, configured FROM connections WHERE id = ?1")?
            .query_row([process.id], |row| {
                Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?))
            })?;
        let (handshake, configured) = foreign;
        let measured =
            process.door == Door::Run || runtime::is_measured(configured.as_deref(), handshake.as_deref());
        let runtime = (!measured).then(|| handshake.or(configured).unwrap_or_else(|| UNKNOWN.to_owned()));
        c.prepare_cached("UPDATE sessions SET runtime = ?2 WHERE id = ?1 AND runtime IS NOT ?2")?
            .execute(params![session, runtime])?;
        Ok(session)
    }

    /// Says once that an agent is not the one its command names (accounting R8).
    fn compare_runtimes(
        &mut self,
        c: &Connection,
        process: i64,
        handshake: Option<&str>,
    ) -> Result<(), StoreError> {
        let configured: Option<String> = c
            .prepare_cached("SELECT configured FROM connections WHERE id = ?1")?
            .query_row([process], |row| row.get(0))?;
        let said = |difference: &Difference<'_>| {
            let configured = difference.configured_runtime.unwrap_or("none").to_owned();
            (configured, difference.handshake_runtime.to_owned(), difference.usage_declaration.as_str())
        };
        match runtime::agreement(configured.as_deref(), handshake) {
            Agreement::Same => {}
            Agreement::Info(difference) => {
                let (configured_runtime, handshake_runtime, usage_declaration) = said(&difference);
                tracing::info!(
                    configured_runtime,
                    handshake_runtime,
                    usage_declaration,
                    "agent runtime differs from its configured command"
                );
            }
            Agreement::Warn(difference) => {
                let (configured_runtime, handshake_runtime, usage_declaration) = said(&difference);
                tracing::warn!(
                    configured_runtime,
                    handshake_runtime,
                    usage_declaration,
                    "agent runtime differs from its configured command"
                );
                self.count(RUNTIME_MISMATCHES, NO_LABEL, 1);
                c.prepare_cached("UPDATE connections SET mismatched = 1 WHERE id = ?1")?
                    .execute([process])?;
            }
        }
        Ok(())
    }

    /// A session that something else than a journal names.
    pub(super) fn outside_session(
        &mut self,
        c: &Connection,
        home: HomeId,
        id: &str,
    ) -> Result<i64, StoreError> {
        let project = self.nowhere(c, home)?;
        let (session, _) = self.session(c, home, &id.into(), project)?;
        self.turned.insert(session, true);
        self.dirty.insert(session);
        Ok(session)
    }

    /// The project of sessions whose journal was never seen.
    fn nowhere(&mut self, c: &Connection, home: HomeId) -> Result<i64, StoreError> {
        let dir: Arc<str> = "".into();
        if let Some(id) = self.projects.get(&(home, dir.clone())) {
            return Ok(*id);
        }
        self.project_fact(c, &ProjectFact { home, dir, root_name: Some(UNKNOWN.into()), root_hash: None })
    }

    fn model_set(
        &mut self,
        c: &Connection,
        process: &Process,
        session: i64,
        at: i64,
        model: Option<&str>,
    ) -> Result<(), StoreError> {
        c.prepare_cached(
            "INSERT INTO model_settings (connection_id, session_id, at, model) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![process.id, session, at, model])?;
        Ok(())
    }

    /// Every session that a process had a turn in is looked at again.
    fn dirty_process(&mut self, c: &Connection, process: i64) -> Result<(), StoreError> {
        let mut statement =
            c.prepare_cached("SELECT DISTINCT session_id FROM turns WHERE connection_id = ?1")?;
        for session in statement.query_map([process], |row| row.get(0))? {
            self.dirty.insert(session?);
        }
        Ok(())
    }
}

fn find_process(c: &Connection, name: &str) -> Result<Option<Process>, StoreError> {
    let mut statement = c.prepare_cached("SELECT id, door, home_id FROM connections WHERE name = ?1")?;
    let process = statement.query_row([name], |row| {
        let door: String = row.get(1)?;
        Ok(Process {
            id: row.get(0)?,
            door: Door::ALL.into_iter().find(|known| known.as_str() == door).unwrap_or(Door::Acp),
            home: row.get::<_, Option<i64>>(2)?.map(HomeId),
        })
    });
    Ok(process.optional()?)
}

/// Whether it was new.
fn insert_turn(
    c: &Connection,
    process: &Process,
    session: i64,
    turn: &str,
    at: i64,
) -> Result<bool, StoreError> {
    let new = c.prepare_cached(
        "INSERT OR IGNORE INTO turns (session_id, connection_id, key, started_at) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![session, process.id, turn, at])?;
    Ok(new > 0)
}

/// The first answer to a prompt is its answer (accounting R31).
fn end_turn(
    c: &Connection,
    process: &Process,
    session: i64,
    turn: &str,
    at: i64,
    result: &TurnResult,
) -> Result<(), StoreError> {
    let result = serde_json::to_string(result).expect("a turn's result is plain data");
    c.prepare_cached(
        "UPDATE turns SET ended_at = ?4, result = ?5
         WHERE connection_id = ?1 AND session_id = ?2 AND key = ?3 AND ended_at IS NULL",
    )?
    .execute(params![process.id, session, turn, at, result])?;
    Ok(())
}
