//! Sessions that are going on.

use std::collections::{BTreeMap, BTreeSet};

use super::family::{Descriptor, Family, Kind, Label};
use crate::store::read::{SessionRow, SessionSpend};

/// A session is live while something happened in it within this time, in ms (interface, HTTP).
pub const LIVE_MS: i64 = 5 * 60_000;

pub static LIVE: Descriptor = Descriptor {
    name: "gemgauge_live_sessions",
    kind: Kind::Gauge,
    help: "Sessions with an open connection, or a prompt or a request within the last 5 minutes",
    labels: &[Label::open("home", "name of the home")],
};

const SESSION: [Label; 3] = [
    Label::open("session_id", "id of a live session"),
    Label::open("home", "name of the home"),
    Label::open("project", "name of the project"),
];

pub static TOKENS: Descriptor = Descriptor {
    name: "gemgauge_session_tokens",
    kind: Kind::Gauge,
    help: "Tokens of live sessions so far, subagents included; gone when the session is idle",
    labels: &SESSION,
};

pub static COST: Descriptor = Descriptor {
    name: "gemgauge_session_cost_usd",
    kind: Kind::Gauge,
    help: "Cost of live sessions so far, its priced part; gone when the session is idle",
    labels: &SESSION,
};

pub(super) static DESCRIPTORS: [&Descriptor; 3] = [&LIVE, &TOKENS, &COST];

/// What live sessions spent; a session without a price has no cost.
pub(super) fn spend(rows: &[SessionSpend], imported: &BTreeSet<&str>) -> [Family; 2] {
    let mut tokens = Family::new(&TOKENS);
    let mut cost = Family::new(&COST);
    for row in rows.iter().filter(|row| imported.contains(&*row.home)) {
        let labels = [&*row.session, &*row.home, &*row.project];
        tokens.add_count(&labels, row.tokens);
        if let Some(usd) = row.cost {
            cost.add(&labels, usd.to_f64());
        }
    }
    [tokens, cost]
}

/// One sample for each home whose first import is done.
pub(super) fn collect(live: &BTreeMap<String, u64>, imported: &BTreeSet<&str>) -> Family {
    let mut family = Family::new(&LIVE);
    for home in imported {
        family.add_count(&[home], live.get(*home).copied().unwrap_or(0));
    }
    family
}

/// The ids of live sessions at `now` (unix ms). `requests` are pairs of session
/// id and time; those outside the window (a clock may run ahead) are ignored.
/// A header alone is no life: every `gemini --acp` writes one beside its sessions.
pub fn live(
    sessions: &BTreeMap<i64, SessionRow>,
    requests: impl IntoIterator<Item = (i64, i64)>,
    now: i64,
) -> BTreeSet<i64> {
    let window = window(now);
    let prompted = sessions
        .values()
        .filter(|session| session.prompts.is_some_and(|(_, last)| window.contains(&last)))
        .map(|session| session.id);
    let requested = requests
        .into_iter()
        .filter(|(id, at)| window.contains(at) && sessions.contains_key(id))
        .map(|(id, _)| id);
    prompted.chain(requested).collect()
}

/// Times, unix ms, at which something makes a session live at `now`.
#[must_use]
pub fn window(now: i64) -> std::ops::Range<i64> {
    now.saturating_sub(LIVE_MS)..now.saturating_add(LIVE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::bound::Reasons;

    const NOW: i64 = 1_790_000_000_000;

    fn session(id: i64, started_at: Option<i64>, last_prompt: Option<i64>) -> (i64, SessionRow) {
        let row = SessionRow {
            id,
            session: format!("session-{id}"),
            home_id: 1,
            project_id: 1,
            started_at,
            prompts: last_prompt.map(|last| (last - 1, last)),
            reasons: Reasons::NONE,
            source_deleted: false,
            ..SessionRow::default()
        };
        (id, row)
    }

    #[test]
    fn prompts_and_requests_within_five_minutes_make_a_session_live() {
        let sessions = BTreeMap::from([
            session(1, None, Some(NOW - LIVE_MS)),
            session(2, None, Some(NOW - LIVE_MS - 1)),
            session(3, None, None),
            session(4, Some(NOW), None),
            session(5, None, None),
            session(6, None, None),
        ]);
        let requests = [(3, NOW - 1), (5, NOW - LIVE_MS - 1), (6, NOW + 86_400_000), (99, NOW)];
        assert_eq!(live(&sessions, requests, NOW), BTreeSet::from([1, 3]));
    }
}
