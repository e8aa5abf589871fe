//! What was spent: tokens and requests by label set (interface, Metrics).

use std::collections::BTreeSet;

use super::family::{Descriptor, Family, Kind, Label};
use super::zero_first::{Receipt, ZeroFirst};
use crate::ledger::tokens::Class;
use crate::store::read::TupleRow;

pub(super) fn classes() -> Vec<&'static str> {
    Class::ALL.map(Class::as_str).to_vec()
}

pub(super) const HOME: Label = Label::open("home", "name of the home");
pub(super) const PROJECT: Label =
    Label::open("project", "name of the project; `other` once a home has too many label sets");
pub(super) const MODEL: Label =
    Label::open("model", "canonical model name, `unknown` where no source names one, or `other`");
pub(super) const ROLE: Label = Label::open(
    "role",
    "part the request plays, in the CLI's words: `main`, `subagent`, `utility_router` and the like, or `other`",
);

pub static TOKENS: Descriptor = Descriptor {
    name: "gemgauge_tokens_total",
    kind: Kind::Counter,
    help: "Tokens billed, by disjoint class; a lower bound: journal figures count the main chat and its subagents",
    labels: &[HOME, PROJECT, MODEL, ROLE, Label::closed("class", classes)],
};

pub static REQUESTS: Descriptor = Descriptor {
    name: "gemgauge_requests_total",
    kind: Kind::Counter,
    help: "Distinct billed requests found",
    labels: &[HOME, PROJECT, MODEL, ROLE],
};

pub(super) static DESCRIPTORS: [&Descriptor; 2] = [&TOKENS, &REQUESTS];

/// A label set as this scrape shows it.
pub(super) struct Shown<'r> {
    pub row: &'r TupleRow,
    /// It is new: all its series stand at 0 in this scrape.
    pub held: bool,
}

/// The label sets to show at `now` (unix ms). Those of a home whose first
/// import is not done wait: history is not spend. Empty before any home is
/// imported.
pub(super) fn shown<'r>(
    rows: &'r [TupleRow],
    imported: &BTreeSet<&str>,
    zero_first: &mut ZeroFirst,
    now: i64,
    receipt: &mut Receipt,
) -> Vec<Shown<'r>> {
    let rows = rows.iter().filter(|row| imported.contains(row.home.as_str()));
    rows.map(|row| Shown { row, held: zero_first.holds(row, now, receipt) }).collect()
}

/// Both families.
pub(super) fn collect(rows: &[Shown<'_>]) -> [Family; 2] {
    let mut tokens = Family::new(&TOKENS);
    let mut requests = Family::new(&REQUESTS);
    for Shown { row, held } in rows {
        let shown = |value: u64| if *held { 0 } else { value };
        let (home, project, model, role) = (&*row.home, &*row.project, &*row.model, &*row.role);
        for class in Class::ALL {
            let labels = [home, project, model, role, class.as_str()];
            tokens.add_count(&labels, shown(row.tokens.get(class)));
        }
        requests.add_count(&[home, project, model, role], shown(row.requests));
    }
    [tokens, requests]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r38_the_help_carries_the_note_about_blind_spots() {
        assert!(TOKENS.help.contains(crate::ledger::blind_spots::NOTE));
    }
}
