//! What polls and refused requests say, in the transaction that counts them
//! (quota Q9–Q14). Each is applied once, however often it is handed over.

mod poll;
pub(super) mod read;
mod refused;

#[cfg(test)]
mod tests;

use rusqlite::{Connection, OptionalExtension, params};

use super::StoreError;
use super::counter_names::{LABEL_OVERFLOW, NO_LABEL, QUOTA_CLAMPED};
use crate::ledger::evidence::HomeId;

pub(super) use poll::poll;
pub(super) use refused::refused;

/// Models of a home that refusals are counted by; later ones are `other`.
const MAX_MODELS: i64 = 100;
const OTHER: &str = "other";

/// Adds to a counter of the service's own work.
fn count(c: &Connection, name: &'static str, by: i64) -> Result<(), StoreError> {
    if by > 0 {
        c.prepare_cached(
            "INSERT INTO counters (name, label, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (name, label) DO UPDATE SET value = value + excluded.value",
        )?
        .execute(params![name, NO_LABEL, by])?;
    }
    Ok(())
}

/// The label set of a home and a canonical model.
fn label_set(c: &Connection, home: HomeId, model: &str, now_ms: i64) -> Result<i64, StoreError> {
    let find = |model: &str| -> Result<Option<i64>, StoreError> {
        Ok(c.prepare_cached("SELECT id FROM quota_models WHERE home_id = ?1 AND model = ?2")?
            .query_row(params![home.0, model], |row| row.get(0))
            .optional()?)
    };
    if let Some(id) = find(model)? {
        return Ok(id);
    }
    let taken: i64 =
        c.query_row("SELECT count(*) FROM quota_models WHERE home_id = ?1", [home.0], |row| row.get(0))?;
    let model = if taken < MAX_MODELS {
        model
    } else {
        count(c, LABEL_OVERFLOW, 1)?;
        if let Some(id) = find(OTHER)? {
            return Ok(id);
        }
        OTHER
    };
    // What a first import brings is history: it was never at 0.
    c.execute(
        "INSERT INTO quota_models (home_id, model, born_at)
         SELECT ?1, ?2, CASE WHEN imported_at IS NULL THEN NULL ELSE ?3 END FROM homes WHERE id = ?1",
        params![home.0, model, now_ms],
    )?;
    Ok(c.last_insert_rowid())
}

/// Counts the beginning of a time in which nothing is left of a model.
fn count_exhaustion(c: &Connection, home: HomeId, model: &str, now_ms: i64) -> Result<(), StoreError> {
    let set = label_set(c, home, model, now_ms)?;
    c.prepare_cached("UPDATE quota_models SET exhaustions = exhaustions + 1 WHERE id = ?1")?
        .execute([set])?;
    Ok(())
}

/// Counts values that had to be clamped (quota Q10).
fn count_clamped(c: &Connection, by: i64) -> Result<(), StoreError> {
    count(c, QUOTA_CLAMPED, by)
}

/// The last answered request of a home after a time, for a canonical model or
/// any, by whichever source.
fn succeeded_at(
    c: &Connection,
    home: i64,
    model: Option<&str>,
    after: i64,
) -> Result<Option<i64>, StoreError> {
    // Sessions know their span: only those with something later are looked at.
    let mut statement = c.prepare_cached(
        "SELECT max(at) FROM (
             SELECT max(r.at) AS at FROM sessions s CROSS JOIN requests r ON r.session_id = s.id
             WHERE s.home_id = ?1 AND s.last_at > ?2 AND r.at > ?2
               AND (?3 IS NULL OR r.model_id = (SELECT id FROM models WHERE name = ?3))
             UNION ALL
             SELECT max(t.at) FROM sessions s CROSS JOIN telemetry t ON t.session_id = s.id
             WHERE s.home_id = ?1 AND s.last_at > ?2 AND t.at > ?2 AND t.kind = 2
               AND (?3 IS NULL OR t.model_id = (SELECT id FROM models WHERE name = ?3)))",
    )?;
    Ok(statement.query_row(params![home, after, model], |row| row.get(0))?)
}
