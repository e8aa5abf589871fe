//! Open descriptors of journals that were written to lately. After an unlink
//! the rest of the file is still readable through them (architecture, house
//! rule 4).

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::discover::stamp;
use crate::ledger::evidence::{JournalPath, Stamp};

/// At most so many are held; the one that was longest not written to goes first.
const MAX: usize = 64;

/// A journal that was not written to for this long is let go, in ms.
const IDLE_MS: i64 = 15 * 60 * 1000;

/// A file that was read out after it lost its name is kept for this long, in
/// ms: until the ledger has said that what was read of it counts.
const DRAINED_MS: i64 = 60 * 1000;

#[derive(Debug, Default)]
pub struct Held {
    files: HashMap<JournalPath, Entry>,
    drained: Vec<Drained>,
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    file: Arc<File>,
    modified_ms: i64,
    used: u64,
}

/// A file that was released.
#[derive(Debug)]
struct Drained {
    path: JournalPath,
    file: Arc<File>,
    at_ms: i64,
    /// What was read of it was refused.
    again: bool,
}

impl Held {
    /// The held file of a journal, if it still is the one at `real`.
    pub fn same(&mut self, path: &JournalPath, real: &Path) -> Option<(Arc<File>, Stamp)> {
        let entry = self.files.get_mut(path)?;
        let held = stamp(&entry.file.metadata().ok()?);
        let there = stamp(&std::fs::symlink_metadata(real).ok()?);
        if (held.device, held.inode) != (there.device, there.inode) {
            return None;
        }
        self.uses += 1;
        entry.used = self.uses;
        Some((entry.file.clone(), held))
    }

    /// How many more can be held.
    #[must_use]
    pub fn room(&self) -> usize {
        MAX.saturating_sub(self.files.len())
    }

    /// Whether a journal written to at that time is to be held and is not.
    #[must_use]
    pub fn wants(&self, path: &JournalPath, modified_ms: i64, now_ms: i64) -> bool {
        now_ms - modified_ms <= IDLE_MS && self.files.len() < MAX && !self.files.contains_key(path)
    }

    /// Takes a journal's file out, to be read to its end.
    pub fn release(&mut self, path: &JournalPath, now_ms: i64) -> Option<Arc<File>> {
        let file = self.files.remove(path)?.file;
        if self.drained.len() == MAX {
            self.drained.remove(0);
        }
        self.drained.push(Drained { path: path.clone(), file: file.clone(), at_ms: now_ms, again: false });
        Some(file)
    }

    /// Notes that what was read of a journal's released files was refused;
    /// `true` if there are any.
    pub fn recall(&mut self, path: &JournalPath) -> bool {
        let mut any = false;
        for drained in self.drained.iter_mut().filter(|drained| drained.path == *path) {
            (drained.again, any) = (true, true);
        }
        any
    }

    /// The released files to be read again, each once.
    pub fn recalled(&mut self, path: &JournalPath) -> Vec<Arc<File>> {
        let again = self.drained.iter_mut().filter(|drained| drained.again && drained.path == *path);
        again
            .map(|drained| {
                drained.again = false;
                drained.file.clone()
            })
            .collect()
    }

    /// Whether a file was written to lately.
    pub fn is_recent(stamp: Stamp, now_ms: i64) -> bool {
        now_ms - stamp.modified_ns / 1_000_000 <= IDLE_MS
    }

    /// Keeps a journal's file open, if it was written to lately.
    pub fn hold(&mut self, path: &JournalPath, file: Arc<File>, stamp: Stamp, now_ms: i64) {
        if !Self::is_recent(stamp, now_ms) {
            self.files.remove(path);
            return;
        }
        let modified_ms = stamp.modified_ns / 1_000_000;
        self.uses += 1;
        self.files.insert(path.clone(), Entry { file, modified_ms, used: self.uses });
        if self.files.len() > MAX
            && let Some(oldest) = self
                .files
                .iter()
                .min_by_key(|(_, entry)| (entry.modified_ms, entry.used))
                .map(|(p, _)| p.clone())
        {
            self.files.remove(&oldest);
        }
    }

    /// Lets go of journals that became idle.
    pub fn expire(&mut self, now_ms: i64) {
        self.files.retain(|_, entry| now_ms - entry.modified_ms <= IDLE_MS);
        self.drained.retain(|drained| now_ms - drained.at_ms <= DRAINED_MS);
    }
}
