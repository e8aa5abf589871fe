//! The spool files of a sandbox, as any reader finds them.

use std::path::PathBuf;

use gemgauge::ledger::doors::{DoorEvent, EventKind, Headless, TurnResult};

use super::Sandbox;

impl Sandbox {
    pub(crate) fn spool_dir(&self) -> PathBuf {
        self.home().join(".local/state/gemgauge/spool")
    }

    /// The events of each spool, all of whose lines must read.
    pub(crate) fn spools(&self) -> Vec<Vec<DoorEvent>> {
        let Ok(entries) = std::fs::read_dir(self.spool_dir()) else { return Vec::new() };
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort_by_key(|path| std::fs::metadata(path).unwrap().modified().unwrap());
        let read = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.ends_with('\n'), "{text}");
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        paths.iter().map(read).collect()
    }

    /// The events of the only spool.
    pub(crate) fn told(&self) -> Vec<DoorEvent> {
        let mut spools = self.spools();
        assert_eq!(spools.len(), 1, "{spools:?}");
        spools.remove(0)
    }
}

/// The end of the only turn: its session and its result.
pub(crate) fn only_turn(events: &[DoorEvent]) -> (&str, &TurnResult) {
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TurnEnded { session_id, result, .. } => Some((session_id.as_str(), result)),
            _ => None,
        })
        .collect();
    assert_eq!(ends.len(), 1, "{events:?}");
    ends[0]
}

/// What a run said of itself.
pub(crate) fn headless(events: &[DoorEvent]) -> (&str, &Headless) {
    let (session, result) = only_turn(events);
    (session, result.headless.as_ref().unwrap())
}

/// The names of the events.
pub(crate) fn kinds(events: &[DoorEvent]) -> Vec<String> {
    let name = |event: &DoorEvent| serde_json::to_value(event).unwrap()["kind"].as_str().unwrap().to_owned();
    events.iter().map(name).collect()
}
