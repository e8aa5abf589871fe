//! A ledger of a test's own, with a journal source before it: what `serve`
//! does, step by step and at times that the test says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use gemgauge::ledger::bound::{Bound, Reasons};
use gemgauge::ledger::doors::SpoolStep;
use gemgauge::ledger::evidence::{Failure, HomeId, JournalStep, ProjectFact};
use gemgauge::ledger::model::Role;
use gemgauge::ledger::telemetry::{OutfileCursor, TelemetryBatch};
use gemgauge::ledger::tokens::{Classes, Reading};
use gemgauge::sources::journal::Limits;
use gemgauge::sources::journal::scan::{Closed, JournalSource, Seen, Sink};
use gemgauge::sources::otlp::outfile::{self, Outfiles};
use gemgauge::store::pricing::Pricing;
use gemgauge::store::read::{JournalRow, TupleRow, UndecodableRow};
use gemgauge::store::writer::{Ledger, WriterEvents, WriterThread};
use gemgauge::store::{Stale, StoreError, Writer, WriterSettings, open_reader};

/// 2026-08-21, a day after every trap.
pub(crate) const NOW: i64 = 1_787_270_400_000;

/// A ledger and the homes it is of.
pub(crate) struct Books {
    dir: Arc<tempfile::TempDir>,
    homes: Vec<PathBuf>,
    limits: Limits,
    /// The time that the source and the writer see, unix ms.
    clock: Arc<AtomicI64>,
    open: Option<Open>,
}

/// A turn as the ledger holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TurnFacts {
    pub(crate) session: String,
    pub(crate) started_at: i64,
    pub(crate) bound: Bound,
    pub(crate) reasons: Reasons,
    pub(crate) figure: Option<Reading>,
    pub(crate) settled: bool,
}

struct Open {
    ids: Vec<HomeId>,
    source: JournalSource,
    writer: Writer,
    thread: WriterThread,
    stale: Receiver<Stale>,
}

impl Books {
    pub(crate) fn of<P: AsRef<Path>>(homes: &[P]) -> Self {
        Self::with(homes, Limits::default())
    }

    pub(crate) fn with<P: AsRef<Path>>(homes: &[P], limits: Limits) -> Self {
        let mut books = Self {
            dir: Arc::new(scratch()),
            homes: homes.iter().map(|home| home.as_ref().to_owned()).collect(),
            limits,
            clock: Arc::new(AtomicI64::new(NOW)),
            open: None,
        };
        books.start();
        books
    }

    /// Another process on the same ledger, at the same time.
    pub(crate) fn beside(&self) -> Self {
        let mut books = Self {
            dir: self.dir.clone(),
            homes: self.homes.clone(),
            limits: self.limits.clone(),
            clock: self.clock.clone(),
            open: None,
        };
        books.start();
        books
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.dir.path().join("ledger.db")
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.load(Relaxed)
    }

    pub(crate) fn set_now(&self, now_ms: i64) {
        self.clock.store(now_ms, Relaxed);
    }

    fn start(&mut self) {
        let mut ledger = Ledger::open(&self.db()).unwrap();
        let (mut ids, mut known) = (Vec::new(), Vec::new());
        for (n, home) in self.homes.iter().enumerate() {
            let (id, _) = ledger.home(home, &format!("home{n}")).unwrap();
            known.extend(ledger.journals(id).unwrap());
            ids.push(id);
        }
        let (sender, stale) = channel();
        let clock = self.clock.clone();
        let settings = WriterSettings {
            max_tuples: 10_000,
            pricing: Pricing::default(),
            patient: Arc::new(|| false),
            clock: Arc::new(move || clock.load(Relaxed)),
            stopwatch: Arc::new(|| Duration::ZERO),
        };
        let (writer, thread) = ledger.start(settings, Arc::new(Events(sender)));
        let roots: Vec<_> = ids.iter().copied().zip(self.homes.iter().cloned()).collect();
        let source = JournalSource::new(roots, self.limits.clone(), known);
        self.open = Some(Open { ids, source, writer, thread, stale });
    }

    /// Ends the process and starts another one: only the ledger is left.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.start();
    }

    fn stop(&mut self) {
        if let Some(open) = self.open.take() {
            open.writer.stop();
            open.thread.join().unwrap();
        }
    }

    /// Looks at everything until the ledger has it, whoever else writes there.
    pub(crate) fn scan(&mut self) -> Seen {
        let now = self.now();
        let open = self.open.as_mut().unwrap();
        for _ in 0..10 {
            let seen = open.source.scan(now, &mut ToWriter(&open.writer)).unwrap();
            open.writer.flush().unwrap();
            let mut stale = false;
            while let Ok((path, cursor, condition)) = open.stale.try_recv() {
                open.source.reset(path, cursor, condition);
                stale = true;
            }
            if !stale {
                return seen;
            }
        }
        panic!("the ledger and the source do not come to terms");
    }

    /// Hands a spool's step over.
    pub(crate) fn spool(&self, step: SpoolStep) {
        let writer = &self.open.as_ref().unwrap().writer;
        writer.spool(step).unwrap();
        writer.flush().unwrap();
    }

    /// The telemetry receiver is there since then.
    pub(crate) fn listens(&mut self, since: i64) {
        self.stop();
        Ledger::open(&self.db()).unwrap().listens(since).unwrap();
        self.start();
    }

    /// Reads a telemetry outfile from its start.
    pub(crate) fn outfile(&self, path: &Path) {
        let writer = &self.open.as_ref().unwrap().writer;
        let files = [(path.to_owned(), OutfileCursor::default())];
        let mut outfiles = Outfiles::new(files, outfile::Limits::default());
        outfiles.look(self.now(), &mut |step| writer.outfile(step).map_err(|_| Closed)).unwrap();
        writer.flush().unwrap();
    }

    /// Hands telemetry over as it comes over the network.
    pub(crate) fn telemetry(&self, batch: TelemetryBatch) {
        self.open.as_ref().unwrap().writer.telemetry(batch).unwrap();
    }

    /// Says that everything was read to its end just now.
    pub(crate) fn scanned(&self) {
        let open = self.open.as_ref().unwrap();
        for home in &open.ids {
            open.writer.scanned(*home, self.now()).unwrap();
        }
        open.writer.flush().unwrap();
    }

    /// The turns of all sessions, by their start.
    pub(crate) fn turns(&self) -> Vec<TurnFacts> {
        turns_of(&self.db(), self.now())
    }

    /// Looks once, and lets the ledger have it later: [`Self::flush`].
    pub(crate) fn look(&mut self) {
        let now = self.now();
        let open = self.open.as_mut().unwrap();
        open.source.scan(now, &mut ToWriter(&open.writer)).unwrap();
    }

    /// What the ledger holds.
    pub(crate) fn facts(&self) -> Facts {
        facts(&self.db())
    }
}

impl Drop for Books {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            open.writer.stop();
            let _ = open.thread.join();
        }
    }
}

/// A directory in memory, where there is one: thousands of commits wait for no disk.
pub(crate) fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

struct ToWriter<'a>(&'a Writer);

impl Sink for ToWriter<'_> {
    fn project(&mut self, fact: ProjectFact) -> Result<(), Closed> {
        self.0.project(fact).map_err(|_| Closed)
    }

    fn step(&mut self, step: JournalStep) -> Result<(), Closed> {
        self.0.step(step).map_err(|_| Closed)
    }
}

struct Events(Sender<Stale>);

impl WriterEvents for Events {
    fn committed(&self, _: Duration) {}
    fn blocked(&self, error: Option<&StoreError>) {
        if let Some(error) = error {
            eprintln!("the ledger cannot be written: {error}");
        }
    }
    fn queued(&self) {}
    fn taken(&self, _: usize) {}
    fn stale(&self, stale: Stale) {
        let _ = self.0.send(stale);
    }
}

/// One request, by the names a report shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Billed {
    pub(crate) home: String,
    pub(crate) project: String,
    pub(crate) session: String,
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) role: Role,
    pub(crate) at: i64,
    pub(crate) reading: Reading,
}

/// A session without its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) home: String,
    pub(crate) session: String,
    pub(crate) project: String,
    pub(crate) requests: usize,
    pub(crate) prompted: bool,
    pub(crate) started: bool,
    pub(crate) reasons: Vec<&'static str>,
}

/// Everything a ledger holds.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) requests: Vec<Billed>,
    pub(crate) sessions: Vec<Listed>,
    pub(crate) projects: Vec<String>,
    pub(crate) undecodable: Vec<UndecodableRow>,
    pub(crate) journals: Vec<JournalRow>,
    pub(crate) tuples: Vec<TupleRow>,
    pub(crate) counters: BTreeMap<(String, String), u64>,
}

pub(crate) fn facts(db: &Path) -> Facts {
    let facts = open_reader(db).unwrap().snapshot(|snapshot| {
        let dimensions = snapshot.dimensions()?;
        let home = |id: i64| dimensions.homes[&id].name.clone();
        let project = |id: i64| dimensions.projects[&id].name.clone();
        let (mut requests, mut sessions, mut undecodable) = (Vec::new(), Vec::new(), Vec::new());
        for session in dimensions.sessions.values() {
            let found = snapshot.session_requests(session.id)?;
            sessions.push(Listed {
                home: home(session.home_id),
                session: session.session.clone(),
                project: project(session.project_id),
                requests: found.len(),
                prompted: session.prompts.is_some(),
                started: session.started_at.is_some(),
                reasons: session.reasons.iter().map(|reason| reason.as_str()).collect(),
            });
            requests.extend(found.into_iter().map(|(id, request)| Billed {
                home: home(session.home_id),
                project: project(session.project_id),
                session: session.session.clone(),
                id,
                model: dimensions.models[&request.model_id].clone(),
                role: request.role,
                at: request.at,
                reading: request.reading,
            }));
            undecodable.extend(snapshot.session_undecodable(session.id)?);
        }
        let mut all = 0;
        snapshot.requests(i64::MIN..i64::MAX, |row| all += usize::from(!row.above))?;
        assert_eq!(all, requests.len(), "the requests of all sessions are all requests");
        Ok(Facts {
            requests,
            sessions,
            projects: dimensions.projects.values().map(|project| project.name.clone()).collect(),
            undecodable,
            journals: snapshot.journals()?,
            tuples: snapshot.tuples()?,
            counters: snapshot.counters()?,
        })
    });
    facts.unwrap()
}

impl Facts {
    pub(crate) fn classes(&self) -> Classes {
        sum(self.requests.iter())
    }

    /// Message ids, in order, one for each request.
    pub(crate) fn ids(&self) -> Vec<&str> {
        let mut ids: Vec<_> = self.requests.iter().map(|request| request.id.as_str()).collect();
        ids.sort_unstable();
        ids
    }

    /// How many requests each value of `key` has.
    pub(crate) fn by(&self, key: impl Fn(&Billed) -> String) -> BTreeMap<String, u64> {
        let mut by = BTreeMap::new();
        self.requests.iter().for_each(|request| *by.entry(key(request)).or_default() += 1);
        by
    }

    pub(crate) fn session(&self, session: &str) -> &Listed {
        let found = self.sessions.iter().find(|listed| listed.session == session);
        found.unwrap_or_else(|| panic!("no session {session} in {:?}", self.sessions))
    }

    /// State and reason of a journal, by the end of its name.
    pub(crate) fn journal(&self, end: &str) -> (&str, Option<&str>) {
        let found: Vec<_> = self.journals.iter().filter(|journal| journal.file.ends_with(end)).collect();
        assert_eq!(found.len(), 1, "journals that end with {end:?}: {:?}", self.journals);
        (&found[0].state, found[0].reason.as_deref())
    }

    pub(crate) fn counter(&self, name: &str, label: &str) -> u64 {
        self.counters.get(&(name.to_owned(), label.to_owned())).copied().unwrap_or(0)
    }

    /// Journals that failed as a whole or hold a line over the cap.
    pub(crate) fn failed(&self) -> usize {
        let failed = |journal: &&JournalRow| {
            Failure::ALL.iter().any(|failure| journal.reason.as_deref() == Some(failure.as_str()))
        };
        self.journals.iter().filter(failed).count()
    }

    /// The counters of all label sets together: requests and classes.
    pub(crate) fn counted(&self) -> (u64, Classes) {
        let mut counted = (0, Classes::default());
        for tuple in &self.tuples {
            counted.0 += tuple.requests;
            counted.1.add(&tuple.tokens);
        }
        counted
    }
}

pub(crate) fn sum<'a>(requests: impl Iterator<Item = &'a Billed>) -> Classes {
    requests.fold(Classes::default(), |mut sum, request| {
        sum.add(&request.reading.classes());
        sum
    })
}

/// The turns that a ledger holds, in the order of their beginnings.
pub(crate) fn turns_of(ledger: &Path, now_ms: i64) -> Vec<TurnFacts> {
    let turns = open_reader(ledger).unwrap().snapshot(|snapshot| {
        let dimensions = snapshot.dimensions()?;
        let mut turns = Vec::new();
        for session in dimensions.sessions.values() {
            for row in snapshot.session_story(session.id, now_ms)?.rows {
                turns.push(TurnFacts {
                    session: session.session.clone(),
                    started_at: row.started_at,
                    bound: row.bound,
                    reasons: row.reasons,
                    figure: row.figure,
                    settled: row.settled_at.is_some(),
                });
            }
        }
        Ok(turns)
    });
    let mut turns = turns.unwrap();
    turns.sort_by(|a, b| (a.started_at, &a.session).cmp(&(b.started_at, &b.session)));
    turns
}
