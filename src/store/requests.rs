//! A request found in a journal becomes a row once, whatever finds it again
//! (accounting R16, R17).

use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::StoreError;
use super::apply::{Applier, span};
use super::counter_names::{JOURNAL_LINES, JOURNAL_REVISIONS, LINE_REPEAT, LINE_REQUEST, NO_LABEL};
use super::fresh::Fresh;
use super::ownership;
use super::pricing::{self, Pricing};
use super::tuples::{Growth, clamp};
use crate::ledger::evidence::{HomeId, Place, Request};
use crate::ledger::hash::request_key;
use crate::ledger::identity::{Repeat, repeat};
use crate::ledger::model::{Role, UNKNOWN};
use crate::ledger::money::{Cost, Day, PriceRow};
use crate::ledger::tokens::{Class, Classes, Reading};

const MODEL_INFERRED: i64 = 1;
const UNDATED: i64 = 2;

pub(super) fn is_undated(flags: i64) -> bool {
    flags & UNDATED != 0
}

/// Where requests were found, with what they have in common.
pub(super) struct Found<'c> {
    pub home: HomeId,
    pub session: i64,
    pub project: i64,
    pub role: Role,
    find: CachedStatement<'c>,
    insert: CachedStatement<'c>,
    /// By the model's name in the record.
    labels: Vec<Label>,
    new_lines: u64,
    repeated_lines: u64,
    /// No door claims them: they are settled as they come.
    pub history: bool,
}

/// What requests of one model have in common.
struct Label {
    raw: Option<Arc<str>>,
    model: i64,
    tuple: i64,
    /// The price of the day last asked for.
    price: Option<(Day, Option<PriceRow>)>,
    /// What the section adds to the label set.
    growth: Growth,
}

impl Label {
    /// The cost of a request at the price of its own day.
    fn cost(
        &mut self,
        pricing: &Pricing,
        home: HomeId,
        name: &str,
        at: i64,
        reading: &Reading,
    ) -> Option<Cost> {
        let day = Day::of_ms(at);
        if self.price.as_ref().is_none_or(|(known, _)| *known != day) {
            let row = pricing.table.price_on(name, pricing.list(home), day).ok().cloned();
            self.price = Some((day, row));
        }
        let (_, row) = self.price.as_ref()?;
        row.as_ref().map(|row| row.cost(reading))
    }
}

impl<'c> Found<'c> {
    pub(super) fn new(
        c: &'c Connection,
        home: HomeId,
        session: i64,
        project: i64,
        role: Role,
    ) -> Result<Self, StoreError> {
        let find = c.prepare_cached(&format!(
            "SELECT {KEPT} FROM requests WHERE key = ?1 AND home_id = ?2 AND message_id = ?3"
        ))?;
        let insert = c.prepare_cached(
            "INSERT INTO requests (key, home_id, message_id, session_id, at, model_id, role,
                                   prompt, cached, tool, output, thoughts, flags, cost, cost_bound, settled)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?;
        let labels = Vec::new();
        Ok(Self {
            home,
            session,
            project,
            role,
            find,
            insert,
            labels,
            new_lines: 0,
            repeated_lines: 0,
            history: false,
        })
    }
}

/// A request as its row holds it.
struct Kept {
    id: i64,
    session: i64,
    at: i64,
    model: i64,
    role: Role,
    reading: Reading,
    flags: i64,
}

const KEPT: &str = "id, session_id, at, model_id, role, prompt, cached, tool, output, thoughts, flags";

impl Kept {
    fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            session: row.get(1)?,
            at: row.get(2)?,
            model: row.get(3)?,
            role: role_of(row.get(4)?),
            reading: reading(row, 5)?,
            flags: row.get(10)?,
        })
    }
}

/// How rows hold a role: its place in [`Role::ALL`], which only grows at its end.
pub(super) fn role_number(role: Role) -> i64 {
    role as i64
}

pub(super) fn role_of(number: i64) -> Role {
    usize::try_from(number).ok().and_then(|place| Role::ALL.get(place)).copied().unwrap_or(Role::Utility)
}

impl Applier {
    /// Reads the requests of one section in.
    pub(super) fn requests(
        &mut self,
        c: &Connection,
        mut found: Found<'_>,
        requests: &[Request],
        now_ms: i64,
    ) -> Result<(), StoreError> {
        for request in requests {
            let key = request_key(&request.id);
            let kept = self.kept(c, &mut found, key, &request.id)?;
            match kept {
                None => self.first(c, &mut found, request, key, now_ms)?,
                Some(kept) => self.again(c, &mut found, request, &kept, now_ms)?,
            }
        }
        for label in &mut found.labels {
            if found.history {
                label.growth.settle_all();
            }
            self.grow(label.tuple, &label.growth);
        }
        self.count(JOURNAL_LINES, LINE_REQUEST, found.new_lines);
        self.count(JOURNAL_LINES, LINE_REPEAT, found.repeated_lines);
        Ok(())
    }

    /// The row of a request, by its key's index or, in a first import, by memory.
    fn kept(
        &mut self,
        c: &Connection,
        found: &mut Found<'_>,
        key: i64,
        id: &str,
    ) -> Result<Option<Kept>, StoreError> {
        if let Some(fresh) = &self.fresh {
            let Some(row) = fresh.row(key) else { return Ok(None) };
            let mut by_row = c.prepare_cached(&format!(
                "SELECT {KEPT} FROM requests WHERE id = ?1 AND home_id = ?2 AND message_id = ?3"
            ))?;
            let kept = by_row.query_row(params![row, found.home.0, id], Kept::of).optional()?;
            if kept.is_some() {
                return Ok(kept);
            }
            // Two ids of one key: only the index can tell them apart.
            self.finish_fresh(c)?;
        }
        Ok(found.find.query_row(params![key, found.home.0, id], Kept::of).optional()?)
    }

    /// Ends the first import: the indexes take over.
    pub(super) fn finish_fresh(&mut self, c: &Connection) -> Result<(), StoreError> {
        if self.fresh.take().is_some() { Fresh::finish(c) } else { Ok(()) }
    }

    fn first(
        &mut self,
        c: &Connection,
        found: &mut Found<'_>,
        request: &Request,
        key: i64,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let pricing = self.pricing.clone();
        let label = self.label(c, found, request.model.as_ref(), now_ms)?;
        let name = request.model.as_deref().unwrap_or(UNKNOWN);
        let r = &request.reading;
        let cost = found.labels[label].cost(&pricing, found.home, name, request.at, r);
        let model = found.labels[label].model;
        let (price, price_bound) = pricing::columns(cost.as_ref());
        let mut flags = 0;
        if request.model_inferred {
            flags |= MODEL_INFERRED;
        }
        if request.undated {
            flags |= UNDATED;
        }
        found.insert.execute(params![
            key,
            found.home.0,
            &*request.id,
            found.session,
            request.at,
            model,
            role_number(found.role),
            clamp(r.prompt),
            clamp(r.cached),
            clamp(r.tool),
            clamp(r.output),
            clamp(r.thoughts),
            flags,
            price,
            price_bound,
            found.history,
        ])?;
        if let Some(fresh) = &mut self.fresh {
            fresh.note(key, c.last_insert_rowid());
        }
        let tokens = r.classes();
        let growth = &mut found.labels[label].growth;
        growth.requests += 1;
        growth.tokens.add(&tokens);
        growth.cost(&tokens, cost.as_ref());
        found.new_lines += u64::from(request.place != Place::Inside);
        Ok(())
    }

    /// Where in `found.labels` what requests of this model share stands.
    fn label(
        &mut self,
        c: &Connection,
        found: &mut Found<'_>,
        raw: Option<&Arc<str>>,
        now_ms: i64,
    ) -> Result<usize, StoreError> {
        if let Some(known) = found.labels.iter().position(|label| label.raw.as_ref() == raw) {
            return Ok(known);
        }
        let (model, name) = self.model(c, raw)?;
        let project = self.project_name(c, found.project)?;
        let tuple = self.tuple(c, (found.home, project, name, found.role), now_ms)?;
        let (raw, growth) = (raw.cloned(), Growth::default());
        found.labels.push(Label { raw, model, tuple, price: None, growth });
        Ok(found.labels.len() - 1)
    }

    /// A later copy adds nothing; it may know what the first did not.
    fn again(
        &mut self,
        c: &Connection,
        found: &mut Found<'_>,
        request: &Request,
        kept: &Kept,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        found.repeated_lines += u64::from(request.place == Place::Line);
        let mut reading = kept.reading;
        if let Repeat::Revised(revised) = repeat(kept.reading, request.reading) {
            self.revise(c, found, kept, revised, now_ms)?;
            reading = revised;
        }
        let mut flags = kept.flags;
        let (mut model, mut at, mut role) = (kept.model, kept.at, kept.role);
        if flags & MODEL_INFERRED != 0 && !request.model_inferred {
            model = self.model(c, request.model.as_ref())?.0;
            flags &= !MODEL_INFERRED;
        }
        if flags & UNDATED != 0 && !request.undated {
            at = request.at;
            flags &= !UNDATED;
            span(c, kept.session, at, at)?;
        }
        if found.role == Role::Main {
            role = Role::Main;
        }
        if (model, at, role, flags) != (kept.model, kept.at, kept.role, kept.flags) {
            c.prepare_cached(
                "UPDATE requests SET model_id = ?2, at = ?3, role = ?4, flags = ?5 WHERE id = ?1",
            )?
            .execute(params![kept.id, model, at, role_number(role), flags])?;
        }
        if (model, at, reading) != (kept.model, kept.at, kept.reading) {
            let name = model_name(c, model)?;
            let cost = self.pricing.cost(found.home, &name, at, &reading);
            let (price, bound) = pricing::columns(cost.as_ref());
            c.prepare_cached("UPDATE requests SET cost = ?2, cost_bound = ?3 WHERE id = ?1")?
                .execute(params![kept.id, price, bound])?;
        }
        if at != kept.at {
            ownership::reown(c, kept.id, at)?;
        }
        if found.session != kept.session {
            self.touch(c, kept.session)?;
            ownership::sighted(c, kept.id, at, kept.session, found.session)?;
        }
        Ok(())
    }

    /// Other counts under one id: the figure takes the maximum, and each
    /// counter what its class rose by, so that none falls.
    fn revise(
        &mut self,
        c: &Connection,
        found: &Found<'_>,
        kept: &Kept,
        reading: Reading,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.count(JOURNAL_REVISIONS, NO_LABEL, 1);
        c.prepare_cached(
            "UPDATE requests SET prompt = ?2, cached = ?3, tool = ?4, output = ?5, thoughts = ?6 WHERE id = ?1",
        )?
        .execute(params![
            kept.id,
            clamp(reading.prompt),
            clamp(reading.cached),
            clamp(reading.tool),
            clamp(reading.output),
            clamp(reading.thoughts),
        ])?;
        let name = model_name(c, kept.model)?;
        let rise = rise(&kept.reading.classes(), &reading.classes());
        let mut growth = Growth { tokens: rise, ..Growth::default() };
        let cost = |reading| self.pricing.cost(found.home, &name, kept.at, reading);
        match (cost(&kept.reading), cost(&reading)) {
            // A longer prompt may have moved the whole request to the high rates.
            (Some(was), Some(is)) => growth.cost_rise(&was, &is),
            _ => growth.cost(&rise, None),
        }
        let project = self.project_name(c, found.project)?;
        let tuple = self.tuple(c, (found.home, project, name.into(), kept.role), now_ms)?;
        self.grow(tuple, &growth);
        Ok(())
    }
}

pub(super) fn model_name(c: &Connection, model: i64) -> Result<String, StoreError> {
    Ok(c.prepare_cached("SELECT name FROM models WHERE id = ?1")?.query_row([model], |row| row.get(0))?)
}

/// What each class rose by, capped so that the classes rise by no more than
/// their total (accounting 2.7).
pub(super) fn rise(was: &Classes, is: &Classes) -> Classes {
    let mut left = is.total().saturating_sub(was.total());
    let mut rise = Classes::default();
    for class in Class::ALL {
        let more = is.get(class).saturating_sub(was.get(class)).min(left);
        *rise.get_mut(class) = more;
        left -= more;
    }
    rise
}

/// Five counts from a row, beginning at a column.
pub(super) fn reading(row: &rusqlite::Row<'_>, from: usize) -> rusqlite::Result<Reading> {
    let count = |n: usize| row.get::<_, i64>(from + n).map(i64::unsigned_abs);
    Ok(Reading {
        prompt: count(0)?,
        cached: count(1)?,
        tool: count(2)?,
        output: count(3)?,
        thoughts: count(4)?,
    })
}

pub(super) fn is_model_inferred(flags: i64) -> bool {
    flags & MODEL_INFERRED != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_news_of_caching_moves_no_counter_down() {
        let was = Classes { uncached_input: 100, output: 5, ..Classes::default() };
        let is = Classes { uncached_input: 20, cached_input: 80, output: 9, ..Classes::default() };
        let rise = rise(&was, &is);
        assert_eq!(rise.total(), 4);
        assert_eq!((rise.uncached_input, rise.cached_input, rise.output), (0, 4, 0));
    }
}
