//! The ledger's file and its writer (instance metrics).

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::family::{Descriptor, Family, Kind, Label};
use crate::health::WriterHealth;

pub static COMMIT_DURATION: Descriptor = Descriptor {
    name: "gemgauge_ledger_commit_duration_seconds",
    kind: Kind::Histogram,
    help: "How long commits of the writer took",
    labels: &[],
};

pub static BYTES: Descriptor = Descriptor {
    name: "gemgauge_ledger_bytes",
    kind: Kind::Gauge,
    help: "Size of the ledger's files",
    labels: &[Label::closed("file", || vec!["db", "wal"])],
};

pub static QUEUE_LENGTH: Descriptor = Descriptor {
    name: "gemgauge_writer_queue_length",
    kind: Kind::Gauge,
    help: "Steps that wait for the writer",
    labels: &[],
};

pub static BLOCKED: Descriptor = Descriptor {
    name: "gemgauge_writer_blocked",
    kind: Kind::Gauge,
    help: "Whether the writer cannot commit (1)",
    labels: &[],
};

pub(super) static DESCRIPTORS: [&Descriptor; 4] = [&COMMIT_DURATION, &BYTES, &QUEUE_LENGTH, &BLOCKED];

/// Sizes of the database and of its write-ahead log, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileSizes {
    pub(super) db: u64,
    pub(super) wal: u64,
}

/// Looks at the files' metadata. A log that is not there (nobody writes) is 0.
///
/// # Errors
/// The database is not there or may not be looked at.
pub(super) fn file_sizes(db: &Path) -> io::Result<FileSizes> {
    let mut wal = OsString::from(db);
    wal.push("-wal");
    let wal = match std::fs::metadata(wal) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    Ok(FileSizes { db: std::fs::metadata(db)?.len(), wal })
}

pub(super) fn collect(writer: &WriterHealth, sizes: Option<FileSizes>) -> [Family; 4] {
    let mut commits = Family::new(&COMMIT_DURATION);
    commits.add_durations(&writer.commits.get());
    let mut bytes = Family::new(&BYTES);
    if let Some(sizes) = sizes {
        bytes.add_count(&["db"], sizes.db);
        bytes.add_count(&["wal"], sizes.wal);
    }
    let queue = Family::single(&QUEUE_LENGTH, writer.queue_length.get() as f64);
    let blocked = Family::single(&BLOCKED, f64::from(writer.blocked.get()));
    [commits, bytes, queue, blocked]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_log_is_empty_and_a_missing_database_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let db = dir.path().join("ledger.db");
        assert!(file_sizes(&db).is_err());
        std::fs::write(&db, "12345").expect("written");
        assert_eq!(file_sizes(&db).ok(), Some(FileSizes { db: 5, wal: 0 }));
        std::fs::write(dir.path().join("ledger.db-wal"), "123").expect("written");
        assert_eq!(file_sizes(&db).ok(), Some(FileSizes { db: 5, wal: 3 }));
    }
}
