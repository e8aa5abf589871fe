//! Quota: what polls and refused requests say of it (quota Q9–Q14).

use std::collections::{BTreeMap, BTreeSet};

use super::family::{Descriptor, Family, Kind, Label};
use super::tokens::HOME;
use super::zero_first::{Receipt, Set, ZeroFirst};
use crate::ledger::quota::bucket::{BucketKey, Share, UNNAMED};
use crate::ledger::quota::poll::{PollResult, QuotaState};
use crate::ledger::quota::refusal::REASONS;
use crate::store::counter_names as names;
use crate::store::read::{HomeRow, QuotaRows};
use crate::surfaces::quota::Quota;

const ACCOUNT: Label = Label::open(
    "account",
    "whose quota it is: a hash that is the same on every machine, or a configured name; `unknown` where no sign-in was read",
);
const CLOUD_PROJECT: Label = Label::open("cloud_project", "Cloud project that was asked about, or `unknown`");
const MODEL: Label = Label::open("model", "canonical model name, `unknown` where none is named, or `other`");
const TOKEN_TYPE: Label = Label::open(
    "token_type",
    "what the limit counts, as Google says it: `REQUESTS`; `unknown` for a refusal that fits no limit",
);

fn evidence() -> Vec<&'static str> {
    EVIDENCE.to_vec()
}

fn states() -> Vec<&'static str> {
    QuotaState::ALL.map(QuotaState::as_str).to_vec()
}

fn results() -> Vec<&'static str> {
    PollResult::ALL.map(PollResult::as_str).to_vec()
}

fn reasons() -> Vec<&'static str> {
    REASONS.to_vec()
}

/// Who says that a limit refuses.
const EVIDENCE: [&str; 2] = ["poll", "429"];

pub static REMAINING: Descriptor = Descriptor {
    name: "gemgauge_quota_remaining_ratio",
    kind: Kind::Gauge,
    help: "Share of the limit that is left; absent when not reported, or once its reset has passed and nobody has asked since",
    labels: &[ACCOUNT, CLOUD_PROJECT, MODEL, TOKEN_TYPE],
};

pub static REPORTED: Descriptor = Descriptor {
    name: "gemgauge_quota_reported",
    kind: Kind::Gauge,
    help: "Whether the last answer reports what is left (1); else it is neither 0 nor all of it",
    labels: &[ACCOUNT, CLOUD_PROJECT, MODEL, TOKEN_TYPE],
};

pub static RESET: Descriptor = Descriptor {
    name: "gemgauge_quota_reset_timestamp_seconds",
    kind: Kind::Gauge,
    help: "When the limit resets as Google states it, unix time; in the past: a reset is due and nobody has asked since",
    labels: &[ACCOUNT, CLOUD_PROJECT, MODEL, TOKEN_TYPE],
};

pub static BLOCKED: Descriptor = Descriptor {
    name: "gemgauge_quota_blocked",
    kind: Kind::Gauge,
    help: "Whether nothing is left, by the last answer or by a refused request that still holds (1)",
    labels: &[ACCOUNT, CLOUD_PROJECT, MODEL, TOKEN_TYPE, Label::closed("evidence", evidence)],
};

pub static CONTRADICTED: Descriptor = Descriptor {
    name: "gemgauge_quota_contradicted",
    kind: Kind::Gauge,
    help: "Whether a request was refused though the last answer says that something is left (1)",
    labels: &[ACCOUNT, CLOUD_PROJECT, MODEL, TOKEN_TYPE],
};

pub static CONSUMED: Descriptor = Descriptor {
    name: "gemgauge_quota_consumed_ratio_total",
    kind: Kind::Counter,
    help: "Sum of the drops observed in what is left, 1 being a whole limit; a lower bound",
    labels: &[ACCOUNT, CLOUD_PROJECT, MODEL, TOKEN_TYPE],
};

pub static OBSERVED: Descriptor = Descriptor {
    name: "gemgauge_quota_observed_timestamp_seconds",
    kind: Kind::Gauge,
    help: "When the last good answer came, unix time",
    labels: &[ACCOUNT, CLOUD_PROJECT],
};

pub static HOME_INFO: Descriptor = Descriptor {
    name: "gemgauge_quota_home_info",
    kind: Kind::Gauge,
    help: "Whose quota a home uses, always 1",
    labels: &[HOME, ACCOUNT, CLOUD_PROJECT],
};

pub static STATE: Descriptor = Descriptor {
    name: "gemgauge_quota_state",
    kind: Kind::Gauge,
    help: "State of the quota of a home: 1 for the one in force",
    labels: &[HOME, Label::closed("state", states)],
};

pub static REJECTIONS: Descriptor = Descriptor {
    name: "gemgauge_quota_rejections_total",
    kind: Kind::Counter,
    help: "Requests seen refused for quota or rate, each attempt",
    labels: &[HOME, MODEL, Label::closed("reason", reasons)],
};

pub static EXHAUSTIONS: Descriptor = Descriptor {
    name: "gemgauge_quota_exhaustions_total",
    kind: Kind::Counter,
    help: "Times that nothing was left any more, whether a poll or a refused request saw it first",
    labels: &[HOME, MODEL],
};

pub static CAPACITY: Descriptor = Descriptor {
    name: "gemgauge_capacity_rejections_total",
    kind: Kind::Counter,
    help: "Requests seen refused because Google has no capacity, which is nobody's quota",
    labels: &[HOME, MODEL],
};

pub static POLLS: Descriptor = Descriptor {
    name: "gemgauge_quota_polls_total",
    kind: Kind::Counter,
    help: "Times Google was asked, by what became of it",
    labels: &[HOME, Label::closed("result", results)],
};

pub static CLAMPED: Descriptor = Descriptor {
    name: "gemgauge_quota_clamped_total",
    kind: Kind::Counter,
    help: "Shares in answers that were no number between 0 and 1, and were clamped or passed over",
    labels: &[],
};

pub static ASLEEP: Descriptor = Descriptor {
    name: "gemgauge_turns_asleep",
    kind: Kind::Gauge,
    help: "Turns that wait out a refusal of 5 minutes or more in silence",
    labels: &[HOME, MODEL],
};

pub static ASLEEP_UNTIL: Descriptor = Descriptor {
    name: "gemgauge_turn_asleep_until_timestamp_seconds",
    kind: Kind::Gauge,
    help: "Until when the last of them sleeps at least, unix time; absent where none does",
    labels: &[HOME, MODEL],
};

pub(super) static DESCRIPTORS: [&Descriptor; 16] = [
    &REMAINING,
    &REPORTED,
    &RESET,
    &BLOCKED,
    &CONTRADICTED,
    &CONSUMED,
    &OBSERVED,
    &HOME_INFO,
    &STATE,
    &REJECTIONS,
    &EXHAUSTIONS,
    &CAPACITY,
    &POLLS,
    &CLAMPED,
    &ASLEEP,
    &ASLEEP_UNTIL,
];

/// What a scrape knows of quota: the rows with the counters, and what follows
/// from them.
#[derive(Clone, Debug, Default)]
pub struct QuotaScrape {
    pub rows: QuotaRows,
    pub quota: Quota,
}

/// All families at `now` (unix ms), of the homes whose first import is done.
pub(super) fn collect(
    scrape: &QuotaScrape,
    homes: &[HomeRow],
    counters: &BTreeMap<(String, String), u64>,
    zero_first: &mut ZeroFirst,
    now: i64,
    receipt: &mut Receipt,
) -> Vec<Family> {
    let homes: BTreeMap<i64, &str> =
        homes.iter().filter(|home| home.imported).map(|home| (home.id, home.name.as_str())).collect();
    let imported: BTreeSet<&str> = homes.values().copied().collect();
    let mut families = limits(&scrape.quota, &imported);
    families.push(consumed(&scrape.rows, zero_first, now, receipt));
    families.extend(states_of(&scrape.quota, &imported));
    families.extend(refusals(&scrape.rows, &homes, zero_first, now, receipt));
    families.push(polls(&scrape.rows, &homes));
    families.extend(asleep(scrape, &homes));
    let clamped = (names::QUOTA_CLAMPED.to_owned(), names::NO_LABEL.to_owned());
    let mut family = Family::new(&CLAMPED);
    family.add_count(&[], counters.get(&clamped).copied().unwrap_or(0));
    families.push(family);
    families
}

fn labels(key: &BucketKey) -> [&str; 4] {
    [&key.account, &key.cloud_project, &key.model, &key.token_type]
}

fn limits(quota: &Quota, imported: &BTreeSet<&str>) -> Vec<Family> {
    let [mut remaining, mut reported, mut reset, mut contradicted] =
        [&REMAINING, &REPORTED, &RESET, &CONTRADICTED].map(Family::new);
    let of_imported = |homes: &[String]| homes.iter().any(|home| imported.contains(home.as_str()));
    // Refusals that fit no limit stand beside the limits; equal labels once.
    let mut blocked: BTreeMap<[&str; 4], [bool; 2]> = BTreeMap::new();
    for limit in quota.limits.iter().filter(|limit| of_imported(&limit.homes)) {
        let labels = labels(&limit.row.key);
        if let Some(left) = limit.remaining() {
            remaining.add(&labels, left.to_f64());
        }
        reported.add(&labels, f64::from(limit.row.remaining.is_some()));
        if let Some(at) = limit.row.resets_at {
            reset.add(&labels, at as f64 / 1e3);
        }
        contradicted.add(&labels, f64::from(limit.standing.contradicted));
        blocked.insert(labels, [limit.standing.blocked_by_poll, limit.standing.blocked_by_429]);
    }
    for refusal in quota.refusals.iter().filter(|one| imported.contains(one.home.as_str())) {
        if !quota.fits(refusal) {
            let home = quota.homes.iter().find(|home| home.name == refusal.home);
            let account = home.and_then(|home| home.account.as_deref()).unwrap_or(UNNAMED);
            let project = home.and_then(|home| home.cloud_project.as_deref()).unwrap_or(UNNAMED);
            blocked.entry([account, project, &refusal.model, UNNAMED]).or_default()[1] = true;
        }
    }
    let mut family = Family::new(&BLOCKED);
    for ([account, project, model, token_type], by) in &blocked {
        for (evidence, blocked) in EVIDENCE.iter().zip(by) {
            family.add(&[account, project, model, token_type, evidence], f64::from(*blocked));
        }
    }
    vec![remaining, reported, reset, contradicted, family]
}

fn consumed(rows: &QuotaRows, zero_first: &mut ZeroFirst, now: i64, receipt: &mut Receipt) -> Family {
    let mut family = Family::new(&CONSUMED);
    for row in &rows.buckets {
        let held = zero_first.holds_set((Set::Bucket, row.id), Some(row.born_at), now, receipt);
        let value = if held { 0.0 } else { row.consumed as f64 / Share::FULL.billionths() as f64 };
        family.add(&labels(&row.key), value);
    }
    family
}

fn states_of(quota: &Quota, imported: &BTreeSet<&str>) -> [Family; 3] {
    let [mut observed, mut info, mut state] = [&OBSERVED, &HOME_INFO, &STATE].map(Family::new);
    let mut seen = BTreeMap::new();
    for home in quota.homes.iter().filter(|home| imported.contains(home.name.as_str())) {
        for value in QuotaState::ALL {
            state.add(&[&home.name, value.as_str()], f64::from(value == home.state));
        }
        let known = home.account.is_some() || quota.refusals.iter().any(|refusal| refusal.home == home.name);
        let account = home.account.as_deref().unwrap_or(UNNAMED);
        let project = home.cloud_project.as_deref().unwrap_or(UNNAMED);
        if known {
            info.add(&[&home.name, account, project], 1.0);
        }
        if let Some(at) = home.observed_at {
            seen.insert([account, project], at);
        }
    }
    for (labels, at) in seen {
        observed.add(&labels, at as f64 / 1e3);
    }
    [observed, info, state]
}

fn refusals(
    rows: &QuotaRows,
    homes: &BTreeMap<i64, &str>,
    zero_first: &mut ZeroFirst,
    now: i64,
    receipt: &mut Receipt,
) -> [Family; 3] {
    let [mut rejections, mut exhaustions, mut capacity] =
        [&REJECTIONS, &EXHAUSTIONS, &CAPACITY].map(Family::new);
    for row in &rows.models {
        let Some(home) = homes.get(&row.home_id) else { continue };
        let held = zero_first.holds_set((Set::QuotaModel, row.id), row.born_at, now, receipt);
        let shown = |value: u64| if held { 0 } else { value };
        for reason in REASONS {
            let value = row.rejections.iter().find(|(stored, _)| stored == reason);
            rejections.add_count(&[home, &row.model, reason], shown(value.map_or(0, |(_, value)| *value)));
        }
        exhaustions.add_count(&[home, &row.model], shown(row.exhaustions));
        capacity.add_count(&[home, &row.model], shown(row.capacity));
    }
    [rejections, exhaustions, capacity]
}

fn polls(rows: &QuotaRows, homes: &BTreeMap<i64, &str>) -> Family {
    let mut family = Family::new(&POLLS);
    for (id, home) in homes {
        for result in PollResult::ALL.map(PollResult::as_str) {
            let value = rows.polls.iter().find(|(home, stored, _)| home == id && stored == result);
            family.add_count(&[home, result], value.map_or(0, |(.., value)| *value));
        }
    }
    family
}

/// A label set of refusals stands at 0 while nobody sleeps.
fn asleep(scrape: &QuotaScrape, homes: &BTreeMap<i64, &str>) -> [Family; 2] {
    let mut turns: BTreeMap<(&str, &str), (u64, i64)> = BTreeMap::new();
    for row in &scrape.rows.models {
        if let Some(home) = homes.get(&row.home_id) {
            turns.insert((home, &row.model), (0, 0));
        }
    }
    for sleeper in &scrape.quota.asleep {
        if homes.values().any(|home| *home == sleeper.home) {
            let (count, until) = turns.entry((&sleeper.home, &sleeper.model)).or_default();
            *count += 1;
            *until = sleeper.until.max(*until);
        }
    }
    let [mut asleep, mut latest] = [&ASLEEP, &ASLEEP_UNTIL].map(Family::new);
    for ((home, model), (count, until)) in turns {
        asleep.add_count(&[home, model], count);
        if count > 0 {
            latest.add(&[home, model], until as f64 / 1e3);
        }
    }
    [asleep, latest]
}
