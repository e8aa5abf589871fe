//! The lock that elects the one `serve` of a ledger (architecture, house rule 9),
//! and the one that has catching up done by one process after the other.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};

/// Whoever only asks for the holder has the lock for a moment: so often, and so
/// far apart, a lock that nobody seems to hold is tried again.
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(20);

/// Held while the process serves; the system lets it go with the process.
pub struct ServeLock {
    // Both live as long as the process: the guard borrows the lock.
    _guard: fd_lock::RwLockWriteGuard<'static, File>,
}

/// The lock's file: beside the ledger.
fn path(db: &Path) -> PathBuf {
    beside(db, ".lock")
}

fn beside(db: &Path, ending: &str) -> PathBuf {
    let mut name = db.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    db.with_file_name(name)
}

fn open(path: &Path, create: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Does the work when no other process does such work on this ledger. Where
/// there is no place for a lock yet, it is done at once: it is safe, and only
/// slower, at the same time.
pub fn in_turn<T>(db: &Path, work: impl FnOnce() -> T) -> T {
    let lock = open(&beside(db, ".ingest.lock"), true).map(fd_lock::RwLock::new);
    let Ok(mut lock) = lock else { return work() };
    let _turn = lock.write();
    work()
}

impl ServeLock {
    /// Takes the lock and writes the process id into it.
    ///
    /// # Errors
    /// Another `serve` holds it: its process id is named.
    pub fn take(db: &Path) -> anyhow::Result<Self> {
        Self::take_within(db, LOOKS)
    }

    fn take_within(db: &Path, looks: u32) -> anyhow::Result<Self> {
        let file = open(&path(db), true).with_context(|| format!("cannot open {}", path(db).display()))?;
        let lock = Box::leak(Box::new(fd_lock::RwLock::new(file)));
        match lock.try_write() {
            Ok(mut guard) => {
                guard.set_len(0)?;
                guard.rewind()?;
                write!(guard, "{}", std::process::id())?;
                guard.flush()?;
                Ok(Self { _guard: guard })
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => match holder(db) {
                Some(pid) => bail!(
                    "another gemgauge serves the ledger {} (pid {pid}). Stop it, or give this one its own \
                     ledger with --db FILE",
                    db.display()
                ),
                // Somebody may have looked whether it is held: that takes no time.
                None if looks > 0 => {
                    std::thread::sleep(LOOK);
                    Self::take_within(db, looks - 1)
                }
                None => bail!("another gemgauge serves the ledger {}", db.display()),
            },
            Err(error) => Err(error).with_context(|| format!("cannot lock {}", path(db).display())),
        }
    }
}

/// The process id of the `serve` that holds the lock.
#[must_use]
pub fn holder(db: &Path) -> Option<u32> {
    let file = open(&path(db), false).ok()?;
    let mut lock = fd_lock::RwLock::new(file);
    if lock.try_write().is_ok() {
        return None;
    }
    // Locks are advisory: the text can be read beside them.
    let mut text = Vec::new();
    open(&path(db), false).ok()?.take(32).read_to_end(&mut text).ok()?;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}
