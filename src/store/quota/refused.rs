//! A refused request becomes a row and counters.

use rusqlite::{Connection, params};

use super::{count_exhaustion, label_set, read, succeeded_at};
use crate::ledger::evidence::HomeId;
use crate::ledger::model;
use crate::ledger::quota::Rejection;
use crate::ledger::quota::bucket::{Share, reset_due};
use crate::ledger::quota::refusal::{Kind, Rejected, in_force, reason};
use crate::store::StoreError;

/// Refusals are kept this long, in ms; older ones are history and not counted.
const KEEP_MS: i64 = 90 * 86_400_000;

/// A door tells of a refusal this long after telemetry at most, in ms.
const SAME_MS: i64 = 10_000;

/// Applies a refusal; the same once only (quota Q14).
pub(in crate::store) fn refused(c: &Connection, rejected: &Rejected, now_ms: i64) -> Result<(), StoreError> {
    let oldest = now_ms.saturating_sub(KEEP_MS);
    if rejected.at < oldest {
        return Ok(());
    }
    if is_told(c, rejected)? {
        return Ok(());
    }
    let Rejected { home, session, at, door, rejection } = rejected;
    let model = model::canonical(rejection.model.as_deref().unwrap_or_default());
    // Asked before its own row is there.
    let kind = Kind::of(rejection);
    let begins = kind == Kind::Exhausted && !is_exhausted(c, *home, model, *at)?;
    let new = c
        .prepare_cached(
            "INSERT OR IGNORE INTO quota_rejections
                 (home_id, session, at, model, reason, capacity, metric, resets_at, retry_after_ms, waits, door)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            home.0,
            &**session,
            at,
            rejection.model.as_deref().unwrap_or_default(),
            rejection.reason.as_deref().unwrap_or_default(),
            rejection.capacity,
            rejection.metric,
            rejection.resets_at,
            rejection.retry_after_ms,
            rejection.waits,
            door
        ])?;
    if new == 0 {
        return Ok(());
    }
    let set = label_set(c, *home, model, now_ms)?;
    if kind == Kind::Capacity {
        c.prepare_cached("UPDATE quota_models SET capacity = capacity + 1 WHERE id = ?1")?.execute([set])?;
    } else {
        c.prepare_cached(
            "INSERT INTO quota_model_reasons (model_id, reason, value) VALUES (?1, ?2, 1)
             ON CONFLICT (model_id, reason) DO UPDATE SET value = value + 1",
        )?
        .execute(params![set, reason(rejection)])?;
    }
    if begins {
        count_exhaustion(c, *home, model, now_ms)?;
    }
    c.prepare_cached("DELETE FROM quota_rejections WHERE at < ?1")?.execute([oldest])?;
    Ok(())
}

/// Whether the other kind of source told the same already. What a door told
/// first takes on what telemetry knows better; it was counted.
fn is_told(c: &Connection, rejected: &Rejected) -> Result<bool, StoreError> {
    let Rejected { home, session, at, door, rejection } = rejected;
    if *door {
        let mut statement = c.prepare_cached(
            "SELECT 1 FROM quota_rejections
             WHERE home_id = ?1 AND session = ?2 AND door = 0 AND at BETWEEN ?3 - ?4 AND ?3",
        )?;
        return Ok(statement.exists(params![home.0, &**session, at, SAME_MS])?);
    }
    let mut statement = c.prepare_cached(
        "UPDATE OR IGNORE quota_rejections SET at = ?3, model = ?5, reason = ?6, capacity = ?7, metric = ?8,
             resets_at = ?9, retry_after_ms = ?10, waits = ?11, door = 0
         WHERE id = (SELECT id FROM quota_rejections
                     WHERE home_id = ?1 AND session = ?2 AND door = 1 AND at BETWEEN ?3 AND ?3 + ?4 LIMIT 1)",
    )?;
    let taken_on = statement.execute(params![
        home.0,
        &**session,
        at,
        SAME_MS,
        rejection.model.as_deref().unwrap_or_default(),
        rejection.reason.as_deref().unwrap_or_default(),
        rejection.capacity,
        rejection.metric,
        rejection.resets_at,
        rejection.retry_after_ms,
        rejection.waits
    ])?;
    Ok(taken_on > 0)
}

/// Whether nothing is left of a canonical model at a time, by what is known
/// of it: an earlier refusal is in force, or the home's bucket is empty.
pub(super) fn is_exhausted(c: &Connection, home: HomeId, model: &str, at: i64) -> Result<bool, StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT at, model, reason, capacity, metric, resets_at, retry_after_ms, waits FROM quota_rejections
         WHERE home_id = ?1 AND at <= ?2 AND (at > ?2 - 86400000 OR resets_at > ?2) ORDER BY at DESC LIMIT 200",
    )?;
    let refusals = statement
        .query_map(params![home.0, at], |row| Ok((row.get::<_, i64>(0)?, read::rejection(row, 1)?)))?
        .collect::<Result<Vec<_>, _>>()?;
    let named =
        |rejection: &Rejection| model::canonical(rejection.model.as_deref().unwrap_or_default()) == model;
    // The newest decides: a success after it came after the older ones, too.
    let newest =
        refusals.iter().find(|(since, rejection)| named(rejection) && in_force(rejection, *since, None, at));
    if let Some((since, rejection)) = newest
        && success_of(c, home.0, rejection.model.as_deref(), *since)?.is_none()
    {
        return Ok(true);
    }
    let mut statement = c.prepare_cached(
        "SELECT b.model, b.remaining, b.resets_at FROM quota_homes h
         JOIN quota_buckets b ON b.account = h.account AND b.cloud_project = h.cloud_project
         WHERE h.home_id = ?1 AND b.at <= ?2",
    )?;
    let buckets = statement
        .query_map(params![home.0, at], |row| {
            Ok((row.get::<_, String>(0)?, read::share(row, 1)?, row.get::<_, Option<i64>>(2)?))
        })?
        .collect::<Result<Vec<_>, _>>()?;
    Ok(buckets.iter().any(|(name, remaining, resets_at)| {
        model::canonical(name) == model && *remaining == Some(Share::ZERO) && !reset_due(*resets_at, at)
    }))
}

/// The last success that may end a refusal of a model, or of any where none is named.
pub(super) fn success_of(
    c: &Connection,
    home: i64,
    model: Option<&str>,
    after: i64,
) -> Result<Option<i64>, StoreError> {
    succeeded_at(c, home, model.map(model::canonical), after)
}
