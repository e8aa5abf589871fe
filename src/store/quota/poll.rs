//! A poll becomes a home's state, observations and counters.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::{count, count_clamped, count_exhaustion, read, refused};
use crate::ledger::evidence::HomeId;
use crate::ledger::model;
use crate::ledger::quota::bucket::{BucketKey, Share, UNNAMED, Value, reset_due};
use crate::ledger::quota::history::{KEEP_ALL_MS, Observation, consumed, thinned};
use crate::ledger::quota::poll::{BucketReading, Poll, PollResult, QuotaState};
use crate::store::StoreError;
use crate::store::counter_names::LABEL_OVERFLOW;

/// Limits that are kept; what comes after them is counted and dropped.
const MAX_BUCKETS: i64 = 1000;
/// Buckets of one answer that are looked at.
const MAX_ANSWER: usize = 256;
/// Longest text that is kept, in characters.
const MAX_TEXT: usize = 300;
/// Thinning waits until so much has become old, in ms.
const THIN_STEP_MS: i64 = 86_400_000;

/// Applies a poll. One that is not newer than what is known of its home, or
/// an observation not newer than what is known of its bucket, changes nothing.
pub(in crate::store) fn poll(c: &Connection, poll: &Poll, now_ms: i64) -> Result<(), StoreError> {
    let before = c
        .prepare_cached("SELECT at, account, cloud_project, polled_at FROM quota_homes WHERE home_id = ?1")?
        .query_row([poll.home.0], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, Option<String>>(1)?,
                row.get::<_, Option<String>>(2)?,
                row.get::<_, Option<i64>>(3)?,
            ))
        })
        .optional()?;
    if before.as_ref().is_some_and(|(at, ..)| *at >= poll.at) {
        return Ok(());
    }
    let (_, account, project, polled_at) = before.unwrap_or_default();
    let (account, cloud_project) = identity(poll, account, project);
    c.prepare_cached(
        "INSERT OR REPLACE INTO quota_homes
             (home_id, at, state, detail, account, cloud_project, polled_at, next_poll_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        poll.home.0,
        poll.at,
        poll.state.as_str(),
        poll.detail.as_deref().map(bounded),
        account,
        cloud_project,
        if poll.asked { Some(poll.at) } else { polled_at },
        poll.next_poll_at,
    ])?;
    if let Some(result) = PollResult::of(poll) {
        c.prepare_cached(
            "INSERT INTO quota_polls (home_id, result, value) VALUES (?1, ?2, 1)
             ON CONFLICT (home_id, result) DO UPDATE SET value = value + 1",
        )?
        .execute(params![poll.home.0, result.as_str()])?;
    }
    if poll.asked && poll.state == QuotaState::Ok {
        let account = account.unwrap_or_else(|| UNNAMED.into());
        let cloud_project = cloud_project.unwrap_or_else(|| UNNAMED.into());
        answer(c, poll, &account, &cloud_project, now_ms)?;
    }
    Ok(())
}

/// Whose quota the home's is from now on. What a poll does not know stays as
/// it was, unless it knows that there is none.
fn identity(
    poll: &Poll,
    account: Option<String>,
    project: Option<String>,
) -> (Option<String>, Option<String>) {
    let named = poll.account.as_deref().map(bounded);
    let asked_about = poll.cloud_project.as_deref().map(bounded);
    match named {
        None if matches!(poll.state, QuotaState::NotGoogleSignIn | QuotaState::NoSignIn) => (None, None),
        None => (account, asked_about.or(project)),
        Some(named) if account.as_ref() == Some(&named) => (Some(named), asked_about.or(project)),
        // Another account: its project is another, too.
        Some(named) => (Some(named), asked_about),
    }
}

fn answer(
    c: &Connection,
    poll: &Poll,
    account: &str,
    cloud_project: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let newest = c
        .prepare_cached(
            "INSERT INTO quota_answers (account, cloud_project, at) VALUES (?1, ?2, ?3)
             ON CONFLICT (account, cloud_project) DO UPDATE SET at = excluded.at WHERE excluded.at > at",
        )?
        .execute(params![account, cloud_project, poll.at])?;
    if newest == 0 {
        // Another home that shares the quota was asked later.
        return Ok(());
    }
    let mut clamped = 0;
    for (key, reading) in distinct(&poll.buckets, account, cloud_project) {
        clamped += i64::from(Value::of(reading).clamped);
        observe(c, poll.home, &key, reading, poll.at, now_ms)?;
    }
    count_clamped(c, clamped)
}

/// Each limit once. An answer that states one twice means the lower value: it
/// is the one that refuses first.
fn distinct<'r>(
    buckets: &'r [BucketReading],
    account: &str,
    cloud_project: &str,
) -> BTreeMap<BucketKey, &'r BucketReading> {
    let mut distinct: BTreeMap<BucketKey, &BucketReading> = BTreeMap::new();
    for reading in buckets.iter().take(MAX_ANSWER) {
        let key = BucketKey {
            account: account.to_owned(),
            cloud_project: cloud_project.to_owned(),
            model: bounded(&reading.model),
            token_type: bounded(&reading.token_type),
        };
        let lower = |known: &BucketReading| match (Value::of(reading).remaining, Value::of(known).remaining) {
            (Some(this), Some(known)) => this < known,
            (Some(_), None) => true,
            _ => false,
        };
        if distinct.get(&key).is_none_or(|known| lower(known)) {
            distinct.insert(key, reading);
        }
    }
    distinct
}

struct Known {
    id: i64,
    at: i64,
    remaining: Option<Share>,
    resets_at: Option<i64>,
    last_reported: Option<Share>,
    thinned_to: i64,
}

fn observe(
    c: &Connection,
    home: HomeId,
    key: &BucketKey,
    reading: &BucketReading,
    at: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let value = Value::of(reading);
    let Some(known) = known(c, key, at, now_ms)? else { return count(c, LABEL_OVERFLOW, 1) };
    let remaining = value.remaining.map(Share::billionths);
    c.prepare_cached(
        "INSERT OR IGNORE INTO quota_history (bucket_id, at, fraction, amount, remaining, resets_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        known.id,
        at,
        reading.remaining_fraction,
        reading.remaining_amount,
        remaining,
        reading.resets_at
    ])?;
    // Asked while the row says what was before.
    let model = model::canonical(&key.model);
    let was_empty = known.remaining == Some(Share::ZERO) && !reset_due(known.resets_at, at);
    let begins =
        value.remaining == Some(Share::ZERO) && !was_empty && !refused::is_exhausted(c, home, model, at)?;
    let drop = known.last_reported.zip(value.remaining).map_or(0, |(was, is)| consumed(was, is));
    c.prepare_cached(
        "UPDATE quota_buckets SET at = ?2, fraction = ?3, amount = ?4, remaining = ?5, resets_at = ?6,
             limit_amount = coalesce(?7, limit_amount), last_reported = coalesce(?5, last_reported),
             consumed = consumed + ?8
         WHERE id = ?1",
    )?
    .execute(params![
        known.id,
        at,
        reading.remaining_fraction,
        reading.remaining_amount,
        remaining,
        reading.resets_at,
        value.limit(),
        drop
    ])?;
    if begins {
        count_exhaustion(c, home, model, now_ms)?;
    }
    thin(c, &known, now_ms)
}

/// The bucket's row, made where it is new; `None`: there are too many.
fn known(c: &Connection, key: &BucketKey, at: i64, now_ms: i64) -> Result<Option<Known>, StoreError> {
    let find = || {
        c.prepare_cached(
            "SELECT id, at, remaining, resets_at, last_reported, thinned_to FROM quota_buckets
             WHERE account = ?1 AND cloud_project = ?2 AND model = ?3 AND token_type = ?4",
        )?
        .query_row(params![key.account, key.cloud_project, key.model, key.token_type], |row| {
            Ok(Known {
                id: row.get(0)?,
                at: row.get(1)?,
                remaining: read::share(row, 2)?,
                resets_at: row.get(3)?,
                last_reported: read::share(row, 4)?,
                thinned_to: row.get(5)?,
            })
        })
        .optional()
    };
    if let Some(known) = find()? {
        // `answer` lets newer answers of the account and project through only.
        debug_assert!(known.at < at, "an observation is newer than the last");
        return Ok(Some(known));
    }
    let taken: i64 = c.query_row("SELECT count(*) FROM quota_buckets", [], |row| row.get(0))?;
    if taken >= MAX_BUCKETS {
        return Ok(None);
    }
    c.execute(
        "INSERT INTO quota_buckets (account, cloud_project, model, token_type, born_at, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![key.account, key.cloud_project, key.model, key.token_type, now_ms, at],
    )?;
    Ok(find()?)
}

/// Drops rows of the history that are old and say nothing of their own, a day
/// or more at a time.
fn thin(c: &Connection, known: &Known, now_ms: i64) -> Result<(), StoreError> {
    const HOUR_MS: i64 = 3_600_000;
    let to = (now_ms.saturating_sub(KEEP_ALL_MS)).div_euclid(HOUR_MS) * HOUR_MS;
    if to.saturating_sub(known.thinned_to) < THIN_STEP_MS {
        return Ok(());
    }
    // With a neighbour on either side, which stay.
    let mut statement = c.prepare_cached(
        "SELECT at, remaining, resets_at FROM quota_history WHERE bucket_id = ?1
           AND at >= coalesce((SELECT max(at) FROM quota_history WHERE bucket_id = ?1 AND at < ?2), ?2)
           AND at <= coalesce((SELECT min(at) FROM quota_history WHERE bucket_id = ?1 AND at >= ?3), ?3)
         ORDER BY at",
    )?;
    let rows: Vec<Observation> = statement
        .query_map(params![known.id, known.thinned_to, to], read::observation)?
        .collect::<Result<_, _>>()?;
    let mut delete = c.prepare_cached("DELETE FROM quota_history WHERE bucket_id = ?1 AND at = ?2")?;
    for at in thinned(&rows) {
        delete.execute([known.id, at])?;
    }
    c.prepare_cached("UPDATE quota_buckets SET thinned_to = ?2 WHERE id = ?1")?.execute([known.id, to])?;
    Ok(())
}

fn bounded(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}
