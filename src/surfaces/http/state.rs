//! The shape of `/api/v1/state` (interface, HTTP).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::health::Health;
use crate::ledger::blind_spots::BLIND_SPOTS;
use crate::ledger::tokens::Classes;
use crate::store::read::{Dimensions, HomeRow, OpenTurn};
use crate::surfaces::quota::{HomeJson, LimitJson, Quota};

/// The document, in the order of its keys.
#[derive(Debug, Serialize)]
pub struct State {
    version: &'static str,
    /// Live sessions: rows of a report with `open_turn`.
    sessions: Vec<Map<String, Value>>,
    /// The total of a report.
    totals: Value,
    /// Each limit for each home that has it (quota Q15).
    rate_limits: Vec<LimitJson>,
    quota: BTreeMap<String, HomeJson>,
    sources: Sources,
    blind_spots: &'static [&'static str],
}

#[derive(Debug, Serialize)]
struct Sources {
    journal: Journal,
}

#[derive(Debug, Serialize)]
struct Journal {
    up: bool,
    /// RFC 3339; null before the first.
    last_event_at: Option<String>,
    lag_bytes: u64,
    watch_fallback: bool,
    homes: BTreeMap<String, Home>,
}

#[derive(Debug, Serialize)]
struct Home {
    /// Whether its first import is done.
    imported: bool,
    /// What is wrong with it; null if nothing is.
    degraded: Option<String>,
}

impl State {
    /// Puts the document together. `sessions` are the live ones in report row
    /// shape and `totals` a report's total; each session gets its `open_turn`,
    /// null while no door sees prompts.
    #[must_use]
    pub fn new(
        sessions: Vec<Map<String, Value>>,
        totals: Value,
        homes: &[HomeRow],
        quota: &Quota,
        health: &Health,
    ) -> Self {
        let sessions = sessions.into_iter().map(|mut session| {
            session.entry("open_turn").or_insert(Value::Null);
            session
        });
        let imported = |name: &str| homes.iter().any(|row| row.name == name && row.imported);
        let homes = health.home_states().into_iter().map(|(name, degraded)| {
            let home = Home { imported: imported(&name), degraded };
            (name, home)
        });
        let journal = Journal {
            up: health.journal.up.get(),
            last_event_at: health.journal.last_event.get().and_then(rfc3339),
            lag_bytes: health.journal.lag_bytes.get(),
            watch_fallback: health.journal.watch_fallback.get(),
            homes: homes.collect(),
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            sessions: sessions.collect(),
            totals,
            rate_limits: quota.rate_limits(),
            quota: quota.homes_json(),
            sources: Sources { journal },
            blind_spots: &BLIND_SPOTS,
        }
    }

    /// The document as JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("keys are strings and nothing in it can fail")
    }
}

/// A turn that is going on: what is known of it by now. Its tokens are a lower
/// bound until it ends, null where nothing is measured yet.
#[must_use]
pub fn open_turn(turn: &OpenTurn, dimensions: &Dimensions) -> Value {
    let model = turn.model_id.and_then(|id| dimensions.models.get(&id));
    serde_json::json!({
        "started_at": rfc3339(turn.started_at),
        "model": model,
        "tokens": turn.figure.map(|figure| Tokens::of(figure.classes())),
        "bound": turn.bound.as_str(),
    })
}

#[derive(Debug, Serialize)]
struct Tokens {
    #[serde(flatten)]
    classes: Classes,
    total: u64,
}

impl Tokens {
    fn of(classes: Classes) -> Self {
        Self { total: classes.total(), classes }
    }
}

/// `at` (unix ms) with milliseconds, in UTC; `None` beyond the calendar.
fn rfc3339(at: i64) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(at).ok()?;
    Some(at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_document_has_the_agreed_shape() {
        let health = Health::default();
        health.home_ok("ana");
        health.home_degraded("ben", "permission denied");
        health.journal.up.set(true);
        health.journal.last_event.advance(1_790_000_000_250);
        let homes = [HomeRow { id: 1, path: "/home/ana".into(), name: "ana".into(), imported: true }];
        let session = Map::from_iter([("key".to_owned(), json!("b4265a7e"))]);
        let state = State::new(vec![session], json!({"requests": 1}), &homes, &Quota::default(), &health);
        let got: Value = serde_json::from_str(&state.to_json()).expect("JSON");
        let want = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "sessions": [{"key": "b4265a7e", "open_turn": null}],
            "totals": {"requests": 1},
            "rate_limits": [],
            "quota": {},
            "sources": {"journal": {
                "up": true,
                "last_event_at": "2026-09-21T14:13:20.250Z",
                "lag_bytes": 0,
                "watch_fallback": false,
                "homes": {
                    "ana": {"imported": true, "degraded": null},
                    "ben": {"imported": false, "degraded": "permission denied"},
                },
            }},
            "blind_spots": BLIND_SPOTS,
        });
        assert_eq!(got, want);
    }
}
