//! What the surfaces ask of quota.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};

use super::refused;
use crate::ledger::quota::Rejection;
use crate::ledger::quota::bucket::{BucketKey, Share, UNNAMED};
use crate::ledger::quota::history::Observation;
use crate::ledger::quota::poll::QuotaState;
use crate::store::StoreError;
use crate::store::read::Snapshot;

/// At most so many refusals are looked at: the newest.
const MAX_REFUSALS: i64 = 1000;

/// What the poller said last of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaHomeRow {
    pub home_id: i64,
    /// Unix ms.
    pub at: i64,
    pub state: QuotaState,
    pub detail: Option<String>,
    pub account: Option<String>,
    pub cloud_project: Option<String>,
    /// Unix ms of the last request, and of the next one meant.
    pub polled_at: Option<i64>,
    pub next_poll_at: Option<i64>,
    /// Unix ms of the newest good answer for its account and project.
    pub observed_at: Option<i64>,
}

impl QuotaHomeRow {
    /// Whose quota it is and of which project, under the names of the labels.
    #[must_use]
    pub fn identity(&self) -> (&str, &str) {
        (self.account.as_deref().unwrap_or(UNNAMED), self.cloud_project.as_deref().unwrap_or(UNNAMED))
    }
}

/// A limit with its newest observation.
#[derive(Clone, Debug, PartialEq)]
pub struct BucketRow {
    pub id: i64,
    pub key: BucketKey,
    pub born_at: i64,
    /// Unix ms of the newest observation.
    pub at: i64,
    /// As stated; derived values beside it.
    pub fraction: Option<f64>,
    pub amount: Option<i64>,
    pub remaining: Option<Share>,
    pub resets_at: Option<i64>,
    /// The last limit that could be derived.
    pub limit: Option<i64>,
    /// Sum of observed drops, in billionths.
    pub consumed: u64,
    /// Whether the newest good answer of its account and project holds it.
    pub current: bool,
}

/// Counters of refusals of a home and a canonical model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaModelRow {
    pub id: i64,
    pub home_id: i64,
    pub model: String,
    /// Unix ms; `None` for what a first import brought.
    pub born_at: Option<i64>,
    /// By the reasons of [`REASONS`](crate::ledger::quota::refusal::REASONS).
    pub rejections: Vec<(String, u64)>,
    pub capacity: u64,
    pub exhaustions: u64,
}

/// A refusal that may still matter, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalRow {
    pub home_id: i64,
    pub session: String,
    /// Unix ms.
    pub at: i64,
    pub rejection: Rejection,
    /// The last answered request for its model since, unix ms.
    pub succeeded_at: Option<i64>,
    /// When its session was heard of last: an answer, or the end of the turn.
    pub heard_at: Option<i64>,
}

/// All of it, from one snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuotaRows {
    pub homes: Vec<QuotaHomeRow>,
    pub buckets: Vec<BucketRow>,
    pub models: Vec<QuotaModelRow>,
    /// (home id, result, count).
    pub polls: Vec<(i64, String, u64)>,
    pub refusals: Vec<RefusalRow>,
}

impl Snapshot<'_> {
    /// What is known of quota at `now` (unix ms).
    ///
    /// # Errors
    /// What SQLite says.
    pub fn quota(&self, now: i64) -> Result<QuotaRows, StoreError> {
        let c: &Connection = &self.tx;
        Ok(QuotaRows {
            homes: homes(c)?,
            buckets: buckets(c)?,
            models: models(c)?,
            polls: polls(c)?,
            refusals: refusals(c, now)?,
        })
    }

    /// What is kept of a bucket's observations since a time (unix ms), oldest
    /// first; the newest `most` of them.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn quota_history(&self, bucket: i64, since: i64, most: u32) -> Result<Vec<Observation>, StoreError> {
        let mut statement = self.tx.prepare_cached(
            "SELECT at, remaining, resets_at FROM quota_history WHERE bucket_id = ?1 AND at >= ?2
             ORDER BY at DESC LIMIT ?3",
        )?;
        let mut rows =
            statement.query_map(params![bucket, since, most], observation)?.collect::<Result<Vec<_>, _>>()?;
        rows.reverse();
        Ok(rows)
    }
}

fn homes(c: &Connection) -> Result<Vec<QuotaHomeRow>, StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT h.home_id, h.at, h.state, h.detail, h.account, h.cloud_project, h.polled_at, h.next_poll_at, a.at
         FROM quota_homes h LEFT JOIN quota_answers a
           ON a.account = coalesce(h.account, ?1) AND a.cloud_project = coalesce(h.cloud_project, ?1)
         ORDER BY h.home_id",
    )?;
    let rows = statement.query_map([UNNAMED], |row| {
        Ok(QuotaHomeRow {
            home_id: row.get(0)?,
            at: row.get(1)?,
            // A state of a later version reads as the one that claims nothing.
            state: QuotaState::parse(&row.get::<_, String>(2)?).unwrap_or(QuotaState::Unavailable),
            detail: row.get(3)?,
            account: row.get(4)?,
            cloud_project: row.get(5)?,
            polled_at: row.get(6)?,
            next_poll_at: row.get(7)?,
            observed_at: row.get(8)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn buckets(c: &Connection) -> Result<Vec<BucketRow>, StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT b.id, b.account, b.cloud_project, b.model, b.token_type, b.born_at, b.at, b.fraction, b.amount,
                b.remaining, b.resets_at, b.limit_amount, b.consumed, b.at = a.at
         FROM quota_buckets b JOIN quota_answers a USING (account, cloud_project)
         ORDER BY b.account, b.cloud_project, b.model, b.token_type",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(BucketRow {
            id: row.get(0)?,
            key: BucketKey {
                account: row.get(1)?,
                cloud_project: row.get(2)?,
                model: row.get(3)?,
                token_type: row.get(4)?,
            },
            born_at: row.get(5)?,
            at: row.get(6)?,
            fraction: row.get(7)?,
            amount: row.get(8)?,
            remaining: share(row, 9)?,
            resets_at: row.get(10)?,
            limit: row.get(11)?,
            consumed: row.get::<_, i64>(12)?.unsigned_abs(),
            current: row.get(13)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn models(c: &Connection) -> Result<Vec<QuotaModelRow>, StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT id, home_id, model, born_at, capacity, exhaustions FROM quota_models ORDER BY id",
    )?;
    let mut rows = statement
        .query_map([], |row| {
            Ok(QuotaModelRow {
                id: row.get(0)?,
                home_id: row.get(1)?,
                model: row.get(2)?,
                born_at: row.get(3)?,
                rejections: Vec::new(),
                capacity: row.get::<_, i64>(4)?.unsigned_abs(),
                exhaustions: row.get::<_, i64>(5)?.unsigned_abs(),
            })
        })?
        .collect::<Result<Vec<_>, _>>()?;
    let mut statement = c.prepare_cached("SELECT model_id, reason, value FROM quota_model_reasons")?;
    let mut reasons = statement.query([])?;
    while let Some(reason) = reasons.next()? {
        let id: i64 = reason.get(0)?;
        if let Some(row) = rows.iter_mut().find(|row| row.id == id) {
            row.rejections.push((reason.get(1)?, reason.get::<_, i64>(2)?.unsigned_abs()));
        }
    }
    Ok(rows)
}

fn polls(c: &Connection) -> Result<Vec<(i64, String, u64)>, StoreError> {
    let mut statement = c.prepare_cached("SELECT home_id, result, value FROM quota_polls")?;
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?.unsigned_abs())))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn refusals(c: &Connection, now: i64) -> Result<Vec<RefusalRow>, StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT q.home_id, q.session, q.at, s.id, q.id,
                q.model, q.reason, q.capacity, q.metric, q.resets_at, q.retry_after_ms, q.waits
         FROM quota_rejections q LEFT JOIN sessions s ON s.home_id = q.home_id AND s.session = q.session
         WHERE q.at <= ?1 AND (q.at > ?1 - 86400000 OR q.resets_at > ?1 OR q.at + q.retry_after_ms > ?1)
         ORDER BY q.at DESC, q.id DESC LIMIT ?2",
    )?;
    let rows = statement
        .query_map([now, MAX_REFUSALS], |row| {
            let refusal = RefusalRow {
                home_id: row.get(0)?,
                session: row.get(1)?,
                at: row.get(2)?,
                rejection: rejection(row, 5)?,
                succeeded_at: None,
                heard_at: None,
            };
            Ok((refusal, row.get::<_, Option<i64>>(3)?))
        })?
        .collect::<Result<Vec<_>, _>>()?;
    let mut rows = hear(c, rows)?;
    // Asked once for each home and model, since the oldest refusal: rows are newest first.
    let mut oldest: BTreeMap<(i64, Option<String>), i64> = BTreeMap::new();
    for row in &rows {
        oldest.insert((row.home_id, row.rejection.model.clone()), row.at);
    }
    let mut last: BTreeMap<(i64, Option<String>), Option<i64>> = BTreeMap::new();
    for ((home, model), since) in oldest {
        let success = refused::success_of(c, home, model.as_deref(), since)?;
        last.insert((home, model), success);
    }
    for row in &mut rows {
        let success = last.get(&(row.home_id, row.rejection.model.clone())).copied().flatten();
        row.succeeded_at = success.filter(|at| *at > row.at);
    }
    Ok(rows)
}

/// When the sessions of these refusals were heard of last, where that tells
/// whether a turn sleeps.
fn hear(c: &Connection, rows: Vec<(RefusalRow, Option<i64>)>) -> Result<Vec<RefusalRow>, StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT max(at) FROM (
             SELECT max(at) AS at FROM requests WHERE session_id = ?1
             UNION ALL SELECT max(at) FROM telemetry WHERE session_id = ?1 AND kind IN (2, 4)
             UNION ALL SELECT max(coalesce(ended_at, closed_at)) FROM turns WHERE session_id = ?1)",
    )?;
    let mut heard: BTreeMap<i64, Option<i64>> = BTreeMap::new();
    let mut refusals = Vec::with_capacity(rows.len());
    for (mut row, session) in rows {
        if let Some(session) = session.filter(|_| row.rejection.waits) {
            row.heard_at = match heard.get(&session) {
                Some(known) => *known,
                None => statement.query_row([session], |row| row.get(0))?,
            };
            heard.insert(session, row.heard_at);
        }
        refusals.push(row);
    }
    Ok(refusals)
}

pub(super) fn share(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Share>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Share::from_billionths))
}

/// A row of the history: at, remaining, `resets_at`.
pub(super) fn observation(row: &Row<'_>) -> rusqlite::Result<Observation> {
    Ok(Observation { at: row.get(0)?, remaining: share(row, 1)?, resets_at: row.get(2)? })
}

/// Seven columns from one on: model, reason, capacity, metric, `resets_at`,
/// `retry_after_ms`, waits.
pub(super) fn rejection(row: &Row<'_>, from: usize) -> rusqlite::Result<Rejection> {
    let stated =
        |column: usize| row.get::<_, String>(column).map(|text| Some(text).filter(|text| !text.is_empty()));
    Ok(Rejection {
        model: stated(from)?,
        reason: stated(from + 1)?,
        capacity: row.get(from + 2)?,
        metric: row.get(from + 3)?,
        resets_at: row.get(from + 4)?,
        retry_after_ms: row.get(from + 5)?,
        waits: row.get(from + 6)?,
    })
}
