//! Counters of a home by up to two labels: they only grow (accounting R69).

use rusqlite::{Connection, params};

use super::StoreError;
use super::apply::Applier;
use super::tuples::clamp;
use crate::ledger::evidence::HomeId;

/// Home, counter and its two labels.
pub(super) type HomeCounter = (HomeId, &'static str, String, String);

impl Applier {
    /// Adds to a counter of a home; nothing makes no row.
    pub(super) fn count_home(
        &mut self,
        home: HomeId,
        name: &'static str,
        first: &str,
        second: &str,
        by: u64,
    ) {
        if by > 0 {
            *self.home_counts.entry((home, name, first.to_owned(), second.to_owned())).or_default() += by;
        }
    }

    /// Writes what this transaction added.
    pub(super) fn flush_home_counts(&mut self, c: &Connection, now_ms: i64) -> Result<(), StoreError> {
        if self.home_counts.is_empty() {
            return Ok(());
        }
        let mut add = c.prepare_cached(
            "INSERT INTO home_counters (home_id, name, first, second, value, born_at)
             SELECT ?1, ?2, ?3, ?4, ?5, CASE WHEN imported_at IS NULL THEN NULL ELSE ?6 END FROM homes WHERE id = ?1
             ON CONFLICT (home_id, name, first, second) DO UPDATE SET value = value + excluded.value",
        )?;
        for ((home, name, first, second), value) in self.home_counts.drain() {
            add.execute(params![home.0, name, first, second, clamp(value), now_ms])?;
        }
        Ok(())
    }
}
