use std::path::PathBuf;

/// What can go wrong with the ledger's file, in the user's words.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot create the ledger's directory {path}: {error}")]
    Directory { path: PathBuf, error: std::io::Error },
    #[error("cannot open the ledger {path}: {error}. Choose another file with --db FILE")]
    File { path: PathBuf, error: std::io::Error },
    #[error("there is no ledger at {0} yet. `gemgauge report` or `gemgauge serve` makes one")]
    Missing(PathBuf),
    #[error(
        "the ledger {path} has schema {found}, and this gemgauge knows schemas up to {known}: \
         it was written by a newer version. Install that version, or choose another file with --db FILE"
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("{0} is a database of another program, not a ledger. Choose another file with --db FILE")]
    Foreign(PathBuf),
    #[error(
        "the ledger {path} is damaged ({detail}). Move it aside and start again: journals that still \
         exist are read anew; the file is not touched"
    )]
    Corrupt { path: PathBuf, detail: String },
    /// The same, where the file is not known.
    #[error(
        "the ledger is damaged ({0}). Move it aside and start again: journals that still exist are read \
         anew; the file is not touched"
    )]
    Damaged(String),
    #[error(
        "the ledger {0} lies on a network file system, where SQLite cannot keep it safe. \
         Choose a file on a local disk with --db FILE"
    )]
    NetworkFileSystem(PathBuf),
    #[error("the ledger is locked by another process")]
    Busy,
    #[error("the disk is full: the ledger cannot grow")]
    Full,
    #[error("the ledger cannot be written: {0}")]
    ReadOnly(String),
    #[error("the ledger could not be read or written: {0}")]
    Sqlite(rusqlite::Error),
    #[error("the ledger's writer has stopped")]
    Stopped,
    #[error("the ledger's writer is behind: try again in a moment")]
    Behind,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Busy,
            Some(Code::DiskFull) => Self::Full,
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Damaged(error.to_string()),
            Some(Code::ReadOnly | Code::PermissionDenied) => Self::ReadOnly(error.to_string()),
            _ => Self::Sqlite(error),
        }
    }
}

impl StoreError {
    /// Whether waiting may help: the writer keeps what it has and tries again.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Busy | Self::Full | Self::ReadOnly(_))
            || matches!(self, Self::Sqlite(error) if error.sqlite_error_code()
                == Some(rusqlite::ErrorCode::SystemIoFailure))
    }

    /// Says which file is meant.
    pub(super) fn at(self, path: &std::path::Path) -> Self {
        use rusqlite::ErrorCode as Code;
        match self {
            Self::Damaged(detail) => Self::Corrupt { path: path.to_owned(), detail },
            Self::Sqlite(error) if error.sqlite_error_code() == Some(Code::CannotOpen) => {
                Self::File { path: path.to_owned(), error: std::io::Error::other("SQLite cannot open it") }
            }
            other => other,
        }
    }
}
