//! What hooks were told, so that a restart does not tell it again.

use rusqlite::{Connection, params};

use super::StoreError;
use super::read::{Reader, Snapshot};
use crate::ledger::budget::Firing;

impl Reader {
    /// A number that changes when another connection, of whichever process,
    /// commits; looking at it costs nothing.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn version(&self) -> Result<i64, StoreError> {
        Ok(self.connection.query_row("PRAGMA data_version", [], |row| row.get(0))?)
    }
}

impl Snapshot<'_> {
    /// Whether that was told already, or given up.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn has_fired(&self, firing: &Firing) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM budget_hooks
             WHERE budget = ?1 AND period = ?2 AND starts = ?3 AND threshold = ?4 AND hook = ?5)";
        let mut statement = self.tx.prepare_cached(sql)?;
        let key = params![
            firing.budget,
            firing.period.as_str(),
            firing.starts,
            firing.threshold.millionths(),
            firing.hook.as_str()
        ];
        Ok(statement.query_row(key, |row| row.get(0))?)
    }
}

/// Notes that something was told, or given up.
pub(super) fn note(c: &Connection, firing: &Firing, delivered: bool, now_ms: i64) -> Result<(), StoreError> {
    c.execute(
        "INSERT OR IGNORE INTO budget_hooks (budget, period, starts, threshold, hook, at, delivered)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            firing.budget,
            firing.period.as_str(),
            firing.starts,
            firing.threshold.millionths(),
            firing.hook.as_str(),
            now_ms,
            delivered
        ],
    )?;
    Ok(())
}
