//! What was spent, row by row, with what each row may claim, and where
//! something was spent that has no number.

use std::collections::BTreeMap;
use std::ops::Range;

use rusqlite::Row;

use super::{Dimensions, SessionRow, Snapshot};
use crate::ledger::bound::{Bound, Reasons};
use crate::ledger::model::Role;
use crate::ledger::money::CostSum;
use crate::ledger::spend::{Basis, Source, Spend};
use crate::ledger::tokens::Reading;
use crate::store::turns::bound_of;
use crate::store::{StoreError, pricing, requests};

/// One billed request of a journal, or what a turn's figure holds above those
/// (accounting 2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Of the request, or of the turn.
    pub id: i64,
    /// A key of [`Dimensions::sessions`]: its home and project are the session's.
    pub session_id: i64,
    pub model_id: i64,
    pub role: Role,
    /// When the answer ended, or the turn, unix ms.
    pub at: i64,
    pub reading: Reading,
    pub model_inferred: bool,
    /// What it costs at the list price of its own day, or the gap it leaves.
    pub cost: CostSum,
    /// It is no request of a journal: what a turn holds above them. Its cached
    /// tokens may exceed its prompt: the requests called them uncached.
    pub above: bool,
    /// Billed requests it stands for: 1 of a journal's.
    pub requests: u64,
    pub claim: Claim,
}

impl RequestRow {
    /// Adds its tokens to a sum with what they may claim; not its cost.
    pub fn add_to(&self, spend: &mut Spend, session: &SessionRow, strict: bool) {
        if self.above {
            spend.add_above(self.role, self.requests, self.reading);
        } else {
            spend.add_request(self.role, self.reading);
        }
        spend.rest_on(self.claim.basis);
        spend.demote(self.claim.reasons(session.reasons, strict));
    }

    /// The row where it stands without the others of its turn: tokens that the
    /// requests called uncached stay with them, so that rows add up.
    #[must_use]
    pub fn alone(&self) -> Self {
        if self.above { Self { reading: self.reading.alone(), ..*self } } else { *self }
    }

    /// What its tokens may claim.
    #[must_use]
    pub fn bound(&self, session: &SessionRow, strict: bool) -> Bound {
        if self.claim.reasons(session.reasons, strict).is_empty() { Bound::Exact } else { Bound::AtLeast }
    }
}

/// What a row's tokens may claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The turn it is of; `None`: no door saw one.
    pub turn: Option<i64>,
    pub reasons: Reasons,
    /// By the prompt result and the journal alone.
    pub strict: Reasons,
    pub basis: Basis,
}

impl Claim {
    /// Why the row is a lower bound; nothing where it is exact. What no turn
    /// claims was seen by the journal watcher only (accounting row 38).
    #[must_use]
    pub fn reasons(&self, session: Reasons, strict: bool) -> Reasons {
        match self.turn {
            None => Reasons::of_watched(session),
            Some(_) if strict => self.strict,
            Some(_) => self.reasons,
        }
    }
}

/// A turn, or a session that was prompted and shows no figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// A key of [`Dimensions::sessions`].
    pub session_id: i64,
    /// When the turn began, or the session was prompted last, unix ms; `None`: unknown.
    pub at: Option<i64>,
    /// The model in force.
    pub model_id: Option<i64>,
    /// It counts as a turn.
    pub turn: bool,
    pub bound: Bound,
    pub reasons: Reasons,
    /// By the prompt result and the journal alone.
    pub strict: (Bound, Reasons),
}

impl Mark {
    /// Adds it to a sum: counted as a turn if it is one, and what has no number.
    pub fn add_to(&self, spend: &mut Spend, strict: bool) {
        let (bound, reasons) = self.verdict(strict);
        if self.turn {
            spend.count_turn(bound);
        }
        if bound == Bound::Unmeasured {
            spend.add_unmeasured();
        }
        spend.demote(reasons);
    }

    /// Its class and why.
    #[must_use]
    pub fn verdict(&self, strict: bool) -> (Bound, Reasons) {
        if strict { self.strict } else { (self.bound, self.reasons) }
    }
}

const REQUEST: &str =
    "r.id, r.session_id, r.model_id, r.role, r.at, r.flags, r.prompt, r.cached, r.tool, r.output,
     r.thoughts, r.cost, r.cost_bound, r.turn_id, t.reasons, t.strict_reasons, t.basis";

const PART: &str = "SELECT t.id, t.session_id, p.model_id, p.role, coalesce(t.closed_at, t.started_at), 0, p.prompt,
            p.cached, p.tool, p.output, p.thoughts, p.cost, p.cost_bound, t.id, t.reasons, t.strict_reasons, t.basis,
            p.requests
     FROM turn_parts p JOIN turns t ON t.id = p.turn_id";

impl SessionRow {
    /// The mark of a session that shows nothing of what it spent; `None` where
    /// nobody asked and all was read: a start-up journal (accounting R19, R40).
    #[must_use]
    pub fn silent(&self) -> Option<Mark> {
        if self.runtime.is_some() || (self.prompts.is_none() && self.reasons.is_empty()) {
            return None;
        }
        let reasons = Reasons::of_silent(self.reasons);
        Some(Mark {
            session_id: self.id,
            at: self.prompts.map(|(_, last)| last).or(self.started_at),
            model_id: None,
            turn: false,
            bound: Bound::Unmeasured,
            reasons,
            strict: (Bound::Unmeasured, reasons),
        })
    }
}

impl Snapshot<'_> {
    /// Calls `each` for everything spent with `at` in `range` (unix ms): journal
    /// requests, and what turns hold above them.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn requests(&self, range: Range<i64>, mut each: impl FnMut(RequestRow)) -> Result<(), StoreError> {
        let resolved = self.resolved()?;
        // Sessions know their span: a range of a few days touches their requests only.
        let from = if range.start == i64::MIN {
            "requests r"
        } else {
            "sessions s CROSS JOIN requests r ON r.session_id = s.id AND s.last_at >= ?1 AND s.first_at < ?2"
        };
        self.each(
            &format!(
                "SELECT {REQUEST} FROM {from} LEFT JOIN turns t ON t.id = r.turn_id WHERE r.at >= ?1 AND r.at < ?2"
            ),
            [range.start, range.end],
            |row| {
                each(request(row, &resolved)?);
                Ok(())
            },
        )?;
        let ended = "coalesce(t.closed_at, t.started_at)";
        self.each(&format!("{PART} WHERE {ended} >= ?1 AND {ended} < ?2"), [range.start, range.end], |row| {
            each(part(row, &resolved)?);
            Ok(())
        })
    }

    /// The requests of one session with their message ids, oldest first.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn session_requests(&self, session_id: i64) -> Result<Vec<(String, RequestRow)>, StoreError> {
        let resolved = self.resolved()?;
        let mut requests = Vec::new();
        self.each(
            &format!(
                "SELECT {REQUEST}, r.message_id FROM requests r LEFT JOIN turns t ON t.id = r.turn_id
                 WHERE r.session_id = ?1 OR r.session_id IN (SELECT id FROM sessions WHERE resolved_to = ?1)
                 ORDER BY r.at, r.id"
            ),
            [session_id],
            |row| {
                requests.push((row.get(17)?, request(row, &resolved)?));
                Ok(())
            },
        )?;
        Ok(requests)
    }

    /// What the turns of one session hold above its requests, by their ends.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn session_parts(&self, session_id: i64) -> Result<Vec<RequestRow>, StoreError> {
        let resolved = self.resolved()?;
        let mut parts = Vec::new();
        self.each(
            &format!(
                "{PART} WHERE t.session_id = ?1 OR t.session_id IN (SELECT id FROM sessions WHERE resolved_to = ?1)
                 ORDER BY 5, t.id, p.role, p.model_id"
            ),
            [session_id],
            |row| {
                parts.push(part(row, &resolved)?);
                Ok(())
            },
        )?;
        Ok(parts)
    }

    /// Turns that began in `range` (unix ms), and sessions without any that
    /// were prompted last in it and show no figure, or whose journal could not
    /// be read (accounting R19, R40). What has no time is in every range.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn marks(&self, dimensions: &Dimensions, range: Range<i64>) -> Result<Vec<Mark>, StoreError> {
        let resolved = self.resolved()?;
        let mut marks = Vec::new();
        self.each(
            "SELECT t.session_id, t.started_at, t.model_id, t.unit, t.bound, t.reasons, t.strict_bound, t.strict_reasons
             FROM turns t WHERE t.part_of IS NULL AND t.bound IS NOT NULL AND t.started_at >= ?1 AND t.started_at < ?2",
            [range.start, range.end],
            |row| {
                let session: i64 = row.get(0)?;
                let bound = bound_of(row.get(4)?);
                let strict = row.get::<_, Option<i64>>(6)?.map_or(bound, bound_of);
                marks.push(Mark {
                    session_id: *resolved.get(&session).unwrap_or(&session),
                    at: Some(row.get(1)?),
                    model_id: row.get(2)?,
                    turn: !row.get::<_, bool>(3)?,
                    bound,
                    reasons: Reasons::from_bits(row.get(5)?),
                    strict: (strict, Reasons::from_bits(row.get(7)?)),
                });
                Ok(())
            },
        )?;
        // Another agent's turns are no spend of Gemini CLI (accounting R1).
        marks.retain(|mark| dimensions.sessions.get(&mark.session_id).is_some_and(|s| s.runtime.is_none()));
        self.silent(dimensions, &range, &mut marks)?;
        self.loose(dimensions, &range, &mut marks)?;
        Ok(marks)
    }

    /// Sessions that were prompted and show nothing.
    fn silent(
        &self,
        dimensions: &Dimensions,
        range: &Range<i64>,
        marks: &mut Vec<Mark>,
    ) -> Result<(), StoreError> {
        let whole = range.start == i64::MIN && range.end == i64::MAX;
        for mut mark in dimensions.sessions.values().filter_map(SessionRow::silent) {
            if mark.at.is_some_and(|at| !range.contains(&at)) || !self.is_silent(mark.session_id)? {
                continue;
            }
            if mark.at.is_none() {
                mark.at = self.session_undecodable(mark.session_id)?.iter().map(|line| line.at).max();
            }
            if mark.at.map_or(whole, |at| range.contains(&at)) {
                marks.push(mark);
            }
        }
        Ok(())
    }

    /// Torn lines of measured sessions that lie in none of their turns.
    fn loose(
        &self,
        dimensions: &Dimensions,
        range: &Range<i64>,
        marks: &mut Vec<Mark>,
    ) -> Result<(), StoreError> {
        let mut loose = Vec::new();
        self.each(
            "SELECT id, coalesce(last_at, last_prompt_at) FROM sessions WHERE torn_loose",
            [],
            |row| {
                loose.push((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?));
                Ok(())
            },
        )?;
        for (session_id, at) in loose {
            let known = dimensions.sessions.get(&session_id);
            if known.is_some() && at.is_none_or(|at| range.contains(&at)) {
                let reasons = Reasons::NONE.with(crate::ledger::bound::Reason::TornLine);
                let strict = (Bound::AtLeast, reasons);
                marks.push(Mark {
                    session_id,
                    at,
                    model_id: None,
                    turn: false,
                    bound: Bound::AtLeast,
                    reasons,
                    strict,
                });
            }
        }
        Ok(())
    }

    /// Whether nothing at all is known of what a session spent, in any range.
    fn is_silent(&self, session_id: i64) -> Result<bool, StoreError> {
        let mut statement = self.tx.prepare_cached(
            "SELECT NOT EXISTS (SELECT 1 FROM requests WHERE session_id IN (SELECT id FROM sessions WHERE id = ?1 OR resolved_to = ?1))
                AND NOT EXISTS (SELECT 1 FROM turns WHERE session_id IN (SELECT id FROM sessions WHERE id = ?1 OR resolved_to = ?1))",
        )?;
        Ok(statement.query_row([session_id], |row| row.get(0))?)
    }

    /// Which session a nameless one is shown as.
    pub(super) fn resolved(&self) -> Result<BTreeMap<i64, i64>, StoreError> {
        let mut resolved = BTreeMap::new();
        self.each("SELECT id, resolved_to FROM sessions WHERE resolved_to IS NOT NULL", [], |row| {
            resolved.insert(row.get(0)?, row.get(1)?);
            Ok(())
        })?;
        Ok(resolved)
    }
}

fn request(row: &Row<'_>, resolved: &BTreeMap<i64, i64>) -> rusqlite::Result<RequestRow> {
    spend(row, resolved, false)
}

fn part(row: &Row<'_>, resolved: &BTreeMap<i64, i64>) -> rusqlite::Result<RequestRow> {
    let part = spend(row, resolved, true)?;
    Ok(RequestRow { requests: row.get::<_, i64>(17)?.unsigned_abs(), ..part })
}

fn spend(row: &Row<'_>, resolved: &BTreeMap<i64, i64>, above: bool) -> rusqlite::Result<RequestRow> {
    let session: i64 = row.get(1)?;
    let reading = requests::reading(row, 6)?;
    let turn: Option<i64> = row.get(13)?;
    let mut claim = Claim { turn, ..Claim::default() };
    if turn.is_some() {
        claim.reasons = Reasons::from_bits(row.get::<_, Option<i64>>(14)?.unwrap_or(0));
        claim.strict = Reasons::from_bits(row.get::<_, Option<i64>>(15)?.unwrap_or(0));
        claim.basis = Basis::from_bits(row.get::<_, Option<i64>>(16)?.unwrap_or(0));
    } else {
        claim.basis.insert(Source::Journal);
    }
    Ok(RequestRow {
        id: row.get(0)?,
        session_id: *resolved.get(&session).unwrap_or(&session),
        model_id: row.get(2)?,
        role: requests::role_of(row.get(3)?),
        at: row.get(4)?,
        model_inferred: requests::is_model_inferred(row.get(5)?),
        reading,
        cost: pricing::sum(row.get(11)?, row.get(12)?, &reading),
        above,
        requests: 1,
        claim,
    })
}
