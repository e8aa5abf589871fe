//! Turns as rows: put together anew whenever evidence of their session came,
//! final once, and counted then (accounting 2.3–2.7).

use std::collections::{BTreeMap, HashSet};

use rusqlite::{Connection, OptionalExtension, params};

use super::StoreError;
use super::apply::Applier;
use super::facts::{self, Loaded, columns, whose};
use super::pricing;
use super::requests::role_number;
use super::settle::Written;
use crate::ledger::bound::{Bound, Reasons};
use crate::ledger::evidence::HomeId;
use crate::ledger::money::{Cost, CostBound};
use crate::ledger::spend::Basis;
use crate::ledger::tokens::{Classes, Reading};
use crate::ledger::turn::excess::{Claim, Part};
use crate::ledger::turn::session::{Turn, ViewKey, assess};
use crate::ledger::turn::settle::OPEN_TURN_MAX;

/// A turn's row, as far as this file changes it.
pub(super) struct TurnRow {
    pub id: i64,
    /// Of telemetry: what it is called.
    pub key: Option<String>,
    part_of: Option<i64>,
    state: State,
    pub settled: Option<(i64, Bound)>,
    pub counted: Counted,
}

/// What all evidence makes of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    started_at: i64,
    closed_at: Option<i64>,
    ending: Option<String>,
    model: Option<i64>,
    bound: Option<Bound>,
    reasons: Reasons,
    strict: (Option<Bound>, Reasons),
    basis: Basis,
    figure: Option<Reading>,
    billed: u64,
}

/// What was counted above a turn's requests and not found among them yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub requests: u64,
    pub tokens: Classes,
}

/// How rows hold a bound.
pub(super) fn bound_number(bound: Bound) -> i64 {
    bound as i64
}

pub(super) fn bound_of(number: i64) -> Bound {
    match number {
        0 => Bound::Exact,
        1 => Bound::AtLeast,
        _ => Bound::Unmeasured,
    }
}

impl Applier {
    /// Whether a session has turns, or telemetry that makes some.
    pub(super) fn is_turned(&mut self, c: &Connection, session: i64) -> Result<bool, StoreError> {
        if !self.any_turns(c)? {
            return Ok(false);
        }
        if let Some(known) = self.turned.get(&session) {
            return Ok(*known);
        }
        let turned = c
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM turns t JOIN sessions s ON s.id = ?1
                                WHERE t.session_id IN (s.id, s.resolved_to))
                     OR EXISTS (SELECT 1 FROM telemetry WHERE session_id = ?1)",
            )?
            .query_row([session], |row| row.get(0))?;
        self.turned.insert(session, turned);
        Ok(turned)
    }

    fn any_turns(&mut self, c: &Connection) -> Result<bool, StoreError> {
        if let Some(any) = self.any_turns
            && (any || self.turned.is_empty())
        {
            return Ok(any);
        }
        let any = "SELECT EXISTS (SELECT 1 FROM turns) OR EXISTS (SELECT 1 FROM telemetry)";
        let any = c.prepare_cached(any)?.query_row([], |row| row.get(0))?;
        self.any_turns = Some(any);
        Ok(any)
    }

    /// Marks a session whose turns may have changed.
    pub(super) fn touch(&mut self, c: &Connection, session: i64) -> Result<(), StoreError> {
        if self.is_turned(c, session)? {
            self.dirty.insert(session);
        }
        Ok(())
    }

    /// Puts the turns of every session together that evidence came for.
    pub(super) fn assess_dirty(&mut self, c: &Connection, now_ms: i64) -> Result<(), StoreError> {
        let mut shown = HashSet::new();
        for session in std::mem::take(&mut self.dirty) {
            let resolved = c
                .prepare_cached("SELECT coalesce(resolved_to, id) FROM sessions WHERE id = ?1")?
                .query_row([session], |row| row.get::<_, i64>(0))
                .optional()?;
            shown.extend(resolved);
        }
        shown.into_iter().try_for_each(|session| self.assess(c, session, now_ms))
    }

    fn assess(&mut self, c: &Connection, session: i64, now_ms: i64) -> Result<(), StoreError> {
        let loaded = facts::load(c, session, now_ms)?;
        let turns = assess(&loaded.facts);
        let mut rows = rows(c, &loaded.sessions)?;
        let (home, project) = whose(c, session)?;
        let whose = Whose { home: HomeId(home), project };
        let mut kept = HashSet::new();
        let mut assigned: BTreeMap<usize, i64> = BTreeMap::new();
        let mut written = Vec::with_capacity(turns.len());
        for turn in &turns {
            let members = self.members(c, session, turn, &mut rows)?;
            let head = head(&members, &rows);
            kept.extend(members.iter().copied());
            for member in members.iter().filter(|member| **member != head) {
                fold(c, *member, head)?;
            }
            assigned.extend(turn.requests.iter().map(|request| (*request, head)));
            let row = rows.get(&head).expect("a turn's row was read or made above");
            self.write(c, row, turn)?;
            written.push((head, turn, self.write_parts(c, whose.home, head, turn)?));
        }
        self.assign(c, &loaded, &assigned)?;
        for (head, turn, parts) in &written {
            let row = rows.get(head).expect("a turn's row was read or made above");
            self.settle_or_revise(c, &whose, &Written { row, turn, parts }, &loaded, now_ms)?;
        }
        let loose = loaded.facts.torn.iter().any(|torn| {
            !turns
                .iter()
                .any(|turn| turn.started_at < torn.at && turn.ended_at.is_none_or(|ended| torn.at <= ended))
        });
        c.prepare_cached("UPDATE sessions SET torn_loose = ?2 WHERE id = ?1 AND torn_loose <> ?2")?
            .execute(params![session, loose])?;
        // What telemetry called a turn before more of it came.
        for row in rows.values().filter(|row| row.key.is_some() && !kept.contains(&row.id)) {
            if row.settled.is_none() {
                c.prepare_cached("UPDATE requests SET turn_id = NULL WHERE turn_id = ?1")?
                    .execute([row.id])?;
                c.prepare_cached("UPDATE turns SET part_of = NULL WHERE part_of = ?1")?.execute([row.id])?;
                c.prepare_cached("DELETE FROM turns WHERE id = ?1")?.execute([row.id])?;
            }
        }
        Ok(())
    }

    /// The rows of a turn's views; telemetry's are made where they are new.
    fn members(
        &mut self,
        c: &Connection,
        session: i64,
        turn: &Turn,
        rows: &mut BTreeMap<i64, TurnRow>,
    ) -> Result<Vec<i64>, StoreError> {
        let unit = turn.unit.as_ref().map(|id| format!("unit:{id}"));
        let mut members = Vec::new();
        let keys = turn.views.iter().map(|view| match view {
            ViewKey::Door(id) => Ok(*id),
            ViewKey::Telemetry(key) => Err(key),
        });
        for key in keys.chain(unit.as_ref().map(Err)) {
            let key = match key {
                Ok(id) => {
                    members.push(id);
                    continue;
                }
                Err(key) => key,
            };
            if let Some(row) = rows.values().find(|row| row.key.as_deref() == Some(key)) {
                members.push(row.id);
                continue;
            }
            c.prepare_cached(
                "INSERT INTO turns (session_id, key, started_at, unit) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![session, key, turn.started_at, turn.unit.is_some()])?;
            let id = c.last_insert_rowid();
            rows.insert(id, read_row(c, id)?);
            members.push(id);
        }
        Ok(members)
    }

    /// Writes what the evidence makes of a turn. More evidence of a turn never
    /// lowers its figure; records that turn out to be another turn's leave it.
    /// The class of what is final may only fall.
    fn write(&mut self, c: &Connection, row: &TurnRow, turn: &Turn) -> Result<(), StoreError> {
        let model = match &turn.model {
            Some(model) => Some(self.model(c, Some(model))?.0),
            None => None,
        };
        let mut state = State {
            started_at: turn.started_at,
            closed_at: turn.ended_at,
            ending: Some(turn.ending.as_str().to_owned()),
            model,
            bound: Some(turn.verdict.bound),
            reasons: turn.verdict.reasons,
            strict: (Some(turn.strict.bound), turn.strict.reasons),
            basis: turn.verdict.basis,
            figure: turn.verdict.figure,
            billed: turn.billed,
        };
        if row.settled.is_some() {
            let was = &row.state;
            let (bound, reasons) =
                lower((was.bound, was.reasons), (state.bound, state.reasons), state.figure);
            (state.bound, state.reasons) = (bound, reasons);
            let (bound, reasons) = lower(was.strict, state.strict, state.figure);
            state.strict = (bound, reasons);
        }
        if state == row.state && row.part_of.is_none() {
            return Ok(());
        }
        let figure = state.figure.map(|figure| columns(&figure));
        let component = |n: usize| figure.map(|figure| figure[n]);
        c.prepare_cached(
            "UPDATE turns SET part_of = NULL, ending = ?2, model_id = ?3, closed_at = ?4, bound = ?5, reasons = ?6,
                 strict_bound = ?7, strict_reasons = ?8, basis = ?9, prompt = ?10, cached = ?11, tool = ?12,
                 output = ?13, thoughts = ?14, billed = ?15,
                 started_at = CASE WHEN connection_id IS NULL THEN ?16 ELSE started_at END
             WHERE id = ?1",
        )?
        .execute(params![
            row.id,
            state.ending,
            state.model,
            state.closed_at,
            state.bound.map(bound_number),
            state.reasons.bits(),
            state.strict.0.map(bound_number),
            state.strict.1.bits(),
            state.basis.bits(),
            component(0),
            component(1),
            component(2),
            component(3),
            component(4),
            super::tuples::clamp(state.billed),
            state.started_at,
        ])?;
        Ok(())
    }

    /// Writes what the figure holds above its requests, with its costs.
    fn write_parts(
        &mut self,
        c: &Connection,
        home: HomeId,
        turn: i64,
        of: &Turn,
    ) -> Result<Vec<(Part, Option<Cost>)>, StoreError> {
        let at = of.ended_at.unwrap_or(of.started_at);
        c.prepare_cached("DELETE FROM turn_parts WHERE turn_id = ?1")?.execute([turn])?;
        let mut priced = Vec::with_capacity(of.excess.len());
        for part in &of.excess {
            let model = self.model(c, Some(&part.model))?.0;
            let cost = self.pricing.part(home, part, at);
            let (amount, bound) = pricing::columns(cost.as_ref());
            let [prompt, cached, tool, output, thoughts] = columns(&part.reading);
            c.prepare_cached(
                "INSERT INTO turn_parts (turn_id, model_id, role, requests, prompt, cached, tool, output, thoughts,
                                         claim, cost, cost_bound)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .execute(params![
                turn,
                model,
                role_number(part.role),
                super::tuples::clamp(part.requests),
                prompt,
                cached,
                tool,
                output,
                thoughts,
                part.claim as i64,
                amount,
                bound,
            ])?;
            priced.push((part.clone(), cost));
        }
        Ok(priced)
    }

    /// Notes which turn each request of the session is of.
    fn assign(
        &mut self,
        c: &Connection,
        loaded: &Loaded,
        assigned: &BTreeMap<usize, i64>,
    ) -> Result<(), StoreError> {
        let mut update = c.prepare_cached("UPDATE requests SET turn_id = ?2 WHERE id = ?1")?;
        for (place, request) in loaded.facts.requests.iter().enumerate() {
            let turn = assigned.get(&place).copied();
            if loaded.requests[place].0 != turn {
                update.execute(params![request.id, turn])?;
            }
        }
        Ok(())
    }

    /// Closes turns that are open for longer than a turn can be.
    pub(super) fn close_lapsed(&mut self, c: &Connection, now_ms: i64) -> Result<(), StoreError> {
        let mut statement = c.prepare_cached(
            "UPDATE turns SET lapsed = 1, ended_at = started_at + ?2
             WHERE connection_id IS NOT NULL AND ended_at IS NULL AND settled_at IS NULL AND started_at < ?1
             RETURNING session_id",
        )?;
        let lapsed = statement.query_map([now_ms - OPEN_TURN_MAX, OPEN_TURN_MAX], |row| row.get(0))?;
        for session in lapsed {
            self.dirty.insert(session?);
        }
        Ok(())
    }
}

/// Whose a turn is.
pub(super) struct Whose {
    pub home: HomeId,
    pub project: i64,
}

/// The class of a final turn: it may only fall, and with a figure it is no
/// longer unmeasured.
fn lower(
    was: (Option<Bound>, Reasons),
    is: (Option<Bound>, Reasons),
    figure: Option<Reading>,
) -> (Option<Bound>, Reasons) {
    let measured = |bound: Option<Bound>| match (bound, figure) {
        (Some(Bound::Unmeasured), Some(_)) => Some(Bound::AtLeast),
        (bound, _) => bound,
    };
    let (was, is) = ((measured(was.0), was.1), (measured(is.0), is.1));
    if is.0 > was.0 { is } else { was }
}

/// The row a turn is kept under: one that is final already, else the first.
fn head(members: &[i64], rows: &BTreeMap<i64, TurnRow>) -> i64 {
    let settled = |id: &&i64| rows.get(id).is_some_and(|row| row.settled.is_some());
    *members.iter().find(settled).unwrap_or(&members[0])
}

fn fold(c: &Connection, member: i64, head: i64) -> Result<(), StoreError> {
    let folded = c
        .prepare_cached("UPDATE turns SET part_of = ?2 WHERE id = ?1 AND part_of IS NOT ?2")?
        .execute([member, head])?;
    if folded > 0 {
        c.prepare_cached("DELETE FROM turn_parts WHERE turn_id = ?1")?.execute([member])?;
    }
    Ok(())
}

const ROW: &str = "SELECT id, CASE WHEN connection_id IS NULL THEN key END, part_of, started_at, closed_at, ending,
            model_id, bound, reasons, strict_bound, strict_reasons, basis, prompt, cached, tool, output, thoughts,
            billed, settled_at, settled_bound, counted_requests, counted_uncached_input, counted_cached_input,
            counted_tool_input, counted_output, counted_thoughts
     FROM turns";

fn rows(c: &Connection, sessions: &[i64]) -> Result<BTreeMap<i64, TurnRow>, StoreError> {
    let mut statement = c.prepare_cached(&format!("{ROW} WHERE session_id = ?1"))?;
    let mut rows = BTreeMap::new();
    for session in sessions {
        for row in statement.query_map([session], turn_row)? {
            let row = row?;
            rows.insert(row.id, row);
        }
    }
    Ok(rows)
}

pub(super) fn read_row(c: &Connection, id: i64) -> Result<TurnRow, StoreError> {
    Ok(c.prepare_cached(&format!("{ROW} WHERE id = ?1"))?.query_row([id], turn_row)?)
}

fn turn_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<TurnRow> {
    let count = |n: usize| row.get::<_, i64>(n).map(i64::unsigned_abs);
    let figure = match row.get::<_, Option<i64>>(12)? {
        Some(_) => Some(super::requests::reading(row, 12)?),
        None => None,
    };
    Ok(TurnRow {
        id: row.get(0)?,
        key: row.get(1)?,
        part_of: row.get(2)?,
        state: State {
            started_at: row.get(3)?,
            closed_at: row.get(4)?,
            ending: row.get(5)?,
            model: row.get(6)?,
            bound: row.get::<_, Option<i64>>(7)?.map(bound_of),
            reasons: Reasons::from_bits(row.get(8)?),
            strict: (row.get::<_, Option<i64>>(9)?.map(bound_of), Reasons::from_bits(row.get(10)?)),
            basis: Basis::from_bits(row.get(11)?),
            figure,
            billed: count(17)?,
        },
        settled: row.get::<_, Option<i64>>(18)?.zip(row.get::<_, Option<i64>>(19)?.map(bound_of)),
        counted: Counted {
            requests: count(20)?,
            tokens: Classes {
                uncached_input: count(21)?,
                cached_input: count(22)?,
                tool_input: count(23)?,
                output: count(24)?,
                thoughts: count(25)?,
            },
        },
    })
}

impl TurnRow {
    /// The figure and the class that stood in the row before.
    pub(super) fn before(&self) -> (Option<Reading>, Option<Bound>) {
        (self.state.figure, self.state.bound)
    }
}

impl pricing::Pricing {
    /// The cost of tokens above a turn's requests, with no more of a claim
    /// than their source allows.
    pub(super) fn part(&self, home: HomeId, part: &Part, at: i64) -> Option<Cost> {
        let row = self.table.price(&part.model, self.list(home), at).ok()?;
        let mut cost = row.estimate(&part.reading.classes());
        cost.bound = match part.claim {
            Claim::Estimate => CostBound::Estimate,
            Claim::AtLeast => CostBound::AtLeast,
            Claim::Exact if row.at_least => CostBound::AtLeast,
            Claim::Exact => CostBound::Exact,
        };
        Some(cost)
    }
}
