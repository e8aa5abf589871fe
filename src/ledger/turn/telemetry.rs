//! What telemetry says of turns: which there were, which call belongs to
//! which, and whether every call that began was answered (accounting R66).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::merge::Telemetry;
use super::windows::{Window, turn_of};
use crate::ledger::model::Role;
use crate::ledger::tokens::Reading;

/// One telemetry record of a session, as the ledger keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Unix ms.
    pub at: i64,
    pub kind: Kind,
    /// Empty for a clean exit.
    pub prompt_id: Arc<str>,
    pub role: Role,
    /// Canonical.
    pub model: Arc<str>,
    /// Of a response.
    pub reading: Reading,
    /// How often it stands there: equal records of one batch.
    pub times: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Prompt,
    Request,
    Response,
    Error,
    CleanExit,
}

/// A turn that telemetry knows of, with no door needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// Stable: the prompt id and the time of its `user_prompt`, or the id alone.
    pub key: String,
    pub prompt_id: Arc<str>,
    pub started_at: i64,
    /// The session's next prompt, or the clean exit of its process.
    pub ended_at: Option<i64>,
    /// Its `user_prompt` was seen: nothing of it came before.
    pub begun: bool,
}

/// What runs on its own, outside of any prompt.
const COMPRESS: &str = "compress-";
/// The second call of a compression carries the first one's id with this.
const VERIFY: &str = "-verify";

/// The prompt id that a call's id was made from.
fn base(prompt_id: &str) -> &str {
    prompt_id.strip_suffix(VERIFY).unwrap_or(prompt_id)
}

/// The turns that telemetry alone makes, by their start: one for each
/// `user_prompt`, and one for each other prompt id of the chat itself (a
/// process that logs no `user_prompt`, or a lost batch).
#[must_use]
pub fn spoken(records: &[Record]) -> Vec<Spoken> {
    let mut turns: Vec<Spoken> = records
        .iter()
        .filter(|record| record.kind == Kind::Prompt)
        .map(|record| Spoken {
            key: format!("{}@{}", record.prompt_id, record.at),
            prompt_id: record.prompt_id.clone(),
            started_at: record.at,
            ended_at: None,
            begun: true,
        })
        .collect();
    let mut unbegun: BTreeMap<&Arc<str>, i64> = BTreeMap::new();
    for record in records.iter().filter(|r| r.role == Role::Main && is_call(r.kind)) {
        let id = &record.prompt_id;
        if id.starts_with(COMPRESS) || turns.iter().any(|turn| *turn.prompt_id == *base(id)) {
            continue;
        }
        let first = unbegun.entry(id).or_insert(i64::MAX);
        *first = record.at.min(*first);
    }
    turns.extend(unbegun.into_iter().map(|(id, first)| Spoken {
        key: id.to_string(),
        prompt_id: id.clone(),
        // A window begins behind its start.
        started_at: first - 1,
        ended_at: None,
        begun: false,
    }));
    turns.sort_by(|a, b| (a.started_at, &a.key).cmp(&(b.started_at, &b.key)));
    let exits: Vec<i64> = records.iter().filter(|r| r.kind == Kind::CleanExit).map(|r| r.at).collect();
    for place in 0..turns.len() {
        let from = turns[place].started_at;
        let next = turns[place + 1..].iter().map(|turn| turn.started_at).find(|start| *start > from);
        let exit = exits.iter().copied().filter(|at| *at > from).min();
        turns[place].ended_at = next.into_iter().chain(exit).min();
    }
    turns
}

fn is_call(kind: Kind) -> bool {
    matches!(kind, Kind::Request | Kind::Response | Kind::Error)
}

/// The calls of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// By role and canonical model.
    calls: BTreeMap<(Role, Arc<str>), Calls>,
    /// Calls begun less calls ended, by prompt id and role.
    open: BTreeMap<(Arc<str>, Role), i64>,
}

/// What was answered to one model in one role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub answered: u64,
    pub failed: u64,
    pub reading: Reading,
}

impl Heard {
    fn add(&mut self, record: &Record) {
        let calls = self.calls.entry((record.role, record.model.clone())).or_default();
        let open = self.open.entry((record.prompt_id.clone(), record.role)).or_default();
        let times = record.times;
        match record.kind {
            Kind::Request => *open += times.cast_signed(),
            Kind::Response => {
                *open -= times.cast_signed();
                calls.answered += times;
                for _ in 0..times {
                    calls.reading = calls.reading.plus(record.reading);
                }
            }
            Kind::Error => {
                *open -= times.cast_signed();
                calls.failed += times;
            }
            Kind::Prompt | Kind::CleanExit => {}
        }
    }

    /// The calls by role and model, of these roles.
    pub fn calls(&self, of: &dyn Fn(Role) -> bool) -> impl Iterator<Item = (Role, &Arc<str>, &Calls)> {
        self.calls.iter().filter(move |((role, _), _)| of(*role)).map(|((role, m), calls)| (*role, m, calls))
    }

    /// The sum of what was answered in these roles.
    #[must_use]
    pub fn reading(&self, of: &dyn Fn(Role) -> bool) -> Reading {
        self.calls(of).fold(Reading::default(), |sum, (_, _, calls)| sum.plus(calls.reading))
    }

    #[must_use]
    pub fn answered(&self, of: &dyn Fn(Role) -> bool) -> u64 {
        self.calls(of).map(|(_, _, calls)| calls.answered).sum()
    }

    /// Calls begun and never ended (positive), or ended and never begun: a
    /// record is missing (negative).
    #[must_use]
    pub fn unanswered(&self, of: &dyn Fn(Role) -> bool) -> i64 {
        let open = || self.open.iter().filter(|((_, role), _)| of(*role)).map(|(_, open)| *open);
        let begun: i64 = open().filter(|open| *open > 0).sum();
        if begun > 0 { begun } else { open().sum() }
    }

    /// The reading of these roles for the merge; `None` where nothing of them was heard.
    #[must_use]
    pub fn telemetry(&self, of: &dyn Fn(Role) -> bool) -> Option<Telemetry> {
        let heard = self.open.iter().any(|((_, role), _)| of(*role));
        let balanced = self.open.iter().filter(|((_, role), _)| of(*role)).all(|(_, open)| *open == 0);
        let reading = self.reading(of);
        // Calls that all failed billed nothing: a reading of zero, if it is known to be all.
        (heard && (balanced || self.answered(of) > 0)).then_some(Telemetry { reading, balanced, gap: false })
    }
}

/// A turn as records are assigned to it.
pub struct Listener<'a> {
    pub window: Window,
    /// A door saw it: everything in its window is its own.
    pub watched: bool,
    /// The prompt ids telemetry gives it.
    pub prompt_ids: Vec<&'a str>,
}

/// The calls of each turn, and of what ran outside of all turns by its id.
#[must_use]
pub fn by_turn(
    records: &[Record],
    turns: &[Listener<'_>],
) -> (Vec<Option<Heard>>, BTreeMap<String, (i64, i64, Heard)>) {
    let windows: Vec<_> = turns.iter().map(|turn| turn.window).collect();
    let doors: Vec<_> = (0..turns.len()).filter(|place| turns[*place].watched).collect();
    let door_windows: Vec<_> = doors.iter().map(|place| windows[*place]).collect();
    let mut heard: Vec<Option<Heard>> = vec![None; turns.len()];
    let mut units: BTreeMap<String, (i64, i64, Heard)> = BTreeMap::new();
    for record in records.iter().filter(|record| is_call(record.kind)) {
        let id = base(&record.prompt_id);
        // Prompt ids repeat from process to process: the turn begun last before it.
        let named =
            (0..turns.len()).filter(|place| turns[*place].prompt_ids.contains(&id)).max_by_key(|place| {
                let from = windows[*place].from;
                (from <= record.at, if from <= record.at { from } else { -from })
            });
        let place = named.or_else(|| {
            if id.starts_with(COMPRESS) {
                turn_of(&door_windows, record.at).map(|n| doors[n])
            } else {
                turn_of(&windows, record.at)
            }
        });
        match place {
            Some(place) => heard[place].get_or_insert_default().add(record),
            None => {
                let unit = units.entry(id.to_owned()).or_insert((record.at, record.at, Heard::default()));
                unit.0 = unit.0.min(record.at);
                unit.1 = unit.1.max(record.at);
                unit.2.add(record);
            }
        }
    }
    (heard, units)
}

#[cfg(test)]
mod tests;
