//! Events that an orchestrator posts: what it parsed of sessions that no other
//! door sees (accounting 3, D4).
//!
//! - **In**: `POST /api/v1/events`: JSON lines, one object, or an array of objects.
//! - **Out**: [`Batch`]es to an [`Intake`]; an answer that says of each item what became of it.
//! - **Never**: take a text, keep a command, or decide what an event changes.
//! - **Look first** at [`item`] (one object, one event), then [`routes`].

mod content;
pub mod item;
pub mod routes;

pub use routes::routes;

pub use crate::ledger::doors::{Posted, PostedBatch as Batch};

/// The largest body, in bytes (accounting R72).
pub const MAX_BODY: usize = 1 << 20;

/// The most items of one body.
pub const MAX_ITEMS: usize = 1000;

/// The ledger cannot take anything now: nothing of the batch was taken, and it
/// may be posted again as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable;

/// Where posted events go.
pub trait Intake: Send + Sync + 'static {
    /// Takes a batch whole or not at all, each event once by its id, and counts
    /// what is unknown and refused. May block: it is called on a blocking thread.
    ///
    /// # Errors
    /// [`Unavailable`], with nothing taken.
    fn events(&self, batch: Batch) -> Result<Posted, Unavailable>;
}
