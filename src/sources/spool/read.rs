//! Reads the spool files of a directory, each from its cursor, in bounded steps.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::{MAX_LINE, VERSION};
use crate::ledger::doors::{DoorEvent, EventKind, SpoolCursor, SpoolStep};
use crate::ledger::evidence::Stamp;
use crate::sources::journal::discover::{open_regular, stamp};
use crate::sources::journal::lines::{Buffer, Lines, Piece};
use crate::sources::journal::scan::Closed;

/// A step ends after so many lines, or so many bytes.
const STEP_LINES: usize = 1000;
const STEP_BYTES: u64 = 1024 * 1024;

/// A process that wrote nothing for so long may be gone, in ms.
const QUIET_MS: i64 = 5000;

/// A spool goes so long after its process ended, in ms.
const KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// The first lines, among which the process must have said that it started.
const HEAD_LINES: usize = 4;

/// What a scan saw of the directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Spools whose process has not ended.
    pub open: u64,
    /// Entries that are no regular files: a link, a FIFO.
    pub skipped: u64,
    /// What could not be listed or read, with the system's words.
    pub unread: Vec<(PathBuf, String)>,
    /// Bytes that are there and were not read.
    pub lag_bytes: u64,
    /// The newest modification of any spool, unix ms.
    pub newest_ms: Option<i64>,
}

/// The spool files of one directory.
pub struct SpoolSource {
    dir: PathBuf,
    known: HashMap<Arc<str>, Known>,
    buffer: Buffer,
}

struct Known {
    cursor: SpoolCursor,
    /// The file as it was when there was nothing left to do about it.
    done: Option<Stamp>,
}

impl SpoolSource {
    /// `known` is what the ledger holds of the directory's files.
    #[must_use]
    pub fn new(dir: PathBuf, known: impl IntoIterator<Item = (Arc<str>, SpoolCursor)>) -> Self {
        let mut source = Self { dir, known: HashMap::new(), buffer: Buffer::default() };
        for (name, cursor) in known {
            source.reset(name, cursor);
        }
        source
    }

    /// Where the spools are; it may be missing.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes the ledger's word on a spool: another process moved its cursor.
    pub fn reset(&mut self, name: Arc<str>, cursor: SpoolCursor) {
        self.known.insert(name, Known { cursor, done: None });
    }

    /// Reads what is new in all files. What `sink` took counts as read.
    ///
    /// # Errors
    /// [`Closed`] where the sink takes no more.
    pub fn scan(
        &mut self,
        now_ms: i64,
        sink: &mut dyn FnMut(SpoolStep) -> Result<(), Closed>,
    ) -> Result<Seen, Closed> {
        let mut seen = Seen::default();
        let Some(files) = self.list(&mut seen) else { return Ok(seen) };
        self.known.retain(|name, _| files.contains_key(name));
        for (name, stamp) in files {
            seen.newest_ms = seen.newest_ms.max(Some(modified_ms(stamp)));
            let known = self
                .known
                .entry(name.clone())
                .or_insert(Known { cursor: SpoolCursor::default(), done: None });
            if known.done != Some(stamp) {
                let path = self.dir.join(&*name);
                match open_regular(&path) {
                    Ok((file, stamp)) => {
                        let mut look = Look { name, file, stamp, buffer: &mut self.buffer, now_ms };
                        match look.read(known, sink)? {
                            Ok(()) => {}
                            Err(error) => seen.unread.push((path, error.to_string())),
                        }
                    }
                    // It may have gone since it was listed.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => seen.unread.push((path, error.to_string())),
                }
            }
            seen.open += u64::from(!known.cursor.ended);
            seen.lag_bytes += stamp.len.saturating_sub(known.cursor.offset);
        }
        self.buffer.shrink();
        Ok(seen)
    }

    /// Deletes spools whose process ended seven days ago and of which the
    /// ledger holds everything, as `ledger` says; how many they were. Nothing
    /// else is ever deleted: not a file of another name, not one that does not
    /// begin as a spool does.
    pub fn expire(&mut self, now_ms: i64, ledger: impl IntoIterator<Item = (Arc<str>, SpoolCursor)>) -> u64 {
        let mut gone = 0;
        for (name, cursor) in ledger {
            if !cursor.ended || !is_spool_name(&name) {
                continue;
            }
            let path = self.dir.join(&*name);
            let Ok((file, stamp)) = open_regular(&path) else { continue };
            let old = now_ms - modified_ms(stamp) >= KEPT_MS;
            if old && stamp.len == cursor.offset && begins(&file, &mut self.buffer).is_some() {
                gone += u64::from(std::fs::remove_file(&path).is_ok());
            }
        }
        gone
    }

    /// The regular files of the directory that are named as spools, in the
    /// order of their names; `None` if it could not be listed.
    fn list(&self, seen: &mut Seen) -> Option<BTreeMap<Arc<str>, Stamp>> {
        let entries = match std::fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(BTreeMap::new()),
            Err(error) => {
                seen.unread.push((self.dir.clone(), error.to_string()));
                return None;
            }
        };
        let mut files = BTreeMap::new();
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if !name.ends_with(".jsonl") {
                continue;
            }
            match entry.metadata() {
                Ok(metadata) if metadata.is_file() => {
                    files.insert(name.into(), stamp(&metadata));
                }
                Ok(_) => seen.skipped += 1,
                Err(_) => {}
            }
        }
        Some(files)
    }
}

/// One look at one file.
struct Look<'a> {
    name: Arc<str>,
    file: File,
    stamp: Stamp,
    buffer: &'a mut Buffer,
    now_ms: i64,
}

impl Look<'_> {
    /// The outer error ends the source, the inner one is the file's.
    fn read(
        &mut self,
        known: &mut Known,
        sink: &mut dyn FnMut(SpoolStep) -> Result<(), Closed>,
    ) -> Result<io::Result<()>, Closed> {
        // Asked before anything is read: what a process that is gone left is all there is.
        let gone = self.process_is_gone();
        loop {
            let (step, at_end) = match self.step(known.cursor, gone) {
                Ok(step) => step,
                Err(error) => return Ok(Err(error)),
            };
            let cursor = SpoolCursor { offset: step.to, ended: step.ended };
            if cursor != known.cursor {
                sink(step)?;
                known.cursor = cursor;
            }
            if at_end {
                known.done = (gone || cursor.offset == self.stamp.len && cursor.ended).then_some(self.stamp);
                return Ok(Ok(()));
            }
        }
    }

    /// The next step, and whether it reaches the end of the file.
    fn step(&mut self, from: SpoolCursor, gone: bool) -> io::Result<(SpoolStep, bool)> {
        let mut step = SpoolStep {
            name: self.name.clone(),
            from: from.offset,
            to: from.offset,
            events: Vec::new(),
            broken: 0,
            unknown: 0,
            ended: from.ended,
        };
        let mut lines = Lines::new(&self.file, self.buffer, from.offset, MAX_LINE);
        for _ in 0..STEP_LINES {
            if step.to - step.from >= STEP_BYTES {
                break;
            }
            match lines.next_piece()? {
                Piece::Line { offset, at } => {
                    step.to = offset + at.len() as u64 + 1;
                    take(&mut step, lines.bytes(&at));
                }
                Piece::TooLong { offset, len, .. } => {
                    step.to = offset + len + 1;
                    step.broken += 1;
                }
                Piece::Tail { offset, at } => {
                    // Nobody will end this line any more.
                    if gone && !at.is_empty() {
                        step.to = offset + at.len() as u64;
                        take(&mut step, lines.bytes(&at));
                    }
                    return Ok((self.end(step, gone), true));
                }
                Piece::LongTail { offset, len, .. } => {
                    if gone {
                        step.to = offset + len;
                        step.broken += 1;
                    }
                    return Ok((self.end(step, gone), true));
                }
            }
        }
        Ok((step, false))
    }

    /// Ends a spool whose process is gone and could not say so itself: killed,
    /// or its last words lost. What never said that it started has no process.
    fn end(&mut self, mut step: SpoolStep, gone: bool) -> SpoolStep {
        if gone && !step.ended {
            step.ended = true;
            if begins(&self.file, self.buffer).is_some() {
                let kind = EventKind::ProcessEnded { exit: None };
                step.events.push(DoorEvent { at: modified_ms(self.stamp), kind });
            }
        }
        step
    }

    fn process_is_gone(&mut self) -> bool {
        self.now_ms - modified_ms(self.stamp) >= QUIET_MS && !self.process_lives()
    }

    /// Its writer holds a lock on the file; where locks do not work its id must do.
    #[cfg(unix)]
    fn process_lives(&mut self) -> bool {
        use std::fs::TryLockError;
        match self.file.try_lock_shared() {
            Ok(()) => {
                let _ = self.file.unlock();
                false
            }
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(_)) => {
                let pid = begins(&self.file, self.buffer).and_then(|pid| i32::try_from(pid).ok());
                let pid = pid.and_then(rustix::process::Pid::from_raw);
                pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
            }
        }
    }

    /// No lock is held there, as it would keep readers out: a day must do.
    #[cfg(not(unix))]
    fn process_lives(&mut self) -> bool {
        self.now_ms - modified_ms(self.stamp) < 24 * 60 * 60 * 1000
    }
}

/// Takes one line into a step.
fn take(step: &mut SpoolStep, line: &[u8]) {
    match decode(line) {
        Decoded::Event(event) => {
            step.ended |= matches!(event.kind, EventKind::ProcessEnded { .. });
            step.events.push(*event);
        }
        Decoded::Unknown => step.unknown += 1,
        Decoded::Broken => step.broken += 1,
        Decoded::Blank => {}
    }
}

enum Decoded {
    Event(Box<DoorEvent>),
    /// Of a kind or a version that this build does not know.
    Unknown,
    Broken,
    Blank,
}

fn decode(line: &[u8]) -> Decoded {
    #[derive(Deserialize)]
    struct Head<'a> {
        v: u64,
        #[serde(borrow)]
        kind: Cow<'a, str>,
    }
    if line.trim_ascii().is_empty() {
        return Decoded::Blank;
    }
    let Ok(head) = serde_json::from_slice::<Head<'_>>(line) else { return Decoded::Broken };
    if head.v > VERSION || !EventKind::NAMES.contains(&&*head.kind) {
        return Decoded::Unknown;
    }
    match serde_json::from_slice(line) {
        Ok(event) if head.v == VERSION => Decoded::Event(Box::new(event)),
        _ => Decoded::Broken,
    }
}

/// The id of the process that a spool begins with. Its line may stand behind
/// one that a full disk tore.
fn begins(file: &File, buffer: &mut Buffer) -> Option<u32> {
    let mut lines = Lines::new(file, buffer, 0, MAX_LINE);
    for _ in 0..HEAD_LINES {
        let (Piece::Line { at, .. } | Piece::Tail { at, .. }) = lines.next_piece().ok()? else { continue };
        if let Decoded::Event(event) = decode(lines.bytes(&at)) {
            return match event.kind {
                EventKind::ProcessStarted { pid, .. } => Some(pid),
                _ => None,
            };
        }
    }
    None
}

/// Whether a name is one that [`super::fresh_name`] makes.
fn is_spool_name(name: &str) -> bool {
    let Some(id) = name.strip_suffix(".jsonl") else { return false };
    let hex = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let parts: Vec<&str> = id.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.into_iter().all(hex)
}

fn modified_ms(stamp: Stamp) -> i64 {
    stamp.modified_ns / 1_000_000
}

#[cfg(test)]
mod tests;
