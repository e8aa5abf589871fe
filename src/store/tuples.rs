//! Counter label sets: first come, first kept, and capped (interface,
//! *Metrics*). Values only grow.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::StoreError;
use super::apply::Applier;
use super::counter_names::LABEL_OVERFLOW;
use crate::ledger::evidence::HomeId;
use crate::ledger::model::Role;
use crate::ledger::tokens::Classes;

/// The value of the labels of what no longer fits.
const OTHER: &str = "other";

/// What one transaction adds to a label set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    pub requests: u64,
    pub tokens: Classes,
}

pub(super) type TupleKey = (HomeId, Arc<str>, Arc<str>, Role);

impl Applier {
    /// The label set of a request; past the cap, its home's `other`.
    pub(super) fn tuple(&mut self, c: &Connection, key: TupleKey, now_ms: i64) -> Result<i64, StoreError> {
        if let Some(id) = self.tuples.get(&key) {
            return Ok(*id);
        }
        let (home, project, model, role) = &key;
        let id = match find(c, *home, project, model, role.as_str())? {
            Some(id) => id,
            None if count(c, *home)? < self.max_tuples => {
                self.insert(c, *home, project, model, role.as_str(), now_ms)?
            }
            None => {
                let other = match find(c, *home, OTHER, OTHER, OTHER)? {
                    Some(id) => id,
                    None => self.insert(c, *home, OTHER, OTHER, OTHER, now_ms)?,
                };
                self.overflow.insert(other);
                other
            }
        };
        self.tuples.insert(key, id);
        Ok(id)
    }

    fn insert(
        &self,
        c: &Connection,
        home: HomeId,
        project: &str,
        model: &str,
        role: &str,
        now_ms: i64,
    ) -> Result<i64, StoreError> {
        // What a first import brings is history, not spend: it was never at 0.
        c.execute(
            "INSERT INTO tuples (home_id, project, model, role, born_at)
             SELECT ?1, ?2, ?3, ?4, CASE WHEN imported_at IS NULL THEN NULL ELSE ?5 END FROM homes WHERE id = ?1",
            params![home.0, project, model, role, now_ms],
        )?;
        Ok(c.last_insert_rowid())
    }

    /// Adds a request, or what a revision raised, to a label set.
    pub(super) fn grow(&mut self, tuple: i64, requests: u64, tokens: &Classes) {
        let growth = self.growth.entry(tuple).or_default();
        growth.requests += requests;
        growth.tokens.add(tokens);
        if self.overflow.contains(&tuple) {
            self.count(LABEL_OVERFLOW, "", requests);
        }
    }

    /// Writes what this transaction added.
    pub(super) fn flush_tuples(&mut self, c: &Connection) -> Result<(), StoreError> {
        let mut read = c.prepare_cached(
            "SELECT requests, uncached_input, cached_input, tool_input, output, thoughts FROM tuples WHERE id = ?1",
        )?;
        let mut write = c.prepare_cached(
            "UPDATE tuples SET requests = ?2, uncached_input = ?3, cached_input = ?4, tool_input = ?5,
                               output = ?6, thoughts = ?7 WHERE id = ?1",
        )?;
        for (id, growth) in self.growth.drain() {
            let was: [i64; 6] = read.query_row([id], |row| {
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?])
            })?;
            let t = &growth.tokens;
            let more =
                [growth.requests, t.uncached_input, t.cached_input, t.tool_input, t.output, t.thoughts];
            // Saturating: SQLite would turn an overflow into a float.
            let mut is = was.into_iter().zip(more).map(|(was, more)| was.saturating_add(clamp(more)));
            let mut next = || is.next().expect("six columns");
            write.execute(params![id, next(), next(), next(), next(), next(), next()])?;
        }
        Ok(())
    }
}

/// A count as SQLite holds it.
pub(super) fn clamp(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn find(
    c: &Connection,
    home: HomeId,
    project: &str,
    model: &str,
    role: &str,
) -> Result<Option<i64>, StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT id FROM tuples WHERE home_id = ?1 AND project = ?2 AND model = ?3 AND role = ?4",
    )?;
    Ok(statement.query_row(params![home.0, project, model, role], |row| row.get(0)).optional()?)
}

fn count(c: &Connection, home: HomeId) -> Result<u64, StoreError> {
    let mut statement = c.prepare_cached("SELECT count(*) FROM tuples WHERE home_id = ?1 AND role <> ?2")?;
    Ok(statement.query_row(params![home.0, OTHER], |row| row.get::<_, i64>(0))?.unsigned_abs())
}
