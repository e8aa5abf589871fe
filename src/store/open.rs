//! Opening the ledger's file: modes, pragmas, migrations.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::StoreError;
use super::read::Reader;

/// Migrations by version, forward only, never edited once released.
const MIGRATIONS: [&str; 4] = [
    include_str!("../../migrations/0001_spine.sql"),
    include_str!("../../migrations/0002_budget_hooks.sql"),
    include_str!("../../migrations/0003_turns.sql"),
    include_str!("../../migrations/0004_quota.sql"),
];

/// The schema version of this build.
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// `application_id` of a ledger: "GemG".
const APPLICATION_ID: i64 = 0x4765_6d47;

/// How long a connection waits for a lock.
const BUSY: Duration = Duration::from_secs(5);

/// What a connection may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Create, migrate and write.
    Write,
    /// Only look.
    Read,
}

/// Opens a reading connection.
///
/// # Errors
/// A sentence that says what is wrong with the file and what to do.
pub fn open_reader(path: &Path) -> Result<Reader, StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing(path.to_owned()));
    }
    let connection = open(path, Access::Read).map_err(|error| error.at(path))?;
    Ok(Reader { connection })
}

/// Looks at every page of a ledger.
///
/// # Errors
/// What is damaged, or what keeps it from being looked at.
pub fn check(path: &Path) -> Result<(), StoreError> {
    let reader = open_reader(path)?;
    let found: String = reader
        .connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| StoreError::from(error).at(path))?;
    match found.as_str() {
        "ok" => Ok(()),
        _ => Err(StoreError::Corrupt { path: path.to_owned(), detail: found.replace('\n', " ") }),
    }
}

/// Opens the writing connection: creates the file where it is missing and
/// brings an older schema up to date, keeping a copy of it.
pub(super) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    create(path)?;
    open(path, Access::Write).map_err(|error| error.at(path))
}

/// The schema version of a ledger's file.
///
/// # Errors
/// As for opening it.
pub fn schema_version(path: &Path) -> Result<i64, StoreError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// Makes directory and file with their modes before SQLite does: `-wal` and
/// `-shm` take the file's.
fn create(path: &Path) -> Result<(), StoreError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(directory) = directory {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(directory)
            .map_err(|error| StoreError::Directory { path: directory.to_owned(), error })?;
        refuse_network(directory, path)?;
    }
    if path.exists() {
        return Ok(());
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(|error| StoreError::File { path: path.to_owned(), error })
}

/// WAL needs shared memory, which network file systems do not have.
#[cfg(target_os = "linux")]
fn refuse_network(directory: &Path, path: &Path) -> Result<(), StoreError> {
    const NFS: u32 = 0x6969;
    const SMB: [u32; 3] = [0x517b, 0xff53_4d42, 0xfe53_4d42];
    // The word's width and sign differ between platforms; magic numbers have 32 bits.
    let kind = rustix::fs::statfs(directory).map(|fs| fs.f_type as u32);
    match kind {
        Ok(kind) if kind == NFS || SMB.contains(&kind) => Err(StoreError::NetworkFileSystem(path.to_owned())),
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_network(_: &Path, _: &Path) -> Result<(), StoreError> {
    Ok(())
}

fn open(path: &Path, access: Access) -> Result<Connection, StoreError> {
    // Also to read: a WAL database cannot be opened read-only where its -shm is missing.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let mut connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.execute_batch(
        "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;
         PRAGMA temp_store = MEMORY;",
    )?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && application != APPLICATION_ID {
        return Err(StoreError::Foreign(path.to_owned()));
    }
    if version > SCHEMA_VERSION {
        return Err(StoreError::Newer { path: path.to_owned(), found: version, known: SCHEMA_VERSION });
    }
    match access {
        Access::Write => {
            connection.execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -8192;",
            )?;
            migrate(&mut connection, path)?;
        }
        Access::Read if version < SCHEMA_VERSION => return Err(StoreError::Missing(path.to_owned())),
        Access::Read => connection.execute_batch("PRAGMA query_only = ON;")?,
    }
    Ok(connection)
}

/// Applies the missing migrations, each in its own transaction, after a copy
/// of a ledger that already holds something.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    // One made just now holds nothing, and one of several steps has one past.
    let mut kept = connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))? == 0;
    loop {
        let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let version: i64 = tx.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let Some(sql) = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version)) else {
            return Ok(());
        };
        if version > 0 && !std::mem::replace(&mut kept, true) {
            drop(tx);
            backup(connection, path, version)?;
            let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            apply(tx, sql, version)?;
        } else {
            apply(tx, sql, version)?;
        }
    }
}

fn apply(tx: rusqlite::Transaction<'_>, sql: &str, from: i64) -> Result<(), StoreError> {
    let version: i64 = tx.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version != from {
        // Another process migrated meanwhile.
        return Ok(());
    }
    tx.execute_batch(sql)?;
    tx.execute_batch(&format!(
        "PRAGMA user_version = {}; PRAGMA application_id = {APPLICATION_ID};",
        from + 1
    ))?;
    tx.commit()?;
    Ok(())
}

fn backup(connection: &Connection, path: &Path, version: i64) -> Result<(), StoreError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".v{version}.bak"));
    let copy: PathBuf = path.with_file_name(name);
    create(&copy)?;
    let mut target = Connection::open(&copy)?;
    rusqlite::backup::Backup::new(connection, &mut target)?.run_to_completion(1000, Duration::ZERO, None)?;
    Ok(())
}
