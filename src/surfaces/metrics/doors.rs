//! What came in by the front doors and telemetry (counters of the ledger).

use std::collections::BTreeMap;

use super::family::{Descriptor, Family, Kind, Label};
use crate::ledger::doors::Oddity;
use crate::store::counter_names as names;

fn event_sources() -> Vec<&'static str> {
    names::EVENT_SOURCES.to_vec()
}

fn event_results() -> Vec<&'static str> {
    names::EVENT_RESULTS.to_vec()
}

fn oddities() -> Vec<&'static str> {
    Oddity::ALL.map(Oddity::as_str).to_vec()
}

pub static EVENTS: Descriptor = Descriptor {
    name: "gemgauge_events_total",
    kind: Kind::Counter,
    help: "Events of front doors and telemetry records, by what became of them",
    labels: &[Label::closed("source", event_sources), Label::closed("result", event_results)],
};

pub static ODDITIES: Descriptor = Descriptor {
    name: "gemgauge_door_oddities_total",
    kind: Kind::Counter,
    help: "Oddities that front doors met and that change no figure",
    labels: &[Label::closed("kind", oddities)],
};

pub static MISMATCHES: Descriptor = Descriptor {
    name: "gemgauge_runtime_mismatch_total",
    kind: Kind::Counter,
    help: "Processes whose agent is not the one their command names",
    labels: &[],
};

pub static SAME_MINUTE: Descriptor = Descriptor {
    name: "gemgauge_same_minute_loads_total",
    kind: Kind::Counter,
    help: "Sessions loaded in the minute they were made, which Gemini CLI cannot do and will not resume",
    labels: &[],
};

pub(super) static DESCRIPTORS: [&Descriptor; 4] = [&EVENTS, &ODDITIES, &MISMATCHES, &SAME_MINUTE];

/// The ledger's own counters, (name, label) to value; what was not counted
/// yet stands at 0.
pub(super) fn collect(counters: &BTreeMap<(String, String), u64>) -> [Family; 4] {
    let value = |name: &str, label: &str| {
        counters.get(&(name.to_owned(), label.to_owned())).copied().unwrap_or_default()
    };
    let mut events = Family::new(&EVENTS);
    for source in names::EVENT_SOURCES {
        for result in names::EVENT_RESULTS {
            events.add_count(&[source, result], value(names::EVENTS, names::event_label(source, result)));
        }
    }
    let mut odd = Family::new(&ODDITIES);
    for kind in oddities() {
        odd.add_count(&[kind], value(names::DOOR_ODDITIES, kind));
    }
    let single = |descriptor: &'static Descriptor, name: &str| {
        let mut family = Family::new(descriptor);
        family.add_count(&[], value(name, names::NO_LABEL));
        family
    };
    [
        events,
        odd,
        single(&MISMATCHES, names::RUNTIME_MISMATCHES),
        single(&SAME_MINUTE, names::SAME_MINUTE_LOADS),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_every_result() {
        let counters = BTreeMap::from([(("events".into(), "otlp duplicate".into()), 3)]);
        let families = collect(&counters);
        let lines: Vec<_> = families[0].lines().lines().collect();
        assert_eq!(lines.len(), 16);
        let counted: Vec<_> = lines.iter().filter(|line| line.ends_with(" 3")).collect();
        assert!(counted.len() == 1 && counted[0].contains("otlp") && counted[0].contains("duplicate"));
    }
}
