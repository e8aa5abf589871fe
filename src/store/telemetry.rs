//! Telemetry records become rows, each once however often its batch comes
//! (accounting R66), and when the receiver was there to hear them.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, params};

use super::StoreError;
use super::apply::Applier;
use super::counter_names::{EVENTS, event_label};
use super::facts::columns;
use super::quota;
use super::requests::role_number;
use crate::ledger::evidence::HomeId;
use crate::ledger::model::Role;
use crate::ledger::quota::Rejection;
use crate::ledger::quota::refusal::Rejected;
use crate::ledger::telemetry::{
    Call, OutfileCursor, OutfileStep, RecordKey, TelemetryBatch, TelemetryKind, TelemetryRecord,
};
use crate::ledger::tokens::Reading;

/// A receiver that was away for less than this misses nothing: an exporter
/// tries again, ms.
const BLINK: i64 = 5_000;

/// The outfiles that the ledger knows, with how far they were read.
pub(super) fn outfiles(c: &Connection) -> Result<Vec<(PathBuf, OutfileCursor)>, StoreError> {
    let mut statement = c.prepare("SELECT path, offset, head, head_len, marker, marker_len FROM outfiles")?;
    let rows =
        statement.query_map([], |row| Ok((PathBuf::from(row.get::<_, String>(0)?), cursor(row, 1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn cursor(row: &rusqlite::Row<'_>, from: usize) -> rusqlite::Result<OutfileCursor> {
    let wide = |n: usize| row.get::<_, i64>(from + n).map(i64::cast_unsigned);
    Ok(OutfileCursor {
        offset: wide(0)?,
        head: wide(1)?,
        head_len: row.get(from + 2)?,
        marker: wide(3)?,
        marker_len: row.get(from + 4)?,
    })
}

/// The receiver is there from now on: a new span, or the last one goes on.
pub(super) fn listens(c: &Connection, now_ms: i64) -> Result<(), StoreError> {
    let goes_on = c.execute(
        "UPDATE listening SET until = max(until, ?1)
         WHERE id = (SELECT max(id) FROM listening) AND until >= ?1 - ?2",
        [now_ms, BLINK],
    )?;
    if goes_on == 0 {
        c.execute("INSERT INTO listening (started, until) VALUES (?1, ?1)", [now_ms])?;
    }
    Ok(())
}

/// What a failed call says of quota; the model that was asked for stands in
/// where the refusal names none (quota Q14).
fn refusal(c: &Connection, record: &TelemetryRecord, now_ms: i64) -> Result<(), StoreError> {
    let TelemetryKind::Error { call, rejection: Some(rejection), .. } = &record.kind else { return Ok(()) };
    let home = c
        .prepare_cached("SELECT home_id FROM sessions WHERE session = ?1 ORDER BY id LIMIT 1")?
        .query_row([&record.session], |row| row.get(0))?;
    let model = rejection.model.clone().or_else(|| call.model.clone());
    let rejected = Rejected {
        home: HomeId(home),
        session: record.session.as_str().into(),
        at: record.at,
        door: false,
        rejection: Rejection { model, ..rejection.clone() },
    };
    quota::refused(c, &rejected, now_ms)
}

impl Applier {
    /// Applies a batch that came over the network.
    pub(super) fn telemetry(
        &mut self,
        c: &Connection,
        batch: &TelemetryBatch,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.heard(c, now_ms)?;
        self.batch(c, batch, true, now_ms)
    }

    /// The receiver is still there: what it was given until now, it took.
    fn heard(&mut self, c: &Connection, now_ms: i64) -> Result<(), StoreError> {
        c.prepare_cached(
            "UPDATE listening SET until = max(until, ?1) WHERE id = (SELECT max(id) FROM listening)",
        )?
        .execute([now_ms])?;
        self.telemetry_at = self.telemetry_at.max(Some(now_ms));
        Ok(())
    }

    /// Applies one step of an outfile; the ledger's word where it holds another cursor.
    pub(super) fn outfile(
        &mut self,
        c: &Connection,
        step: &OutfileStep,
        now_ms: i64,
    ) -> Result<Option<OutfileCursor>, StoreError> {
        let path = step.path.to_string_lossy();
        c.prepare_cached("INSERT OR IGNORE INTO outfiles VALUES (?1, 0, 0, 0, 0, 0)")?.execute([&*path])?;
        let to = &step.to;
        let moved = c
            .prepare_cached(
                "UPDATE outfiles SET offset = ?4, head = ?5, head_len = ?6, marker = ?7, marker_len = ?8
                 WHERE path = ?1 AND offset = ?2 AND marker = ?3",
            )?
            .execute(params![
                &*path,
                step.from.0.cast_signed(),
                step.from.1.cast_signed(),
                to.offset.cast_signed(),
                to.head.cast_signed(),
                to.head_len,
                to.marker.cast_signed(),
                to.marker_len,
            ])?;
        if moved == 0 {
            let held = "SELECT offset, head, head_len, marker, marker_len FROM outfiles WHERE path = ?1";
            return Ok(Some(c.query_row(held, [&*path], |row| cursor(row, 0))?));
        }
        self.telemetry_at = self.telemetry_at.max(Some(now_ms));
        self.batch(c, &step.batch, false, now_ms)?;
        Ok(None)
    }

    fn batch(
        &mut self,
        c: &Connection,
        batch: &TelemetryBatch,
        received: bool,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let mut new = 0;
        for (record, key) in batch.records.iter().zip(RecordKey::of_batch(&batch.records)) {
            let is_new = self.record(c, record, key, received)?;
            new += u64::from(is_new);
            if is_new {
                refusal(c, record, now_ms)?;
            }
        }
        self.count(EVENTS, event_label("otlp", "accepted"), new);
        self.count(EVENTS, event_label("otlp", "duplicate"), batch.records.len() as u64 - new);
        self.count(EVENTS, event_label("otlp", "invalid"), batch.malformed);
        self.count(EVENTS, event_label("otlp", "unknown"), batch.dropped);
        Ok(())
    }

    /// Whether the record is new.
    fn record(
        &mut self,
        c: &Connection,
        record: &TelemetryRecord,
        key: RecordKey,
        received: bool,
    ) -> Result<bool, StoreError> {
        let (high, low) = ((key.hash >> 64) as u64, key.hash as u64);
        let known = c
            .prepare_cached(
                "SELECT 1 FROM telemetry WHERE key_high = ?1 AND key_low = ?2 AND occurrence = ?3",
            )?
            .exists(params![high.cast_signed(), low.cast_signed(), key.occurrence])?;
        if known {
            return Ok(false);
        }
        let session = self.telemetry_session(c, &record.session)?;
        let none = (0, "", Role::Main, None, Reading::default());
        let of = |call: &'_ Call| (call.prompt_id.clone(), call.role, call.model.clone());
        let (kind, (prompt_id, role, model), reading) = match &record.kind {
            TelemetryKind::Prompt { prompt_id } => (0, (prompt_id.clone(), none.2, none.3), none.4),
            TelemetryKind::Request { call } => (1, of(call), none.4),
            TelemetryKind::Response { call, reading, .. } => (2, of(call), *reading),
            TelemetryKind::Error { call, .. } => (3, of(call), none.4),
            TelemetryKind::CleanExit => (4, (none.1.to_owned(), none.2, none.3), none.4),
        };
        let model = self.model(c, model.map(Into::into).as_ref())?.0;
        let [prompt, cached, tool, output, thoughts] = columns(&reading);
        c.prepare_cached(
            "INSERT INTO telemetry (key_high, key_low, occurrence, session_id, at, kind, prompt_id, role, model_id,
                                    prompt, cached, tool, output, thoughts, received)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?
        .execute(params![
            high.cast_signed(),
            low.cast_signed(),
            key.occurrence,
            session,
            record.at,
            kind,
            prompt_id,
            role_number(role),
            model,
            prompt,
            cached,
            tool,
            output,
            thoughts,
            received,
        ])?;
        // A session is live while it makes calls, whether or not a journal shows them.
        super::apply::span(c, session, record.at, record.at)?;
        Ok(true)
    }

    /// The session of a record: where a journal or a door knows it, there;
    /// else in the first home, until one of them does.
    fn telemetry_session(&mut self, c: &Connection, id: &str) -> Result<i64, StoreError> {
        let known = c
            .prepare_cached("SELECT id FROM sessions WHERE session = ?1 ORDER BY id LIMIT 1")?
            .query_row([id], |row| row.get(0))
            .optional()?;
        if let Some(session) = known {
            self.turned.insert(session, true);
            self.dirty.insert(session);
            return Ok(session);
        }
        let home = HomeId(c.query_row("SELECT min(id) FROM homes", [], |row| row.get(0))?);
        self.outside_session(c, home, id)
    }

    /// All journals of a home were read to their ends in a scan begun at `at`:
    /// what waited for it may be final now.
    pub(super) fn scanned(
        &mut self,
        c: &Connection,
        home: HomeId,
        at: i64,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let read_at = self.read_at.entry(home).or_insert(at);
        *read_at = at.max(*read_at);
        self.close_lapsed(c, now_ms)?;
        {
            let mut waiting = c.prepare_cached(
                "SELECT DISTINCT t.session_id FROM turns t JOIN sessions s ON s.id = t.session_id
                 WHERE t.settled_at IS NULL AND t.part_of IS NULL AND s.home_id = ?1",
            )?;
            for session in waiting.query_map([home.0], |row| row.get(0))? {
                self.dirty.insert(session?);
            }
        }
        // Requests that a turn is about to claim are put together with it first.
        self.assess_dirty(c, now_ms)?;
        self.settle_unclaimed(c, now_ms)
    }
}
