//! Quota: what is left of each limit, until when, and how far that can be
//! believed; for people, scripts, `/api/v1/state` and metrics.
//!
//! Only limits of the account and project that a home uses now are shown; what
//! was known of others stays in the ledger.

mod json;
mod text;

#[cfg(test)]
pub(super) mod sample;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::metrics::sessions;
use crate::ledger::model;
use crate::ledger::quota::Rejection;
use crate::ledger::quota::bucket::{Share, is_stale, reset_due, shown_state};
use crate::ledger::quota::history::Observation;
use crate::ledger::quota::poll::QuotaState;
use crate::ledger::quota::refusal::{Standing, asleep_until, holds_until, in_force};
use crate::ledger::quota::runway::Runway;
use crate::store::StoreError;
use crate::store::read::{BucketRow, HomeRow, QuotaHomeRow, QuotaRows, Snapshot};

pub use json::{HomeJson, LimitJson};
pub use text::write_risk;
pub(super) use text::{clock, percent, sentence};

/// Histories are shown this far back, in ms, and so many observations of each.
const HISTORY_MS: i64 = 7 * 86_400_000;
const MAX_HISTORY: u32 = 2_000;

/// Everything known of quota at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quota {
    /// Unix ms.
    pub now: i64,
    /// By name.
    pub homes: Vec<HomeLine>,
    /// By account, project, model and token type.
    pub limits: Vec<Limit>,
    /// Refusals for exhausted quota that are in force, newest first, one for
    /// each home and model.
    pub refusals: Vec<Refusal>,
    pub asleep: Vec<Sleeper>,
}

/// How a home stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeLine {
    pub name: String,
    pub state: QuotaState,
    pub detail: Option<String>,
    pub account: Option<String>,
    pub cloud_project: Option<String>,
    /// Unix ms of the newest good answer, of the last request, of the next one meant.
    pub observed_at: Option<i64>,
    pub polled_at: Option<i64>,
    pub next_poll_at: Option<i64>,
}

/// One limit with what may be said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub row: BucketRow,
    /// Names of the homes that share it.
    pub homes: Vec<String>,
    pub stale: bool,
    /// Its reset has passed and nobody has asked since.
    pub due: bool,
    pub standing: Standing,
    /// The newest refusal in force: when it was met and until when it holds, unix ms.
    pub refused: Option<(i64, i64)>,
    pub runway: Runway,
    /// Oldest first; empty where it was not asked for.
    pub history: Vec<Observation>,
}

impl Limit {
    /// What is left, as far as it is known now.
    #[must_use]
    pub fn remaining(&self) -> Option<Share> {
        self.row.remaining.filter(|_| !self.due)
    }
}

/// A refusal in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub home: String,
    pub session: String,
    /// Unix ms.
    pub at: i64,
    pub until: i64,
    /// Canonical; `unknown` where the refusal names none.
    pub model: String,
    pub rejection: Rejection,
}

/// A turn that waits a refusal out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleeper {
    pub home: String,
    pub session: String,
    pub model: String,
    /// Unix ms.
    pub until: i64,
}

impl Quota {
    /// Reads it at `now` (unix ms), of all homes or of some, without histories.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn standing(snapshot: &Snapshot<'_>, chosen: &[String], now: i64) -> Result<Self, StoreError> {
        let mut homes = snapshot.homes()?;
        homes.retain(|_, home| chosen.is_empty() || chosen.contains(&home.name));
        let live = snapshot.active_sessions(sessions::window(now))?.into_values().collect();
        Ok(Self::of(&snapshot.quota(now)?, &homes, &live, now))
    }

    /// The same with histories and what follows from them.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn read(snapshot: &Snapshot<'_>, chosen: &[String], now: i64) -> Result<Self, StoreError> {
        let mut quota = Self::standing(snapshot, chosen, now)?;
        for limit in &mut quota.limits {
            limit.history = snapshot.quota_history(limit.row.id, now - HISTORY_MS, MAX_HISTORY)?;
            limit.runway = Runway::of(&limit.history, now);
        }
        Ok(quota)
    }

    /// What follows from rows, without histories. `live` are the ids of homes
    /// in which a session is going on.
    #[must_use]
    pub fn of(rows: &QuotaRows, homes: &BTreeMap<i64, HomeRow>, live: &BTreeSet<i64>, now: i64) -> Self {
        let (refusals, asleep) = refusals(rows, homes, now);
        let mut limits: BTreeMap<i64, Limit> = BTreeMap::new();
        for home in &rows.homes {
            let Some(HomeRow { name, .. }) = homes.get(&home.home_id) else { continue };
            let of = |row: &&BucketRow| {
                row.current && home.identity() == (&row.key.account, &row.key.cloud_project)
            };
            for row in rows.buckets.iter().filter(of) {
                let stale = is_stale(home.state, row.at, live.contains(&home.home_id), now);
                let model = model::canonical(&row.key.model);
                let refused = refusals
                    .iter()
                    .find(|refusal| refusal.home == *name && refusal.model == model)
                    .map(|refusal| (refusal.at, refusal.until));
                let limit = limits.entry(row.id).or_insert_with(|| limit(row, now));
                limit.homes.push(name.clone());
                // One home that asks is enough; one that is refused is enough, too.
                limit.stale &= stale;
                limit.refused = limit.refused.max(refused);
                limit.standing = Standing::of(row.remaining, row.resets_at, limit.refused.is_some(), now);
            }
        }
        let line = |home: &HomeRow| {
            let row = rows.homes.iter().find(|row| row.home_id == home.id);
            home_line(&home.name, row, live.contains(&home.id), now)
        };
        let mut lines: Vec<HomeLine> = homes.values().map(line).collect();
        lines.sort_by(|a, b| a.name.cmp(&b.name));
        let mut limits: Vec<Limit> = limits.into_values().collect();
        limits.sort_by(|a, b| a.row.key.cmp(&b.row.key));
        Self { now, homes: lines, limits, refusals, asleep }
    }

    /// Keeps the limits and refusals of models whose name holds one of these words.
    pub fn keep_models(&mut self, words: &[String]) {
        if !words.is_empty() {
            let kept = |model: &str| words.iter().any(|word| model.contains(word.as_str()));
            self.limits.retain(|limit| kept(&limit.row.key.model));
            self.refusals.retain(|refusal| kept(&refusal.model));
            self.asleep.retain(|sleeper| kept(&sleeper.model));
        }
    }

    /// Whether at least so many percent are known to be left of each limit
    /// shown. What is not reported, or is refused, is not known to be left.
    #[must_use]
    pub fn has_at_least(&self, percent: f64) -> bool {
        let enough = |limit: &Limit| {
            !limit.standing.is_blocked() && limit.remaining().is_some_and(|left| left.percent() >= percent)
        };
        !self.limits.is_empty() && self.limits.iter().all(enough) && self.refusals.is_empty()
    }

    /// Whether one of the limits shown is what a refusal refused.
    pub(super) fn fits(&self, refusal: &Refusal) -> bool {
        self.limits.iter().any(|limit| {
            limit.homes.contains(&refusal.home) && model::canonical(&limit.row.key.model) == refusal.model
        })
    }

    /// The limit that ends first: a refused one, else the one with the least left.
    #[must_use]
    pub fn tightest(&self) -> Option<&Limit> {
        let known = self.limits.iter().filter(|limit| limit.refused.is_some() || limit.remaining().is_some());
        known.min_by_key(|limit| (limit.refused.is_none(), limit.remaining()))
    }
}

fn limit(row: &BucketRow, now: i64) -> Limit {
    Limit {
        row: row.clone(),
        homes: Vec::new(),
        stale: true,
        due: reset_due(row.resets_at, now),
        standing: Standing::default(),
        refused: None,
        runway: Runway::NotReported,
        history: Vec::new(),
    }
}

fn home_line(name: &str, row: Option<&QuotaHomeRow>, live: bool, now: i64) -> HomeLine {
    let observed_at = row.and_then(|row| row.observed_at);
    HomeLine {
        name: name.to_owned(),
        state: shown_state(row.map(|row| row.state), observed_at, live, now),
        detail: row.and_then(|row| row.detail.clone()),
        account: row.and_then(|row| row.account.clone()),
        cloud_project: row.and_then(|row| row.cloud_project.clone()),
        observed_at,
        polled_at: row.and_then(|row| row.polled_at),
        next_poll_at: row.and_then(|row| row.next_poll_at),
    }
}

fn refusals(rows: &QuotaRows, homes: &BTreeMap<i64, HomeRow>, now: i64) -> (Vec<Refusal>, Vec<Sleeper>) {
    let mut refusals: Vec<Refusal> = Vec::new();
    let mut asleep: Vec<Sleeper> = Vec::new();
    let mut heard: BTreeSet<(i64, &str)> = BTreeSet::new();
    for row in &rows.refusals {
        let Some(HomeRow { name, .. }) = homes.get(&row.home_id) else { continue };
        let model = model::canonical(row.rejection.model.as_deref().unwrap_or_default()).to_owned();
        // Newest first: only the last word of a session says whether it sleeps.
        if heard.insert((row.home_id, &row.session))
            && let Some(until) = asleep_until(&row.rejection, row.at, row.heard_at, now)
        {
            let (home, session) = (name.clone(), row.session.clone());
            asleep.push(Sleeper { home, session, model: model.clone(), until });
        }
        if in_force(&row.rejection, row.at, row.succeeded_at, now)
            && !refusals.iter().any(|known| known.home == *name && known.model == model)
        {
            refusals.push(Refusal {
                home: name.clone(),
                session: row.session.clone(),
                at: row.at,
                until: holds_until(&row.rejection, row.at).unwrap_or(now),
                model,
                rejection: row.rejection.clone(),
            });
        }
    }
    (refusals, asleep)
}
