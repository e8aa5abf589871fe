//! The first import into an empty ledger: rows in reading order, indexes when
//! it is done. Until then the keys of all requests are remembered instead.

use std::collections::HashMap;

use rusqlite::Connection;

use super::StoreError;

/// The indexes that only pay once the rows are there.
const INDEXES: &str = "CREATE INDEX IF NOT EXISTS requests_by_key ON requests (key);
     CREATE INDEX IF NOT EXISTS requests_by_session ON requests (session_id);";

/// So many keys are remembered; a larger import goes on with the indexes.
const MAX_KEYS: usize = 300_000;

/// The keys of every request in the ledger with their rows, while it has no index.
pub(super) struct Fresh {
    rows: HashMap<i64, i64>,
    /// SQLite's count of what other connections committed.
    version: i64,
}

impl Fresh {
    /// For a ledger without a request; one that has some gets its indexes.
    pub(super) fn of(c: &Connection) -> Result<Option<Self>, StoreError> {
        let empty: bool = c.query_row("SELECT NOT EXISTS (SELECT 1 FROM requests)", [], |row| row.get(0))?;
        if !empty {
            c.execute_batch(INDEXES)?;
            return Ok(None);
        }
        Ok(Some(Self { rows: HashMap::new(), version: version(c)? }))
    }

    /// Whether nobody else wrote: then the keys are all there are. Asked inside
    /// the transaction that relies on it.
    pub(super) fn still_alone(&self, c: &Connection) -> Result<bool, StoreError> {
        Ok(version(c)? == self.version && self.rows.len() < MAX_KEYS)
    }

    /// The row of the request with this key, if there is one.
    pub(super) fn row(&self, key: i64) -> Option<i64> {
        self.rows.get(&key).copied()
    }

    /// Notes a new request.
    pub(super) fn note(&mut self, key: i64, row: i64) {
        self.rows.insert(key, row);
    }

    /// Ends the import: the indexes take over.
    pub(super) fn finish(c: &Connection) -> Result<(), StoreError> {
        Ok(c.execute_batch(INDEXES)?)
    }
}

fn version(c: &Connection) -> Result<i64, StoreError> {
    Ok(c.query_row("PRAGMA data_version", [], |row| row.get(0))?)
}
