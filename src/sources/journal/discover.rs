//! What is there: project directories, journals and subagents' journals of one
//! home, two levels deep, following no link (accounting R12, R46, R73).

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::name::{self, Kind, Name};
use crate::ledger::evidence::{Skip, Stamp};
use crate::ledger::project::is_hash;

/// A journal, or what looks like one.
#[derive(Debug)]
pub struct Found {
    pub project_dir: Arc<str>,
    /// The path below `chats`.
    pub file: String,
    pub entry: Entry,
}

#[derive(Debug)]
pub enum Entry {
    Journal(Name, Stamp),
    Skipped(Skip),
}

/// What one home holds.
#[derive(Debug, Default)]
pub struct Listing {
    pub projects: Vec<(Arc<str>, PathBuf)>,
    pub found: Vec<Found>,
    /// Directories whose changes matter.
    pub watch: Vec<PathBuf>,
    /// Directories that could not be listed: what they hold is unknown, not gone.
    pub unread: Vec<(PathBuf, io::Error)>,
}

/// Lists the journals below `<gemini>/tmp`.
#[must_use]
pub fn list(gemini: &Path) -> Listing {
    let mut listing = Listing::default();
    let tmp = gemini.join("tmp");
    listing.entries(&tmp, |listing, entry, name| {
        let Ok(kind) = entry.file_type() else { return };
        if kind.is_dir() {
            listing.project(name.into(), entry.path());
        } else if kind.is_symlink() && entry.path().join("chats").is_dir() {
            listing.found.push(Found {
                project_dir: name.into(),
                file: String::new(),
                entry: Entry::Skipped(Skip::Symlink),
            });
        }
    });
    // Slugs before hashes: names are given in this order, once.
    listing.projects.sort_by(|(a, _), (b, _)| (is_hash(a), a).cmp(&(is_hash(b), b)));
    listing
}

impl Listing {
    /// Calls `each` for the entries of a directory that has a UTF-8 name.
    fn entries(&mut self, dir: &Path, mut each: impl FnMut(&mut Self, &fs::DirEntry, &str)) {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                self.unread.push((dir.to_owned(), error));
                return;
            }
        };
        self.watch.push(dir.to_owned());
        for entry in entries {
            match entry {
                Ok(entry) => {
                    if let Some(name) = entry.file_name().to_str() {
                        each(self, &entry, name);
                    }
                }
                Err(error) => {
                    self.unread.push((dir.to_owned(), error));
                    return;
                }
            }
        }
    }

    fn project(&mut self, dir: Arc<str>, path: PathBuf) {
        let chats = path.join("chats");
        self.watch.push(path.clone());
        self.projects.push((dir.clone(), path));
        if fs::symlink_metadata(&chats).is_ok_and(|m| m.is_symlink()) {
            self.skip(&dir, String::new(), Skip::Symlink);
            return;
        }
        self.entries(&chats, |listing, entry, file| match name::main(file) {
            Kind::Journal(name) => listing.journal(&dir, file.to_owned(), name, entry),
            Kind::Temporary => listing.skip(&dir, file.to_owned(), Skip::Temporary),
            Kind::Foreign if entry.file_type().is_ok_and(|kind| kind.is_dir()) => {
                listing.subagents(&dir, file, &entry.path());
            }
            Kind::Foreign => {}
        });
    }

    fn subagents(&mut self, dir: &Arc<str>, parent: &str, path: &Path) {
        self.entries(path, |listing, entry, file| {
            let below = format!("{parent}/{file}");
            match name::subagent(parent, file) {
                Kind::Journal(name) => listing.journal(dir, below, name, entry),
                Kind::Temporary => listing.skip(dir, below, Skip::Temporary),
                Kind::Foreign => {}
            }
        });
    }

    fn journal(&mut self, dir: &Arc<str>, file: String, name: Name, entry: &fs::DirEntry) {
        // Gone since it was listed: nothing to say.
        let Ok(metadata) = entry.metadata() else { return };
        if metadata.is_symlink() {
            self.skip(dir, file, Skip::Symlink);
        } else if !metadata.is_file() {
            self.skip(dir, file, Skip::NotRegular);
        } else {
            let entry = Entry::Journal(name, stamp(&metadata));
            self.found.push(Found { project_dir: dir.clone(), file, entry });
        }
    }

    fn skip(&mut self, dir: &Arc<str>, file: String, skip: Skip) {
        self.found.push(Found { project_dir: dir.clone(), file, entry: Entry::Skipped(skip) });
    }
}

/// Opens a regular file for reading, following no link at its end and waiting
/// for no writer of a FIFO.
///
/// # Errors
/// What the system says; [`io::ErrorKind::InvalidInput`] for anything but a regular file.
pub fn open_regular(path: &Path) -> io::Result<(File, Stamp)> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok((file, stamp(&metadata)))
}

/// Whether opening failed because the last element is a link.
#[must_use]
pub fn is_link_refused(error: &io::Error) -> bool {
    #[cfg(unix)]
    return error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    #[cfg(not(unix))]
    return false;
}

/// The metadata that tells a changed file.
#[must_use]
pub fn stamp(metadata: &Metadata) -> Stamp {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Stamp {
            len: metadata.len(),
            modified_ns: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
            changed_ns: metadata.ctime().saturating_mul(1_000_000_000).saturating_add(metadata.ctime_nsec()),
            inode: metadata.ino(),
            device: metadata.dev(),
        }
    }
    #[cfg(not(unix))]
    {
        let ns = |time: io::Result<std::time::SystemTime>| {
            let since = time.ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            i64::try_from(since.as_nanos()).ok()
        };
        let modified_ns = ns(metadata.modified()).unwrap_or(0);
        Stamp { len: metadata.len(), modified_ns, changed_ns: modified_ns, inode: 0, device: 0 }
    }
}
