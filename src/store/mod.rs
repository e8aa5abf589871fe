//! The ledger's database: the only room that names SQLite.
//!
//! - **In**: journal steps and projects from the sources, through one writer thread.
//! - **Out**: read models ([`read`]) on short read-only transactions.
//! - **Never**: decide what a figure means (it asks `ledger`), or hold a
//!   transaction while it waits for anything else.
//! - **Look first** at `migrations/`, then [`apply`] (a step becomes rows), then [`read`].

pub mod counter_names;
pub mod read;

/// What can go wrong with the ledger's file, in the user's words.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the ledger could not be read or written: {0}")]
    Sqlite(#[from] rusqlite::Error),
}
