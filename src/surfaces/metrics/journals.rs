//! What the watcher read, and what it could not (counters of the ledger,
//! moved in the transaction of the rows they count).

use std::collections::BTreeMap;

use super::family::{Descriptor, Family, Kind, Label, Values};
use crate::ledger::evidence::Condition;
use crate::store::counter_names as names;

/// The labels of a ledger counter, from the one list there is.
fn closed(counter: &str) -> Vec<&'static str> {
    names::labels(counter).expect("every counter shown here has its closed list")
}

fn states() -> Vec<&'static str> {
    Condition::STATES.to_vec()
}

pub static LINES: Descriptor = Descriptor {
    name: "gemgauge_journal_lines_total",
    kind: Kind::Counter,
    help: "Journal lines read, by what they held",
    labels: &[Label::closed("kind", || closed(names::JOURNAL_LINES))],
};

pub static BYTES: Descriptor = Descriptor {
    name: "gemgauge_journal_bytes_total",
    kind: Kind::Counter,
    help: "Bytes read from journals",
    labels: &[],
};

pub static REVISIONS: Descriptor = Descriptor {
    name: "gemgauge_journal_revisions_total",
    kind: Kind::Counter,
    help: "Journals found rewritten and read from their start again; no request counts twice",
    labels: &[],
};

pub static LOST: Descriptor = Descriptor {
    name: "gemgauge_journals_lost_total",
    kind: Kind::Counter,
    help: "Journals deleted before they were read to their end",
    labels: &[],
};

pub static FAILED_READS: Descriptor = Descriptor {
    name: "gemgauge_journal_failed_reads_total",
    kind: Kind::Counter,
    help: "Attempts to read a journal that failed",
    labels: &[Label::closed("reason", || closed(names::JOURNAL_FAILED_READS))],
};

pub static SKIPPED: Descriptor = Descriptor {
    name: "gemgauge_journal_skipped_total",
    kind: Kind::Counter,
    help: "Entries with a journal's name that are not opened",
    labels: &[Label::closed("reason", || closed(names::JOURNAL_SKIPPED))],
};

pub static ANOMALIES: Descriptor = Descriptor {
    name: "gemgauge_journal_anomalies_total",
    kind: Kind::Counter,
    help: "Oddities of records that were read",
    labels: &[Label::closed("kind", || closed(names::JOURNAL_ANOMALIES))],
};

pub static UNDECODABLE: Descriptor = Descriptor {
    name: "gemgauge_journal_undecodable_total",
    kind: Kind::Counter,
    help: "Journal lines of unknown content, which make their session a lower bound",
    labels: &[Label::closed("reason", || closed(names::JOURNAL_UNDECODABLE))],
};

pub static OVERFLOW: Descriptor = Descriptor {
    name: "gemgauge_label_overflow_total",
    kind: Kind::Counter,
    help: "Label sets that came after the limit of their home and are counted under other",
    labels: &[],
};

pub static JOURNALS: Descriptor = Descriptor {
    name: "gemgauge_journals",
    kind: Kind::Gauge,
    help: "Journals ever noticed, by their state",
    labels: &[Label::closed("state", states)],
};

/// A family with the name of the ledger counter behind it.
static COUNTERS: [(&Descriptor, &str); 9] = [
    (&LINES, names::JOURNAL_LINES),
    (&BYTES, names::JOURNAL_BYTES),
    (&REVISIONS, names::JOURNAL_REVISIONS),
    (&LOST, names::JOURNALS_LOST),
    (&FAILED_READS, names::JOURNAL_FAILED_READS),
    (&SKIPPED, names::JOURNAL_SKIPPED),
    (&ANOMALIES, names::JOURNAL_ANOMALIES),
    (&UNDECODABLE, names::JOURNAL_UNDECODABLE),
    (&OVERFLOW, names::LABEL_OVERFLOW),
];

pub(super) static DESCRIPTORS: [&Descriptor; 10] = [
    &LINES,
    &BYTES,
    &REVISIONS,
    &LOST,
    &FAILED_READS,
    &SKIPPED,
    &ANOMALIES,
    &UNDECODABLE,
    &OVERFLOW,
    &JOURNALS,
];

/// The ledger's own counters, (name, label) to value, and journals by state.
/// What the ledger has not counted yet stands at 0.
pub(super) fn collect(
    counters: &BTreeMap<(String, String), u64>,
    states: &BTreeMap<String, u64>,
) -> Vec<Family> {
    let mut families: Vec<Family> =
        COUNTERS.iter().map(|(descriptor, name)| counter(descriptor, name, counters)).collect();
    let mut journals = Family::new(&JOURNALS);
    for state in Condition::STATES {
        journals.add_count(&[state], states.get(state).copied().unwrap_or(0));
    }
    families.push(journals);
    families
}

fn counter(
    descriptor: &'static Descriptor,
    name: &str,
    counters: &BTreeMap<(String, String), u64>,
) -> Family {
    let value = |label: &str| counters.get(&(name.to_owned(), label.to_owned())).copied().unwrap_or_default();
    let mut family = Family::new(descriptor);
    match descriptor.labels {
        [] => family.add_count(&[], value(names::NO_LABEL)),
        [Label { values: Values::Closed(list), .. }] => {
            for label in list() {
                family.add_count(&[label], value(label));
            }
        }
        _ => unreachable!("a ledger counter has at most one label, from a closed list"),
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_the_ledger_has_is_shown_and_the_others_stand_at_zero() {
        let counters = BTreeMap::from([(("journal_lines".into(), "repeat".into()), 3)]);
        let families = collect(&counters, &BTreeMap::new());
        let lines = families[0].lines();
        let values: Vec<_> =
            lines.lines().map(|line| line.split_once("kind=\"").expect("labelled").1).collect();
        let want = ["request\"} 0", "repeat\"} 3", "control\"} 0", "other\"} 0", "undecodable\"} 0"];
        assert_eq!(values, want);
    }

    #[test]
    fn every_counter_name_is_known_to_the_store() {
        for (descriptor, name) in COUNTERS {
            let labelled = names::labels(name).expect("known") != [names::NO_LABEL];
            assert_eq!(labelled, !descriptor.labels.is_empty(), "{name}");
        }
    }
}
