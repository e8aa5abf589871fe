//! Quota for scripts: `gemgauge quota --json`, `/api/v1/quota`, and its part
//! of `/api/v1/state` (quota Q15).

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::{HomeLine, Limit, Quota};
use crate::ledger::quota::RISK;
use crate::ledger::quota::bucket::Share;
use crate::ledger::quota::refusal::reason;
use crate::ledger::quota::runway::Runway;
use crate::surfaces::report::time::iso;

/// How a home stands (quota Q15).
#[derive(Clone, Debug, Serialize)]
pub struct HomeJson {
    state: &'static str,
    detail: Option<String>,
    next_poll_at: Option<String>,
}

/// One limit of a home (quota Q15): no state of its own.
#[derive(Clone, Debug, Serialize)]
pub struct LimitJson {
    home: String,
    account: String,
    cloud_project: String,
    model: String,
    token_type: String,
    label: String,
    used_percent: Option<f64>,
    remaining_fraction: Option<f64>,
    remaining_amount: Option<i64>,
    limit: Option<i64>,
    resets_at: Option<String>,
    observed_at: String,
    stale: bool,
}

impl Quota {
    /// `quota` of `/api/v1/state`: homes by name.
    #[must_use]
    pub fn homes_json(&self) -> BTreeMap<String, HomeJson> {
        let json = |home: &HomeLine| HomeJson {
            state: home.state.as_str(),
            detail: home.detail.clone(),
            next_poll_at: home.next_poll_at.map(iso),
        };
        self.homes.iter().map(|home| (home.name.clone(), json(home))).collect()
    }

    /// `rate_limits` of `/api/v1/state`: each limit for each home that has it.
    /// A value whose reset has passed is the last that was observed; its
    /// `resets_at` says so.
    #[must_use]
    pub fn rate_limits(&self) -> Vec<LimitJson> {
        let of = |limit: &Limit, home: &String| LimitJson {
            home: home.clone(),
            account: limit.row.key.account.clone(),
            cloud_project: limit.row.key.cloud_project.clone(),
            model: limit.row.key.model.clone(),
            token_type: limit.row.key.token_type.clone(),
            label: limit.row.key.label(),
            used_percent: limit.row.remaining.map(Share::used_percent),
            remaining_fraction: limit.row.remaining.map(Share::to_f64),
            remaining_amount: limit.row.amount,
            limit: limit.row.limit,
            resets_at: limit.row.resets_at.map(iso),
            observed_at: iso(limit.row.at),
            stale: limit.stale,
        };
        let limits = self.limits.iter().flat_map(|limit| limit.homes.iter().map(move |home| of(limit, home)));
        limits.collect()
    }

    /// All of it, as one JSON document.
    ///
    /// # Errors
    /// Whatever writing says.
    pub fn write_json(&self, pretty: bool, out: &mut dyn Write) -> io::Result<()> {
        let document = Document::of(self);
        if pretty {
            serde_json::to_writer_pretty(&mut *out, &document)?;
            writeln!(out)
        } else {
            Ok(serde_json::to_writer(&mut *out, &document)?)
        }
    }
}

#[derive(Serialize)]
struct Document<'q> {
    schema: u32,
    at: String,
    homes: BTreeMap<&'q str, WholeHome<'q>>,
    limits: Vec<WholeLimit<'q>>,
    refusals: Vec<RefusalJson<'q>>,
    asleep: Vec<SleeperJson<'q>>,
    risk: &'static str,
}

#[derive(Serialize)]
struct WholeHome<'q> {
    state: &'static str,
    detail: Option<&'q str>,
    account: Option<&'q str>,
    cloud_project: Option<&'q str>,
    observed_at: Option<String>,
    polled_at: Option<String>,
    next_poll_at: Option<String>,
}

#[derive(Serialize)]
struct WholeLimit<'q> {
    account: &'q str,
    cloud_project: &'q str,
    model: &'q str,
    token_type: &'q str,
    label: String,
    homes: &'q [String],
    used_percent: Option<f64>,
    remaining_fraction: Option<f64>,
    /// As Google stated it.
    stated_fraction: Option<f64>,
    remaining_amount: Option<i64>,
    limit: Option<i64>,
    /// Nobody states a limit: amount ÷ fraction, now or when both were last there.
    limit_derived: bool,
    resets_at: Option<String>,
    reset_due: bool,
    observed_at: String,
    stale: bool,
    blocked_by_poll: bool,
    blocked_by_429: bool,
    contradicted: bool,
    refused_at: Option<String>,
    refused_until: Option<String>,
    runway: RunwayJson,
    history: Vec<ObservationJson>,
}

#[derive(Serialize)]
struct RunwayJson {
    forecast: &'static str,
    percent_per_hour: Option<f64>,
    empty_at: Option<String>,
    before_reset: Option<bool>,
}

#[derive(Serialize)]
struct ObservationJson {
    at: String,
    remaining_fraction: Option<f64>,
    resets_at: Option<String>,
}

#[derive(Serialize)]
struct RefusalJson<'q> {
    home: &'q str,
    session_id: &'q str,
    at: String,
    until: String,
    model: &'q str,
    reason: &'static str,
    stated_reason: Option<&'q str>,
    metric: Option<&'q str>,
}

#[derive(Serialize)]
struct SleeperJson<'q> {
    home: &'q str,
    session_id: &'q str,
    model: &'q str,
    until: String,
}

impl<'q> Document<'q> {
    fn of(quota: &'q Quota) -> Self {
        let home = |home: &'q HomeLine| WholeHome {
            state: home.state.as_str(),
            detail: home.detail.as_deref(),
            account: home.account.as_deref(),
            cloud_project: home.cloud_project.as_deref(),
            observed_at: home.observed_at.map(iso),
            polled_at: home.polled_at.map(iso),
            next_poll_at: home.next_poll_at.map(iso),
        };
        let refusals = quota.refusals.iter().map(|refusal| RefusalJson {
            home: &refusal.home,
            session_id: &refusal.session,
            at: iso(refusal.at),
            until: iso(refusal.until),
            model: &refusal.model,
            reason: reason(&refusal.rejection),
            stated_reason: refusal.rejection.reason.as_deref(),
            metric: refusal.rejection.metric.as_deref(),
        });
        let asleep = quota.asleep.iter().map(|sleeper| SleeperJson {
            home: &sleeper.home,
            session_id: &sleeper.session,
            model: &sleeper.model,
            until: iso(sleeper.until),
        });
        Self {
            schema: 1,
            at: iso(quota.now),
            homes: quota.homes.iter().map(|line| (line.name.as_str(), home(line))).collect(),
            limits: quota.limits.iter().map(WholeLimit::of).collect(),
            refusals: refusals.collect(),
            asleep: asleep.collect(),
            risk: RISK,
        }
    }
}

impl<'q> WholeLimit<'q> {
    fn of(limit: &'q Limit) -> Self {
        let row = &limit.row;
        let history = limit.history.iter().map(|one| ObservationJson {
            at: iso(one.at),
            remaining_fraction: one.remaining.map(Share::to_f64),
            resets_at: one.resets_at.map(iso),
        });
        Self {
            account: &row.key.account,
            cloud_project: &row.key.cloud_project,
            model: &row.key.model,
            token_type: &row.key.token_type,
            label: row.key.label(),
            homes: &limit.homes,
            used_percent: row.remaining.map(Share::used_percent),
            remaining_fraction: row.remaining.map(Share::to_f64),
            stated_fraction: row.fraction.filter(|fraction| fraction.is_finite()),
            remaining_amount: row.amount,
            limit: row.limit,
            limit_derived: row.limit.is_some(),
            resets_at: row.resets_at.map(iso),
            reset_due: limit.due,
            observed_at: iso(row.at),
            stale: limit.stale,
            blocked_by_poll: limit.standing.blocked_by_poll,
            blocked_by_429: limit.standing.blocked_by_429,
            contradicted: limit.standing.contradicted,
            refused_at: limit.refused.map(|(at, _)| iso(at)),
            refused_until: limit.refused.map(|(_, until)| iso(until)),
            runway: RunwayJson::of(limit.runway),
            history: history.collect(),
        }
    }
}

impl RunwayJson {
    fn of(runway: Runway) -> Self {
        let word = |forecast| Self { forecast, percent_per_hour: None, empty_at: None, before_reset: None };
        match runway {
            Runway::NotReported => word("not_reported"),
            Runway::ResetDue => word("reset_due"),
            Runway::Empty => word("empty"),
            Runway::TooEarly => word("too_early"),
            Runway::Steady => word("steady"),
            Runway::Forecast(forecast) => Self {
                forecast: "falling",
                percent_per_hour: Some((forecast.per_hour * 1e6).round() / 1e4),
                empty_at: Some(iso(forecast.empty_at)),
                before_reset: forecast.before_reset,
            },
        }
    }
}
