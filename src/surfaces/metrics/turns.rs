//! Turns that became final, what they settled, and what came later
//! (accounting 2.7).

use std::collections::BTreeSet;

use super::family::{Descriptor, Family, Kind, Label};
use super::tokens::{HOME, MODEL, PROJECT, ROLE, Shown, classes};
use super::zero_first::{Receipt, Set, ZeroFirst};
use crate::ledger::bound::{Bound, Reason};
use crate::ledger::tokens::Class;
use crate::store::counter_names as names;
use crate::store::read::CounterRow;

fn settled_bounds() -> Vec<&'static str> {
    [Bound::Exact, Bound::AtLeast].map(Bound::as_str).to_vec()
}

fn bounds() -> Vec<&'static str> {
    [Bound::Exact, Bound::AtLeast, Bound::Unmeasured].map(Bound::as_str).to_vec()
}

fn reasons() -> Vec<&'static str> {
    Reason::ALL.map(Reason::as_str).to_vec()
}

fn stop_reasons() -> Vec<&'static str> {
    names::STOP_REASONS.to_vec()
}

fn changes() -> Vec<&'static str> {
    names::REVISIONS.to_vec()
}

pub static SETTLED_TOKENS: Descriptor = Descriptor {
    name: "gemgauge_settled_tokens_total",
    kind: Kind::Counter,
    help: "Tokens whose claim is final, by it: each token once, at the final settle of its turn",
    labels: &[HOME, PROJECT, MODEL, ROLE, Label::closed("bound", settled_bounds)],
};

pub static SETTLED_COST: Descriptor = Descriptor {
    name: "gemgauge_settled_cost_usd_total",
    kind: Kind::Counter,
    help: "Cost of tokens whose claim is final, by it; priced and not estimated",
    labels: &[HOME, PROJECT, MODEL, ROLE, Label::closed("bound", settled_bounds)],
};

pub static TURNS: Descriptor = Descriptor {
    name: "gemgauge_turns_total",
    kind: Kind::Counter,
    help: "Turns that became final, by what their figure claims",
    labels: &[HOME, PROJECT, Label::closed("bound", bounds)],
};

pub static ENDINGS: Descriptor = Descriptor {
    name: "gemgauge_turn_endings_total",
    kind: Kind::Counter,
    help: "Turns that became final, by the stop reason of their result; none: there was no result",
    labels: &[HOME, Label::closed("stop_reason", stop_reasons)],
};

pub static REASONS: Descriptor = Descriptor {
    name: "gemgauge_turn_reasons_total",
    kind: Kind::Counter,
    help: "Why turns became final without being exact; a turn may have several reasons",
    labels: &[HOME, Label::closed("reason", reasons)],
};

pub static REVISIONS: Descriptor = Descriptor {
    name: "gemgauge_turn_revisions_total",
    kind: Kind::Counter,
    help: "Changes of turns after they were final: a figure raised, or lowered as records were of another turn; a claim demoted",
    labels: &[HOME, Label::closed("change", changes)],
};

pub static LATE_TOKENS: Descriptor = Descriptor {
    name: "gemgauge_late_tokens_total",
    kind: Kind::Counter,
    help: "Tokens that came after their turn was final; they are in gemgauge_tokens_total, too",
    labels: &[HOME, Label::closed("class", classes)],
};

pub static SESSIONS_STARTED: Descriptor = Descriptor {
    name: "gemgauge_sessions_started_total",
    kind: Kind::Counter,
    help: "Sessions that were prompted or made a request",
    labels: &[HOME, PROJECT],
};

pub(super) static DESCRIPTORS: [&Descriptor; 8] =
    [&SETTLED_TOKENS, &SETTLED_COST, &TURNS, &ENDINGS, &REASONS, &REVISIONS, &LATE_TOKENS, &SESSIONS_STARTED];

/// What became final of each label set.
pub(super) fn settled(rows: &[Shown<'_>]) -> [Family; 2] {
    let mut tokens = Family::new(&SETTLED_TOKENS);
    let mut costs = Family::new(&SETTLED_COST);
    for Shown { row, held } in rows {
        for (bound, (sum, cost)) in settled_bounds().into_iter().zip(row.settled) {
            let labels = [&*row.home, &*row.project, &*row.model, &*row.role, bound];
            tokens.add_count(&labels, if *held { 0 } else { sum });
            costs.add(&labels, if *held { 0.0 } else { cost.to_f64() });
        }
    }
    [tokens, costs]
}

/// The counters of homes whose first import is done. Values of closed lists
/// stand at 0 from the start; a project's stand there from its first session on.
pub(super) fn collect(
    rows: &[CounterRow],
    imported: &BTreeSet<&str>,
    zero_first: &mut ZeroFirst,
    now: i64,
    receipt: &mut Receipt,
) -> Vec<Family> {
    let value = |home: &str, name: &str, first: &str, second: &str| {
        rows.iter()
            .find(|row| row.home == home && row.name == name && row.first == first && row.second == second)
            .map_or(0, |row| row.value)
    };
    let mut turns = Family::new(&TURNS);
    let mut started = Family::new(&SESSIONS_STARTED);
    for home in imported {
        let of_home = || rows.iter().filter(|row| row.home == **home);
        let named = |row: &&CounterRow| row.name == names::SESSIONS_STARTED || row.name == names::TURNS;
        let projects: BTreeSet<&str> = of_home().filter(named).map(|row| row.first.as_str()).collect();
        for project in projects {
            for bound in bounds() {
                turns.add_count(&[home, project, bound], value(home, names::TURNS, project, bound));
            }
            let row = of_home().find(|row| row.name == names::SESSIONS_STARTED && row.first == *project);
            let held = row.is_some_and(|row| {
                zero_first.holds_set((Set::HomeCounter, row.id), row.born_at, now, receipt)
            });
            let count = row.filter(|_| !held).map_or(0, |row| row.value);
            started.add_count(&[home, project], count);
        }
    }
    let closed = |descriptor: &'static Descriptor, name: &str, list: Vec<&'static str>| {
        let mut family = Family::new(descriptor);
        for home in imported {
            for label in &list {
                family.add_count(&[home, label], value(home, name, label, ""));
            }
        }
        family
    };
    vec![
        turns,
        closed(&ENDINGS, names::TURN_ENDINGS, stop_reasons()),
        closed(&REASONS, names::TURN_REASONS, reasons()),
        closed(&REVISIONS, names::TURN_REVISIONS, changes()),
        closed(&LATE_TOKENS, names::LATE_TOKENS, Class::ALL.map(Class::as_str).to_vec()),
        started,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, first: &str, second: &str, value: u64) -> CounterRow {
        CounterRow {
            id: 1,
            home: "ana".into(),
            name: name.into(),
            first: first.into(),
            second: second.into(),
            value,
            born_at: Some(1_000),
        }
    }

    fn lines(family: &Family) -> Vec<&str> {
        family.lines().lines().collect()
    }

    #[test]
    fn a_project_stands_at_zero_in_all_bounds_before_its_first_turn() {
        let rows = [row(names::SESSIONS_STARTED, "api", "", 1)];
        let imported = BTreeSet::from(["ana"]);
        let mut zero = ZeroFirst::default();
        let mut receipt = Receipt::default();
        let families = collect(&rows, &imported, &mut zero, 1_001, &mut receipt);
        assert_eq!(lines(&families[0]).len(), 3);
        assert!(lines(&families[0]).iter().all(|line| line.ends_with(" 0")), "{:?}", lines(&families[0]));
        let started = families.last().expect("there");
        assert!(lines(started)[0].ends_with(" 0"), "new: at 0 first");
        zero.confirm(receipt);
        let families = collect(&rows, &imported, &mut zero, 1_002, &mut Receipt::default());
        assert!(lines(families.last().expect("there"))[0].ends_with(" 1"));
    }

    #[test]
    fn closed_lists_are_whole_and_of_imported_homes_only() {
        let rows = [row(names::TURN_ENDINGS, "cancelled", "", 2)];
        let of = |imported: BTreeSet<&str>| {
            let mut zero = ZeroFirst::default();
            collect(&rows, &imported, &mut zero, 1_001, &mut Receipt::default())
        };
        let families = of(BTreeSet::from(["ana"]));
        assert_eq!(lines(&families[1]).len(), names::STOP_REASONS.len());
        assert!(lines(&families[1]).iter().any(|line| line.contains("cancelled") && line.ends_with(" 2")));
        assert!(lines(&of(BTreeSet::new())[1]).is_empty());
    }
}
