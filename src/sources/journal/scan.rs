//! The scan: what is there, what changed, what is gone. It alone decides;
//! events of the file system only make it look sooner (architecture, house
//! rules 3 and 4).

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use super::discover::{self, Entry};
use super::lines::Buffer;
use super::name::{self, Format, Name};
use super::project::Projects;
use super::{Limits, held::Held};
use crate::ledger::evidence::{
    Condition, Cursor, Failure, HomeId, JournalPath, JournalStep, ProjectFact, Stamp,
};

/// Takes what the source finds, in order; blocks while the ledger is behind.
pub trait Sink {
    /// # Errors
    /// [`Closed`] where nobody takes evidence any more.
    fn project(&mut self, fact: ProjectFact) -> Result<(), Closed>;
    /// # Errors
    /// [`Closed`] where nobody takes evidence any more.
    fn step(&mut self, step: JournalStep) -> Result<(), Closed>;
}

/// The ledger takes no more evidence: the process is stopping.
#[derive(Debug, thiserror::Error)]
#[error("the ledger takes no more evidence")]
pub struct Closed;

/// What a scan saw of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeHealth {
    pub home: HomeId,
    /// Whether a `.gemini` is there.
    pub present: bool,
    /// Directories that could not be listed, with the system's words.
    pub unread: Vec<(PathBuf, String)>,
}

/// What a scan saw.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub homes: Vec<HomeHealth>,
    /// Bytes that are there and were not read.
    pub lag_bytes: u64,
    /// The newest modification of any journal, unix ms.
    pub newest_ms: Option<i64>,
    /// Directories whose changes matter.
    pub watch: Vec<PathBuf>,
}

pub(super) struct Home {
    id: HomeId,
    gemini: PathBuf,
    projects: Projects,
}

pub(super) struct Known {
    pub(super) name: Name,
    pub(super) cursor: Cursor,
    pub(super) condition: Condition,
    pub(super) scan: u64,
}

/// What a journal that is there asks for.
enum Wants {
    Look,
    /// Nothing changed, but its descriptor is to be held.
    Hold,
    Nothing,
}

/// What a scan found to do, with the time of each journal's last change.
#[derive(Default)]
struct Queue {
    look: Vec<(JournalPath, i64)>,
    hold: Vec<(JournalPath, i64)>,
}

impl Queue {
    /// The newest first: who is working now waits for nobody's history. Only
    /// as many unchanged ones as there is room to hold.
    fn in_order(mut self, room: usize) -> VecDeque<JournalPath> {
        let newest_first = |(_, modified): &(JournalPath, i64)| std::cmp::Reverse(*modified);
        self.hold.sort_by_key(newest_first);
        self.hold.truncate(room);
        self.look.extend(self.hold);
        self.look.sort_by_key(newest_first);
        self.look.into_iter().map(|(path, _)| path).collect()
    }
}

/// The journals of all homes.
pub struct JournalSource {
    pub(super) homes: Vec<Home>,
    pub(super) limits: Limits,
    pub(super) known: HashMap<JournalPath, Known>,
    pub(super) held: Held,
    pub(super) buffer: Buffer,
    pub(super) scan: u64,
}

impl JournalSource {
    /// `homes` are directories that hold a `.gemini`; `known` is what the
    /// ledger holds of their journals.
    #[must_use]
    pub fn new(
        homes: impl IntoIterator<Item = (HomeId, PathBuf)>,
        limits: Limits,
        known: impl IntoIterator<Item = (JournalPath, Cursor, Condition)>,
    ) -> Self {
        let homes = homes.into_iter().map(|(id, path)| Home {
            id,
            gemini: path.join(".gemini"),
            projects: Projects::default(),
        });
        let mut source = Self {
            homes: homes.collect(),
            limits,
            known: HashMap::new(),
            held: Held::default(),
            buffer: Buffer::default(),
            scan: 0,
        };
        for (path, cursor, condition) in known {
            source.reset(path, cursor, condition);
        }
        source
    }

    /// Takes the ledger's word on a journal: another process moved its cursor.
    pub fn reset(&mut self, path: JournalPath, cursor: Cursor, condition: Condition) {
        if let Some(name) = name::of_path(&path.file).or_else(|| skipped_name(condition)) {
            // A file that is gone was read from another cursor: it is read out again.
            let condition = if self.held.recall(&path) { Condition::Behind } else { condition };
            self.known.insert(path, Known { name, cursor, condition, scan: self.scan });
        }
    }

    /// Looks at everything.
    ///
    /// # Errors
    /// [`Closed`] where the sink takes no more.
    pub fn scan(&mut self, now_ms: i64, sink: &mut dyn Sink) -> Result<Seen, Closed> {
        self.scan += 1;
        let mut seen = Seen::default();
        let mut queue = Queue::default();
        for index in 0..self.homes.len() {
            self.scan_home(index, now_ms, &mut queue, &mut seen, sink)?;
        }
        let queue = queue.in_order(self.held.room());
        self.look_at(queue, now_ms, sink)?;
        seen.lag_bytes = self.lag_bytes();
        self.held.expire(now_ms);
        self.buffer.shrink();
        Ok(seen)
    }

    /// Looks at what a file-system event named, if it is a journal known to be
    /// there; `true` where only a scan can tell what happened.
    ///
    /// # Errors
    /// [`Closed`] where the sink takes no more.
    pub fn hint(&mut self, path: &Path, now_ms: i64, sink: &mut dyn Sink) -> Result<bool, Closed> {
        match self.place(path) {
            Place::Journal(journal) if self.known.contains_key(&journal) => {
                if std::fs::symlink_metadata(path).is_err() {
                    return Ok(true);
                }
                self.look_at(VecDeque::from([journal]), now_ms, sink)?;
                Ok(false)
            }
            Place::Elsewhere => Ok(false),
            Place::Journal(_) | Place::Unknown => Ok(true),
        }
    }

    /// Bytes known to be there and not read.
    #[must_use]
    pub fn lag_bytes(&self) -> u64 {
        let unread = |known: &Known| match known.condition {
            Condition::Behind | Condition::Pending => {
                known.cursor.seen.len.saturating_sub(known.cursor.offset)
            }
            _ => 0,
        };
        self.known.values().map(unread).sum()
    }

    fn scan_home(
        &mut self,
        index: usize,
        now_ms: i64,
        queue: &mut Queue,
        seen: &mut Seen,
        sink: &mut dyn Sink,
    ) -> Result<(), Closed> {
        let home = &mut self.homes[index];
        let id = home.id;
        let listing = discover::list(&home.gemini);
        home.projects.refresh(&home.gemini);
        for (dir, path) in &listing.projects {
            if let Some(fact) = home.projects.fact(id, dir, path) {
                sink.project(fact)?;
            }
        }
        for found in listing.found {
            let path = JournalPath { home: id, project_dir: found.project_dir, file: found.file.into() };
            match found.entry {
                Entry::Skipped(skip) => self.skipped(path, skip, sink)?,
                Entry::Journal(name, stamp) => {
                    let modified = stamp.modified_ns / 1_000_000;
                    seen.newest_ms = seen.newest_ms.max(Some(modified));
                    match self.wants(&path, name, stamp, now_ms) {
                        Wants::Look => queue.look.push((path, modified)),
                        Wants::Hold => queue.hold.push((path, modified)),
                        Wants::Nothing => {}
                    }
                }
            }
        }
        self.vanished(id, &self.homes[index].gemini.clone(), &listing.unread, now_ms, sink)?;
        let gemini = &self.homes[index].gemini;
        let present = gemini.is_dir();
        // Only what the next event can come from: a home directory is a busy place.
        if !present {
            seen.watch.extend(gemini.parent().map(Path::to_owned));
        } else if listing.watch.is_empty() {
            seen.watch.push(gemini.clone());
        }
        seen.watch.extend(listing.watch);
        let unread = listing.unread.into_iter().map(|(path, error)| (path, error.to_string())).collect();
        seen.homes.push(HomeHealth { home: id, present, unread });
        Ok(())
    }

    /// Notes that a journal is there and says whether it must be looked at.
    fn wants(&mut self, path: &JournalPath, name: Name, stamp: Stamp, now_ms: i64) -> Wants {
        let Some(known) = self.known.get_mut(path) else {
            let (cursor, condition, scan) = (Cursor::default(), Condition::Behind, self.scan);
            let cursor = Cursor { seen: Stamp { len: stamp.len, ..Stamp::default() }, ..cursor };
            self.known.insert(path.clone(), Known { name, cursor, condition, scan });
            return Wants::Look;
        };
        known.scan = self.scan;
        let modified_ms = stamp.modified_ns / 1_000_000;
        let quiet = now_ms - modified_ms >= self.limits.quiet_ms;
        let look = stamp != known.cursor.seen
            || match known.condition {
                Condition::Pending => quiet,
                Condition::Read | Condition::Torn => false,
                Condition::Failed(Failure::Permission | Failure::Io) => true,
                // The cap may be higher now than when it was met.
                Condition::Failed(Failure::TooLarge) => stamp.len <= self.limits.max_file_bytes,
                Condition::Failed(Failure::LineTooLong | Failure::NotJson) => false,
                Condition::Behind | Condition::Gone | Condition::Lost | Condition::Skipped(_) => true,
            };
        match look {
            true => Wants::Look,
            // After a start nothing is held, and the next thing may be its end.
            false if self.held.wants(path, modified_ms, now_ms) => Wants::Hold,
            false => Wants::Nothing,
        }
    }

    /// Journals that a scan did not find any more.
    fn vanished(
        &mut self,
        home: HomeId,
        gemini: &Path,
        unread: &[(PathBuf, io::Error)],
        now_ms: i64,
        sink: &mut dyn Sink,
    ) -> Result<(), Closed> {
        let tmp = gemini.join("tmp");
        let gone = |path: &JournalPath, known: &Known| {
            path.home == home
                && known.scan != self.scan
                && !matches!(known.condition, Condition::Gone | Condition::Lost)
                && !unread.iter().any(|(dir, _)| real_path(&tmp, path).starts_with(dir))
        };
        let mut gone: Vec<_> = self
            .known
            .iter()
            .filter(|(path, known)| gone(path, known))
            .map(|(path, _)| path.clone())
            .collect();
        gone.sort();
        for path in gone {
            self.vanish(&path, now_ms, sink)?;
        }
        Ok(())
    }

    pub(super) fn real_path(&self, path: &JournalPath) -> Option<PathBuf> {
        let home = self.homes.iter().find(|home| home.id == path.home)?;
        Some(real_path(&home.gemini.join("tmp"), path))
    }

    /// What a path is, by its place alone.
    fn place(&self, path: &Path) -> Place {
        for home in &self.homes {
            let Ok(below) = path.strip_prefix(home.gemini.join("tmp")) else { continue };
            let Some(below) = below.to_str() else { return Place::Unknown };
            let mut parts = below.splitn(3, '/');
            return match (parts.next(), parts.next(), parts.next()) {
                (Some(dir), Some("chats"), Some(file)) => match name::of_path(file) {
                    Some(_) => Place::Journal(JournalPath {
                        home: home.id,
                        project_dir: dir.into(),
                        file: file.into(),
                    }),
                    None => Place::Unknown,
                },
                (Some(_), Some("chats" | ".project_root"), None) | (Some(_), None, None) => Place::Unknown,
                // The CLI's logs, checkpoints and tool outputs.
                _ => Place::Elsewhere,
            };
        }
        Place::Unknown
    }
}

/// Where a path lies.
enum Place {
    Journal(JournalPath),
    /// Below `tmp`, where no journal can be.
    Elsewhere,
    Unknown,
}

fn real_path(tmp: &Path, path: &JournalPath) -> PathBuf {
    tmp.join(&*path.project_dir).join("chats").join(&*path.file)
}

pub(super) fn no_name() -> Name {
    Name { format: Format::Jsonl, id_part: String::new(), minute: 0, parent: None }
}

/// Skipped entries need no journal's name.
fn skipped_name(condition: Condition) -> Option<Name> {
    matches!(condition, Condition::Skipped(_)).then(no_name)
}
