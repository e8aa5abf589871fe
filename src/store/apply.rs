//! A step of a journal becomes rows and counters, all in the transaction that
//! moves its cursor (architecture, house rule 1).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{Connection, params};

use super::StoreError;
use super::counter_names::{
    JOURNAL_ANOMALIES, JOURNAL_BYTES, JOURNAL_LINES, JOURNAL_REVISIONS, JOURNAL_UNDECODABLE, SESSIONS_STARTED,
};
use super::fresh::Fresh;
use super::home_counters::HomeCounter;
use super::journals::{self, Before};
use super::ownership;
use super::pricing::Pricing;
use super::requests::Found;
use super::tuples::{Growth, TupleKey};
use crate::ledger::evidence::{Anomalies, Condition, Cursor, HomeId, JournalStep, Section, Undecodable};
use crate::ledger::hash::request_key;
use crate::ledger::model::UNKNOWN;

/// What became of a step.
#[derive(Debug)]
pub(super) enum Applied {
    Done,
    /// The ledger holds another cursor: another process read this journal meanwhile.
    Stale(Cursor, Condition),
}

/// Turns steps into rows. Remembers row ids between transactions; after a
/// rollback it must forget them.
pub(super) struct Applier {
    pub(super) projects: HashMap<(HomeId, Arc<str>), i64>,
    pub(super) project_names: HashMap<i64, Arc<str>>,
    pub(super) models: HashMap<Arc<str>, (i64, Arc<str>)>,
    pub(super) sessions: HashMap<(HomeId, Arc<str>), i64>,
    pub(super) tuples: HashMap<TupleKey, i64>,
    pub(super) overflow: HashSet<i64>,
    pub(super) growth: HashMap<i64, Growth>,
    counts: HashMap<(&'static str, &'static str), u64>,
    pub(super) home_counts: HashMap<HomeCounter, u64>,
    /// Sessions whose turns are to be put together anew.
    pub(super) dirty: HashSet<i64>,
    /// Whether a session has turns.
    pub(super) turned: HashMap<i64, bool>,
    /// Whether any session has.
    pub(super) any_turns: Option<bool>,
    /// When the last scan began that read all journals of a home to their ends.
    pub(super) read_at: HashMap<HomeId, i64>,
    /// The time of the last telemetry record.
    pub(super) telemetry_at: Option<i64>,
    pub(super) unknown_model: Arc<str>,
    pub(super) max_tuples: u64,
    pub(super) pricing: Arc<Pricing>,
    /// While the first import fills an empty ledger.
    pub(super) fresh: Option<Fresh>,
}

/// So many session ids are remembered; ids of sessions long done are asked for again.
const MAX_SESSIONS: usize = 10_000;

impl Applier {
    pub(super) fn new(max_tuples: u64, pricing: Arc<Pricing>, fresh: Option<Fresh>) -> Self {
        Self {
            projects: HashMap::new(),
            project_names: HashMap::new(),
            models: HashMap::new(),
            sessions: HashMap::new(),
            tuples: HashMap::new(),
            overflow: HashSet::new(),
            growth: HashMap::new(),
            counts: HashMap::new(),
            home_counts: HashMap::new(),
            dirty: HashSet::new(),
            turned: HashMap::new(),
            any_turns: None,
            read_at: HashMap::new(),
            telemetry_at: None,
            unknown_model: UNKNOWN.into(),
            max_tuples,
            pricing,
            fresh,
        }
    }

    /// Forgets everything: the transaction that made it was rolled back.
    pub(super) fn forget(&mut self) {
        let read_at = std::mem::take(&mut self.read_at);
        *self = Self::new(self.max_tuples, self.pricing.clone(), self.fresh.take());
        self.read_at = read_at;
    }

    /// Adds to a counter of the service's own work.
    pub(super) fn count(&mut self, name: &'static str, label: &'static str, by: u64) {
        if by > 0 {
            *self.counts.entry((name, label)).or_default() += by;
        }
    }

    /// Applies one step inside the caller's transaction.
    pub(super) fn step(
        &mut self,
        c: &Connection,
        step: &JournalStep,
        now_ms: i64,
    ) -> Result<Applied, StoreError> {
        let before = journals::before(c, &step.path)?;
        if !self.advance(c, &before, step)? {
            return Ok(Applied::Stale(before.cursor, before.condition));
        }
        self.forget_torn(c, &before, step)?;
        let project = self.project(c, step.path.home, &step.path.project_dir)?;
        for section in &step.sections {
            self.section(c, &before, step, section, project, now_ms)?;
        }
        self.count_step(step);
        if self.sessions.len() > MAX_SESSIONS {
            self.sessions.clear();
            self.turned.clear();
        }
        Ok(Applied::Done)
    }

    /// Writes the counters that the transaction's steps moved.
    pub(super) fn flush(&mut self, c: &Connection, now_ms: i64) -> Result<(), StoreError> {
        self.assess_dirty(c, now_ms)?;
        self.flush_tuples(c)?;
        self.flush_home_counts(c, now_ms)?;
        let mut add = c.prepare_cached(
            "INSERT INTO counters (name, label, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (name, label) DO UPDATE SET value = value + excluded.value",
        )?;
        for ((name, label), value) in self.counts.drain() {
            add.execute(params![name, label, value.cast_signed()])?;
        }
        Ok(())
    }

    fn section(
        &mut self,
        c: &Connection,
        before: &Before,
        step: &JournalStep,
        section: &Section,
        project: i64,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let home = step.path.home;
        let (session, new) = self.session(c, home, &section.session, project)?;
        self.starts(c, session, new, &section.starts)?;
        if let Some((first, last)) = section.prompts {
            c.prepare_cached(
                "UPDATE sessions SET first_prompt_at = min(coalesce(first_prompt_at, ?2), ?2),
                                     last_prompt_at = max(coalesce(last_prompt_at, ?3), ?3) WHERE id = ?1",
            )?
            .execute([session, first, last])?;
        }
        let started = section.prompts.is_some() || !section.requests.is_empty();
        if started {
            self.count_started(c, home, session, project)?;
        }
        let turned = self.is_turned(c, session)?;
        if turned {
            self.dirty.insert(session);
            self.settle_project(c, home, session, project)?;
        }
        // A first import is history, and long past what any door still claims.
        if self.fresh.is_none() || turned {
            for at in &section.silent_prompts {
                c.prepare_cached("INSERT OR IGNORE INTO silent_prompts (session_id, at) VALUES (?1, ?2)")?
                    .execute([session, *at])?;
            }
        }
        let times = || section.requests.iter().map(|request| request.at);
        if let (Some(first), Some(last)) = (times().min(), times().max()) {
            span(c, session, first, last)?;
        }
        if !section.requests.is_empty() {
            let mut found = Found::new(c, home, session, project, section.role)?;
            found.history = self.fresh.is_some() && !turned;
            self.requests(c, found, &section.requests, now_ms)?;
        }
        for line in &section.undecodable {
            self.undecodable(c, before.id, home, session, line)?;
        }
        if !section.requests.is_empty() || !section.undecodable.is_empty() {
            c.prepare_cached(
                "INSERT OR IGNORE INTO journal_sessions (journal_id, session_id) VALUES (?1, ?2)",
            )?
            .execute([before.id, session])?;
        }
        Ok(())
    }

    /// A header not seen before may change whose the copied requests are.
    fn starts(
        &mut self,
        c: &Connection,
        session: i64,
        new_session: bool,
        starts: &[i64],
    ) -> Result<(), StoreError> {
        let mut insert = c.prepare_cached(
            "INSERT OR IGNORE INTO session_starts (session_id, started_at) VALUES (?1, ?2)",
        )?;
        let mut new = false;
        for start in starts {
            new |= insert.execute([session, *start])? > 0;
        }
        // Nothing was found in a new session yet.
        if new && !new_session { ownership::reown_session(c, session) } else { Ok(()) }
    }

    /// Counts a session that was prompted or made a request, once.
    fn count_started(
        &mut self,
        c: &Connection,
        home: HomeId,
        session: i64,
        project: i64,
    ) -> Result<(), StoreError> {
        let new = c
            .prepare_cached(
                "UPDATE sessions SET counted = 1 WHERE id = ?1 AND counted = 0 AND resolved_to IS NULL",
            )?
            .execute([session])?;
        if new > 0 {
            let project = self.project_name(c, project)?;
            self.count_home(home, SESSIONS_STARTED, &project, "", 1);
        }
        Ok(())
    }

    /// The journal says the project of a session that a door named first.
    fn settle_project(
        &mut self,
        c: &Connection,
        home: HomeId,
        session: i64,
        project: i64,
    ) -> Result<(), StoreError> {
        c.prepare_cached(
            "UPDATE sessions SET project_id = ?2 WHERE id = ?1 AND project_id IN
                 (SELECT project_id FROM project_dirs WHERE home_id = ?3 AND dir = '')",
        )?
        .execute([session, project, home.0])?;
        Ok(())
    }

    fn undecodable(
        &mut self,
        c: &Connection,
        journal: i64,
        home: HomeId,
        session: i64,
        line: &Undecodable,
    ) -> Result<(), StoreError> {
        let (offset, len) = (line.offset.cast_signed(), line.len.cast_signed());
        let new = c
            .prepare_cached(
                "INSERT OR IGNORE INTO undecodable (journal_id, offset, len, reason, session_id, at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![journal, offset, len, line.reason.as_str(), session, line.at])?;
        if new == 0 {
            return Ok(());
        }
        self.count(JOURNAL_UNDECODABLE, line.reason.as_str(), 1);
        let mut insert = c.prepare_cached(
            "INSERT OR IGNORE INTO undecodable_ids (journal_id, offset, len, home_id, key, message_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        for id in &line.ids {
            insert.execute(params![journal, offset, len, home.0, request_key(id), &**id])?;
        }
        Ok(())
    }

    /// What a tail or a whole document said is said anew by this step.
    fn forget_torn(&mut self, c: &Connection, before: &Before, step: &JournalStep) -> Result<(), StoreError> {
        if step.whole {
            c.prepare_cached("DELETE FROM undecodable WHERE journal_id = ?1")?.execute([before.id])?;
        } else if !step.revised
            && (step.to.offset > before.cursor.offset || step.to.seen.len != before.cursor.seen.len)
        {
            // Complete lines stand before the offset: what begins at it was a tail.
            c.prepare_cached("DELETE FROM undecodable WHERE journal_id = ?1 AND offset = ?2")?
                .execute([before.id, before.cursor.offset.cast_signed()])?;
        }
        Ok(())
    }

    fn count_step(&mut self, step: &JournalStep) {
        self.count(JOURNAL_BYTES, "", step.bytes);
        self.count(JOURNAL_REVISIONS, "", u64::from(step.revised));
        let lines = &step.lines;
        self.count(JOURNAL_LINES, "repeat", lines.repeats);
        self.count(JOURNAL_LINES, "control", lines.control);
        self.count(JOURNAL_LINES, "other", lines.other);
        self.count(JOURNAL_LINES, "undecodable", lines.undecodable);
        for (kind, count) in Anomalies::KINDS.into_iter().zip(step.anomalies.counts()) {
            self.count(JOURNAL_ANOMALIES, kind, count);
        }
    }
}

/// Widens the time in which a session has requests. It covers copies it does
/// not own too, so whoever owns a request, its time lies inside.
pub(super) fn span(c: &Connection, session: i64, first: i64, last: i64) -> Result<(), StoreError> {
    c.prepare_cached(
        "UPDATE sessions SET first_at = min(coalesce(first_at, ?2), ?2), last_at = max(coalesce(last_at, ?3), ?3)
         WHERE id = ?1",
    )?
    .execute([session, first, last])?;
    Ok(())
}
