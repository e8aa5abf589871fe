//! From the spools of front doors into the ledger.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::ledger::doors::{EventKind, SpoolCursor, SpoolStep};
use crate::sources::journal::scan::Closed;
use crate::sources::spool::{Seen, SpoolSource};
use crate::store::{StoreError, Writer};

/// The ledger's word on a spool that another process read.
pub(super) type StaleSpool = (Arc<str>, SpoolCursor);

/// The spool directory, connected to a ledger's writer.
pub(super) struct Spools {
    source: SpoolSource,
    stale: Receiver<StaleSpool>,
    /// How far each was handed over.
    held: HashMap<Arc<str>, SpoolCursor>,
    expired_at: i64,
}

/// Old spools are looked for so often, ms.
const EXPIRE_EVERY: i64 = 60 * 60 * 1000;

impl Spools {
    /// With the sender that the writer tells stale spools to.
    pub(super) fn new(dir: std::path::PathBuf, known: Vec<StaleSpool>) -> (Self, Sender<StaleSpool>) {
        let (sender, stale) = channel();
        let held = known.iter().cloned().collect();
        (Self { source: SpoolSource::new(dir, known), stale, held, expired_at: 0 }, sender)
    }

    /// Hands over what is new. Spools whose process ended a week ago, and that
    /// were handed over whole long before, are deleted.
    pub(super) fn scan(&mut self, writer: &Writer, now_ms: i64) -> Result<Seen, Closed> {
        if now_ms - self.expired_at >= EXPIRE_EVERY {
            self.expired_at = now_ms;
            self.source.expire(now_ms, self.held.iter().map(|(name, cursor)| (name.clone(), *cursor)));
        }
        let held = &mut self.held;
        self.source.scan(now_ms, &mut |step| {
            held.insert(step.name.clone(), SpoolCursor { offset: step.to, ended: step.ended });
            writer.spool(resolved(step)).map_err(|_: StoreError| Closed)
        })
    }

    /// Takes the ledger's word on spools that another process read.
    pub(super) fn take_stale(&mut self) -> bool {
        let mut any = false;
        while let Ok((name, cursor)) = self.stale.try_recv() {
            self.held.insert(name.clone(), cursor);
            self.source.reset(name, cursor);
            any = true;
        }
        any
    }

    pub(super) fn dir(&self) -> &std::path::Path {
        self.source.dir()
    }
}

/// Homes by their canonical path: two spellings are one home.
fn resolved(mut step: SpoolStep) -> SpoolStep {
    for event in &mut step.events {
        if let EventKind::ProcessStarted { home: Some(home), .. } = &mut event.kind
            && let Ok(path) = std::fs::canonicalize(&*home)
        {
            *home = path.to_string_lossy().into_owned();
        }
    }
    step
}
