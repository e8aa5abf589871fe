//! A request found in a journal becomes a row once, whatever finds it again
//! (accounting R16, R17).

use rusqlite::{Connection, params};

use super::StoreError;
use super::apply::{Applier, span};
use super::counter_names::{JOURNAL_LINES, JOURNAL_REVISIONS};
use super::ownership;
use super::tuples::clamp;
use crate::ledger::evidence::{HomeId, Place, Request};
use crate::ledger::hash::request_key;
use crate::ledger::identity::{Repeat, repeat};
use crate::ledger::model::Role;
use crate::ledger::tokens::{Class, Classes, Reading};

const MODEL_INFERRED: i64 = 1;
const UNDATED: i64 = 2;

/// Where a request was found.
pub(super) struct At {
    pub home: HomeId,
    pub session: i64,
    pub project: i64,
    pub role: Role,
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

pub(super) fn role_number(role: Role) -> i64 {
    match role {
        Role::Main => 0,
        Role::Subagent => 1,
    }
}

pub(super) fn role_of(number: i64) -> Role {
    if number == 1 { Role::Subagent } else { Role::Main }
}

impl Applier {
    pub(super) fn request(
        &mut self,
        c: &Connection,
        found: &At,
        request: &Request,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let key = request_key(&request.id);
        match kept(c, found.home, key, &request.id)? {
            None => self.first(c, found, request, key, now_ms),
            Some(kept) => self.again(c, found, request, &kept, now_ms),
        }
    }

    fn first(
        &mut self,
        c: &Connection,
        found: &At,
        request: &Request,
        key: i64,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let (model, model_name) = self.model(c, request.model.as_ref())?;
        let mut flags = 0;
        if request.model_inferred {
            flags |= MODEL_INFERRED;
        }
        if request.undated {
            flags |= UNDATED;
        }
        let r = &request.reading;
        c.prepare_cached(
            "INSERT INTO requests (key, home_id, message_id, session_id, at, model_id, role,
                                   prompt, cached, tool, output, thoughts, flags)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(params![
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
        ])?;
        let project = self.project_name(c, found.project)?;
        let tuple = self.tuple(c, (found.home, project, model_name, found.role), now_ms)?;
        self.grow(tuple, 1, &r.classes());
        if request.place != Place::Inside {
            self.count(JOURNAL_LINES, "request", 1);
        }
        Ok(())
    }

    /// A later copy adds nothing; it may know what the first did not.
    fn again(
        &mut self,
        c: &Connection,
        found: &At,
        request: &Request,
        kept: &Kept,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        if request.place == Place::Line {
            self.count(JOURNAL_LINES, "repeat", 1);
        }
        if let Repeat::Revised(reading) = repeat(kept.reading, request.reading) {
            self.revise(c, found, kept, reading, now_ms)?;
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
        if at != kept.at {
            ownership::reown(c, kept.id, at)?;
        }
        if found.session != kept.session {
            ownership::sighted(c, kept.id, at, kept.session, found.session)?;
        }
        Ok(())
    }

    /// Other counts under one id: the figure takes the maximum, and each
    /// counter what its class rose by, so that none falls.
    fn revise(
        &mut self,
        c: &Connection,
        found: &At,
        kept: &Kept,
        reading: Reading,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.count(JOURNAL_REVISIONS, "", 1);
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
        let rise = rise(&kept.reading.classes(), &reading.classes());
        let project = self.project_name(c, found.project)?;
        let model: String =
            c.query_row("SELECT name FROM models WHERE id = ?1", [kept.model], |row| row.get(0))?;
        let tuple = self.tuple(c, (found.home, project, model.into(), kept.role), now_ms)?;
        self.grow(tuple, 0, &rise);
        Ok(())
    }
}

/// What each class rose by, capped so that the classes rise by no more than
/// their total (accounting 2.7).
fn rise(was: &Classes, is: &Classes) -> Classes {
    let mut left = is.total().saturating_sub(was.total());
    let mut rise = Classes::default();
    for class in Class::ALL {
        let more = is.get(class).saturating_sub(was.get(class)).min(left);
        *rise.get_mut(class) = more;
        left -= more;
    }
    rise
}

fn kept(c: &Connection, home: HomeId, key: i64, id: &str) -> Result<Option<Kept>, StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT id, session_id, at, model_id, role, prompt, cached, tool, output, thoughts, flags
         FROM requests WHERE key = ?1 AND home_id = ?2 AND message_id = ?3",
    )?;
    let mut rows = statement.query(params![key, home.0, id])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(Kept {
        id: row.get(0)?,
        session: row.get(1)?,
        at: row.get(2)?,
        model: row.get(3)?,
        role: role_of(row.get(4)?),
        reading: reading(row, 5)?,
        flags: row.get(10)?,
    }))
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
