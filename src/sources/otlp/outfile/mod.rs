//! `telemetry.outfile`: the file to which Gemini CLI appends its telemetry in
//! place of sending it. Several processes may append to one file.
//!
//! Look first at [`tail`] (one look at one file), then `value` (one value).

pub mod tail;
mod value;

use std::io;
use std::path::{Path, PathBuf};

use crate::ledger::evidence::Stamp;
use crate::ledger::telemetry::{OutfileCursor, OutfileStep};
use crate::sources::journal::discover::open_regular;
use crate::sources::journal::lines::Buffer;
use crate::sources::journal::scan::Closed;
pub use tail::Limits;
use tail::{Look, Looked};

/// A response without its twin is taken as it is once the file was quiet for
/// this long, in ms.
const QUIET_MS: i64 = 5000;

/// How an outfile stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutfileState {
    /// There is no such file (yet).
    Absent,
    /// Read as far as it is written.
    Read,
    /// It cannot be read; why.
    Failed(String),
}

/// The outfiles that are read, each from where the ledger knows it.
#[derive(Debug)]
pub struct Outfiles {
    files: Vec<Outfile>,
    buffer: Buffer,
    limits: Limits,
}

#[derive(Debug)]
struct Outfile {
    path: PathBuf,
    cursor: OutfileCursor,
    /// What was looked at, and whether it was quiet then.
    seen: Option<(Stamp, bool)>,
    state: OutfileState,
}

impl Outfiles {
    /// The files with the cursors the ledger has of them, each path once.
    #[must_use]
    pub fn new(files: impl IntoIterator<Item = (PathBuf, OutfileCursor)>, limits: Limits) -> Self {
        let mut known = Self { files: Vec::new(), buffer: Buffer::default(), limits };
        for (path, cursor) in files {
            known.reset(path, cursor);
        }
        known
    }

    /// Takes the ledger's word for how far a file was read: a new one, or one
    /// that another process has read too.
    pub fn reset(&mut self, path: PathBuf, cursor: OutfileCursor) {
        let known = self.files.iter_mut().find(|file| file.path == path);
        match known {
            Some(file) => (file.cursor, file.seen) = (cursor, None),
            None => self.files.push(Outfile { path, cursor, seen: None, state: OutfileState::Absent }),
        }
    }

    /// How each file stands after the last look.
    pub fn states(&self) -> impl Iterator<Item = (&Path, &OutfileState)> {
        self.files.iter().map(|file| (file.path.as_path(), &file.state))
    }

    /// Reads what was added to any of them. A step that the ledger does not
    /// take, because it knows another cursor, is answered by [`Self::reset`].
    ///
    /// # Errors
    /// [`Closed`] where nobody takes steps any more.
    pub fn look(
        &mut self,
        now_ms: i64,
        take: &mut dyn FnMut(OutfileStep) -> Result<(), Closed>,
    ) -> Result<(), Closed> {
        for file in &mut self.files {
            file.state = match file.read(now_ms, &self.limits, &mut self.buffer, take)? {
                Ok(()) => OutfileState::Read,
                Err(error) if error.kind() == io::ErrorKind::NotFound => OutfileState::Absent,
                Err(error) => OutfileState::Failed(error.to_string()),
            };
        }
        self.buffer.shrink();
        Ok(())
    }
}

impl Outfile {
    fn read(
        &mut self,
        now_ms: i64,
        limits: &Limits,
        buffer: &mut Buffer,
        take: &mut dyn FnMut(OutfileStep) -> Result<(), Closed>,
    ) -> Result<io::Result<()>, Closed> {
        let (file, stamp) = match open_regular(&self.path) {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let quiet = now_ms - stamp.modified_ns / 1_000_000 >= QUIET_MS;
        if self.seen == Some((stamp, quiet)) {
            return Ok(Ok(()));
        }
        loop {
            let look = Look { path: &self.path, cursor: &self.cursor, len: stamp.len, quiet, limits };
            let Looked { step, more } = match look.read(&file, buffer) {
                Ok(looked) => looked,
                Err(error) => return Ok(Err(error)),
            };
            if step.to != self.cursor || step.restarted {
                self.cursor = step.to.clone();
                take(step)?;
            }
            if !more {
                self.seen = Some((stamp, quiet));
                return Ok(Ok(()));
            }
        }
    }
}
