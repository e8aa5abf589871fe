//! The way through a ledger on disk: what the pure parts cannot show.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::sample::ms;
use super::session::{explain, resolve};
use super::spec::{Kind, ReportSpec};
use super::{Report, ReportError, report};
use crate::ledger::bound::Bound;
use crate::ledger::evidence::{
    Anomalies, Condition, Cursor, HomeId, JournalPath, JournalStep, LineCounts, Place, Request, Section,
};
use crate::ledger::model::Role;
use crate::ledger::tokens::Reading;
use crate::store::pricing::Pricing;
use crate::store::read::Snapshot;
use crate::store::writer::{Ledger, WriterEvents};
use crate::store::{Stale, StoreError, WriterSettings, open_reader};

struct Deaf;

impl WriterEvents for Deaf {
    fn committed(&self, _: Duration) {}
    fn blocked(&self, _: Option<&StoreError>) {}
    fn queued(&self) {}
    fn taken(&self, _: usize) {}
    fn stale(&self, _: Stale) {}
}

/// A journal of one session with a prompt and, where `answered`, one request.
fn step(home: HomeId, session: &str, prompt: &str, answered: Option<&str>) -> JournalStep {
    let request = answered.map(|at| Request {
        id: format!("m-{session}").into(),
        at: ms(at),
        undated: false,
        model: Some("gemini-2.5-pro".into()),
        model_inferred: false,
        reading: Reading { prompt: 1_100, cached: 800, tool: 0, output: 12, thoughts: 70 },
        place: Place::Line,
    });
    let section = Section {
        session: session.into(),
        role: Role::Main,
        starts: vec![ms(prompt) - 1_000],
        requests: request.into_iter().collect(),
        prompts: Some((ms(prompt), ms(prompt))),
        silent_prompts: Vec::new(),
        undecodable: Vec::new(),
    };
    JournalStep {
        path: JournalPath {
            home,
            project_dir: "api".into(),
            file: format!("session-{session}.jsonl").into(),
        },
        from: (0, 0),
        to: Cursor { offset: 100, ..Cursor::default() },
        condition: Condition::Read,
        revised: false,
        whole: false,
        sections: vec![section],
        lines: LineCounts::default(),
        anomalies: Anomalies::default(),
        bytes: 100,
    }
}

pub(in crate::surfaces) fn with_ledger(check: impl FnOnce(&Snapshot<'_>)) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    let mut ledger = Ledger::open(&path).expect("a ledger");
    let (home, _) = ledger.home(Path::new("/home/ana"), "ana").expect("a home");
    let settings = WriterSettings {
        max_tuples: 100,
        pricing: Pricing::default(),
        patient: Arc::new(|| false),
        clock: Arc::new(|| ms("2026-11-30T12:00:00Z")),
        stopwatch: Arc::new(|| Duration::ZERO),
    };
    let (writer, thread) = ledger.start(settings, Arc::new(Deaf));
    for step in [
        // Prompted before midnight, answered after it.
        step(home, "b4265a7e-16f4", "2026-11-29T23:59:58Z", Some("2026-11-30T00:00:03Z")),
        step(home, "77aa0b1c-9d8e", "2026-11-30T08:00:00Z", None),
    ] {
        writer.step(step).expect("the writer lives");
    }
    writer.flush().expect("committed");
    let mut reader = open_reader(&path).expect("a reader");
    let checked = reader.snapshot(|snapshot| {
        check(snapshot);
        Ok(())
    });
    checked.expect("read");
    writer.stop();
    thread.join().expect("ended");
}

fn made(snapshot: &Snapshot<'_>, kind: Kind, since: &str, until: &str) -> Report {
    let range = super::range::RangeSpec::parse(Some(since), Some(until)).expect("a range");
    let spec = ReportSpec { range, ..ReportSpec::of(kind, TimeZone::UTC) };
    let now: Timestamp = "2026-11-30T12:00:00Z".parse().expect("a time");
    report(snapshot, &spec, &super::sample::money(), now).expect("a report")
}

#[test]
fn what_was_answered_outside_the_range_is_not_unmeasured_in_it() {
    with_ledger(|snapshot| {
        let day = made(snapshot, Kind::Sessions, "2026-11-29", "2026-11-29");
        assert_eq!(day.rows, []);
        let day = made(snapshot, Kind::Sessions, "2026-11-30", "2026-11-30");
        let bounds: Vec<_> = day.rows.iter().map(|row| row.spend.bound()).collect();
        assert_eq!(bounds, [Bound::Unmeasured, Bound::AtLeast]);
        let daily = made(snapshot, Kind::Daily, "2026-11-01", "2026-11-30");
        assert_eq!(daily.rows.len(), 1);
        assert_eq!(daily.total, day.total);
        assert_eq!(daily.total.tokens().map(|tokens| tokens.total()), Some(1_182));
    });
}

#[test]
fn a_session_is_explained_from_the_ledger() {
    with_ledger(|snapshot| {
        let dimensions = snapshot.dimensions().expect("read");
        let explained = |query: &str| {
            explain(
                snapshot,
                &dimensions,
                resolve(&dimensions, query)?,
                &super::sample::money(),
                ms(super::sample::NOW),
            )
        };
        let answered = explained("b4").expect("found");
        assert_eq!(answered.requests[0].id, "m-b4265a7e-16f4");
        assert_eq!(explained("latest").expect("found").row.key, "77aa0b1c-9d8e");
        assert!(matches!(explained("nope"), Err(ReportError::UnknownSession(_))));
    });
}
