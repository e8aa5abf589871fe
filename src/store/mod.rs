//! The ledger's database: the only room that names SQLite.
//!
//! - **In**: journal steps, projects, polls and refusals from the sources, through
//!   one writer thread.
//! - **Out**: read models ([`read`]) on short read-only transactions.
//! - **Never**: decide what a figure means (it asks `ledger`), or hold a
//!   transaction while it waits for anything else.
//! - **Look first** at `migrations/`, then [`apply`] (a step becomes rows), then [`read`].

mod apply;
pub mod counter_names;
mod doors;
mod error;
mod facts;
mod fresh;
mod home_counters;
mod hooks;
mod journals;
mod names;
mod open;
mod ownership;
pub mod pricing;
mod quota;
pub mod read;
mod requests;
mod settle;
mod telemetry;
mod tuples;
mod turns;
pub mod writer;

pub use error::StoreError;
pub use open::{Access, SCHEMA_VERSION, check, open_reader, schema_version};
pub use writer::{Stale, Writer, WriterSettings};
