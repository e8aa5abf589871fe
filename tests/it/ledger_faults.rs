//! What happens when the ledger cannot be used: one clear sentence, exit code
//! 1, nothing touched; a running service goes on and catches up (accounting R74).

use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::support::chats::{Journal, Project};
use crate::support::poll::{until, until_eq};
use crate::support::service::{Service, total};
use crate::support::skip::not_checked;
use crate::support::tree::tree;
use crate::support::{Said, Sandbox};

const ANA: &str = "aaaaaaaa-0000-4000-8000-000000000001";

/// Nobody in particular: for root, whom no mode stops.
const NOBODY: u32 = 65_534;

fn home_with(sandbox: &Sandbox, requests: u64) -> Journal {
    let journal = Project::new(&sandbox.home(), "proj").session(ANA);
    journal.requests(requests);
    journal
}

fn gemini(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join(".gemini")
}

/// Every command refuses the ledger with exit code 1 and a sentence, prints no
/// figure, and leaves it and the journals as they are.
fn every_command_refuses(sandbox: &Sandbox, db: &Path, sentence: &str) {
    let before = (tree(&gemini(sandbox)), fs::read(db).ok());
    let db = db.to_str().unwrap();
    for args in [
        &["report", "--db", db][..],
        &["report", "--no-scan", "--db", db],
        &["explain", "latest", "--db", db],
        &["serve", "--web.listen-address", "127.0.0.1:0", "--db", db],
    ] {
        let said = sandbox.run(args);
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{args:?}: {}", said.err);
        assert!(said.err.starts_with("gemgauge: "), "{args:?}: {}", said.err);
        assert!(said.err.contains(sentence), "{args:?} says {sentence:?}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "one sentence: {}", said.err);
    }
    let said = sandbox.run(&["doctor", "--db", db]);
    assert_eq!(said.code, 1, "{}", said.out);
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain(&said.out).contains(&plain(sentence)), "doctor says {sentence:?}: {}", said.out);
    assert_eq!(before, (tree(&gemini(sandbox)), fs::read(db).ok()));
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let sandbox = Sandbox::new();
    home_with(&sandbox, 1);
    for text in ["Dear diary,\n", &"Dear diary,\n".repeat(1000)] {
        let db = sandbox.write("diary.db", text);
        every_command_refuses(&sandbox, &db, "diary.db is damaged (file is not a database)");
    }
}

#[test]
fn another_programs_database_is_refused() {
    let sandbox = Sandbox::new();
    home_with(&sandbox, 1);
    let db = sandbox.path().join("bookmarks.db");
    Connection::open(&db).unwrap().execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    every_command_refuses(&sandbox, &db, "bookmarks.db is a database of another program");
}

#[test]
fn a_ledger_of_a_newer_version_is_refused_with_both_versions() {
    let sandbox = Sandbox::new();
    home_with(&sandbox, 1);
    assert_eq!(sandbox.run(&["report"]).code, 0);
    let db = sandbox.ledger();
    Connection::open(&db).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let known = gemgauge::store::SCHEMA_VERSION;
    every_command_refuses(
        &sandbox,
        &db,
        &format!("has schema 99, and this gemgauge knows schemas up to {known}"),
    );
}

type Damage = fn(&mut Vec<u8>);

#[test]
fn a_damaged_ledger_is_refused() {
    let sandbox = Sandbox::new();
    home_with(&sandbox, 500);
    assert_eq!(sandbox.run(&["report"]).code, 0);
    let whole = fs::read(sandbox.ledger()).unwrap();
    let db = sandbox.path().join("damaged.db");
    let damages: [(&str, Damage); 4] = [
        ("cut in half", |bytes| bytes.truncate(bytes.len() / 2)),
        ("overwritten but for its first page", |bytes| bytes[4096..].fill(0x55)),
        ("overwritten in its last quarter", |bytes| {
            let from = bytes.len() / 4 * 3;
            bytes[from..].fill(0x55);
        }),
        ("zeroed but for its first page", |bytes| bytes[4096..].fill(0)),
    ];
    for (what, damage) in damages {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        fs::write(&db, &bytes).unwrap();
        let before = tree(&gemini(&sandbox));
        for args in [&["report"][..], &["explain", "latest"], &["doctor"]] {
            let said = sandbox.run(&[args, &["--db", db.to_str().unwrap()]].concat());
            assert_eq!(said.code, 1, "{what} {args:?}: {said:?}");
            let text = said.err + &said.out;
            assert!(text.contains("is damaged ("), "{what} {args:?}: {text}");
        }
        assert_eq!(before, tree(&gemini(&sandbox)), "{what}");
    }
}

#[test]
fn a_directory_that_cannot_be_made_and_a_ledger_that_cannot_be_opened_are_named() {
    let sandbox = Sandbox::new();
    home_with(&sandbox, 1);
    let file = sandbox.write("file", "");
    let below = file.join("below/ledger.db");
    let journals = tree(&gemini(&sandbox));
    let said = sandbox.run(&["report", "--db", below.to_str().unwrap()]);
    let sentence =
        format!("gemgauge: cannot create the ledger's directory {}: ", below.parent().unwrap().display());
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.starts_with(&sentence), "{}", said.err);

    let directory = sandbox.path().join("directory.db");
    fs::create_dir(&directory).unwrap();
    let said = sandbox.run(&["report", "--db", directory.to_str().unwrap()]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("directory.db") && said.err.contains("--db FILE"), "{}", said.err);
    assert_eq!(journals, tree(&gemini(&sandbox)));
}

/// gemgauge as somebody whom modes stop. `None`, with the reason printed,
/// where there is no such body.
fn restricted(sandbox: &Sandbox, args: &[&str]) -> Option<Said> {
    let mut command = sandbox.command(args);
    if rustix::process::geteuid().is_root() {
        for dir in [sandbox.path(), &sandbox.home()] {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    match command.output() {
        Ok(output) => Some(output.into()),
        Err(error) => {
            not_checked(&format!("gemgauge cannot be run as an unprivileged user: {error}"));
            None
        }
    }
}

#[test]
fn a_ledger_that_may_not_be_written_shows_what_it_holds_and_says_so() {
    let sandbox = Sandbox::new();
    let journal = home_with(&sandbox, 2);
    let db = sandbox.path().join("books/ledger.db");
    let args = ["report", "--since", "all", "--json", "--db", db.to_str().unwrap()];
    assert_eq!(sandbox.run(&args).code, 0);
    let held = journal.spent();
    journal.request();
    for (path, mode) in [(&db, 0o444), (&db.parent().unwrap().to_owned(), 0o555)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let before = (tree(&gemini(&sandbox)), tree(db.parent().unwrap()));
    let Some(said) = restricted(&sandbox, &args) else { return };
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("cannot be written"), "{}", said.err);
    if !said.out.is_empty() {
        assert_eq!(total(&serde_json::from_str(&said.out).unwrap()), held);
    }
    assert_eq!(before, (tree(&gemini(&sandbox)), tree(db.parent().unwrap())));
    // The caretaker of the sandbox must be able to remove it.
    fs::set_permissions(db.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_directory_that_may_not_be_written_is_named() {
    let sandbox = Sandbox::new();
    home_with(&sandbox, 1);
    let books = sandbox.path().join("books");
    fs::create_dir(&books).unwrap();
    fs::set_permissions(&books, fs::Permissions::from_mode(0o555)).unwrap();
    for (db, sentence) in [
        (books.join("ledger.db"), "cannot open the ledger"),
        (books.join("more/ledger.db"), "cannot create the ledger's directory"),
    ] {
        let Some(said) = restricted(&sandbox, &["report", "--db", db.to_str().unwrap()]) else { return };
        assert_eq!((said.code, said.out.as_str()), (1, ""));
        let wanted = format!("gemgauge: {sentence} ");
        assert!(said.err.starts_with(&wanted) && said.err.contains("ermission denied"), "{}", said.err);
        assert!(said.err.contains(books.to_str().unwrap()), "{}", said.err);
    }
    fs::set_permissions(&books, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Holds the ledger's write lock, as another program with it open might.
fn lock(db: &Path, exclusive: bool) -> Connection {
    let connection = Connection::open(db).unwrap();
    if exclusive {
        connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE").unwrap();
    }
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    connection
}

#[test]
fn a_locked_ledger_shows_what_it_holds_and_says_so() {
    let sandbox = Sandbox::new();
    let journal = home_with(&sandbox, 2);
    let args = ["report", "--since", "all", "--json"];
    assert_eq!(sandbox.run(&args).code, 0);
    let held = journal.spent();
    journal.request();
    let before = tree(&gemini(&sandbox));
    let holder = lock(&sandbox.ledger(), false);
    let commands = [sandbox.command(&args), sandbox.command(&["doctor"]), sandbox.serve_command(&[])];
    // Side by side: each waits for the lock for some seconds.
    let threads =
        commands.map(|mut command| std::thread::spawn(move || Said::from(command.output().unwrap())));
    let [report, doctor, serve] = threads.map(|thread| thread.join().unwrap());
    assert_eq!(report.code, 1);
    let sentence = "the ledger is locked by another process";
    assert_eq!(report.err, format!("gemgauge: {sentence}; showing what it already holds\n"));
    assert_eq!(total(&serde_json::from_str(&report.out).unwrap()), held);
    assert_eq!(doctor.code, 1);
    assert!(doctor.out.contains(sentence), "{}", doctor.out);
    assert_eq!((serve.code, serve.err), (1, format!("gemgauge: {sentence}\n")));
    drop(holder);

    let holder = lock(&sandbox.ledger(), true);
    let said = sandbox.run(&args);
    assert_eq!((said.code, said.out, said.err), (1, String::new(), format!("gemgauge: {sentence}\n")));
    drop(holder);
    assert_eq!(before, tree(&gemini(&sandbox)));
    let said = sandbox.run(&args);
    assert_eq!((said.code, total(&serde_json::from_str(&said.out).unwrap())), (0, journal.spent()));
}

fn blocked(service: &Service) -> Option<f64> {
    service.metrics().value("gemgauge_writer_blocked", &[])
}

/// A service whose writer cannot commit answers everything it always answers.
fn wait_blocked_and_answering(service: &Service) {
    until_eq("a blocked writer", &Some(1.0), || blocked(service));
    let ready = service.get("/-/ready");
    assert_eq!(ready.status, 200);
    assert!(ready.body.contains("degraded: ledger: the writer cannot commit"), "{}", ready.body);
    for path in ["/", "/-/healthy", "/api/v1/state", "/api/v1/report/daily", "/api/v1/sessions/latest"] {
        assert_eq!(service.get(path).status, 200, "{path}");
    }
    assert_eq!(service.metrics().value("gemgauge_up", &[]), Some(1.0));
}

#[test]
fn r74_a_service_whose_ledger_is_locked_goes_on_and_catches_up_exactly() {
    let sandbox = Sandbox::new();
    let journal = home_with(&sandbox, 2);
    let service = sandbox.serve_ready(&[]);
    service.wait_spent(journal.spent());
    let held = journal.spent();
    let holder = lock(&sandbox.ledger(), false);
    journal.requests(3);
    wait_blocked_and_answering(&service);
    assert_eq!(service.spent(), held);
    journal.requests(2);
    // What was read through the held descriptor waits in memory.
    until("the lines in the queue", || {
        let scrape = service.metrics();
        let read = scrape.sum("gemgauge_writer_queue_length", &[]);
        if read > 0 { Ok(()) } else { Err(read) }
    });
    drop(holder);
    service.wait_spent(journal.spent());
    until_eq("a free writer", &Some(0.0), || blocked(&service));
    assert_eq!(service.get("/-/ready").body, "ready\n");
    let log = service.log();
    assert_eq!(log.matches("the ledger cannot be written").count(), 1, "{log}");
    assert_eq!(log.matches("the ledger can be written again").count(), 1, "{log}");
    assert_eq!(service.terminate(), Some(0));
}

#[test]
fn a_blocked_service_ends_when_asked_to_and_the_next_one_catches_up() {
    let sandbox = Sandbox::new();
    let journal = home_with(&sandbox, 1);
    let service = sandbox.serve_ready(&[]);
    service.wait_spent(journal.spent());
    let holder = lock(&sandbox.ledger(), false);
    journal.requests(3);
    wait_blocked_and_answering(&service);
    // What could not be written is lost to this process: no success.
    assert_eq!(service.terminate(), Some(1));
    drop(holder);
    let service = sandbox.serve_ready(&[]);
    service.wait_spent(journal.spent());
    let lines = service.metrics().sum("gemgauge_journal_lines_total", &[("kind", "request")]);
    assert_eq!(lines, journal.spent().requests);
}

/// `args` with files limited to so many bytes; a write beyond it is an error, not a signal.
fn limited(command: &Command, bytes: u64) -> Command {
    let mut limited = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -S -f {}; exec \"$@\"", bytes / 512);
    limited.args(["-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
    limited.current_dir(command.get_current_dir().unwrap()).env_clear();
    limited.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    limited
}

#[test]
fn r74_a_service_that_cannot_write_any_further_goes_on_and_catches_up_exactly() {
    let sandbox = Sandbox::new();
    let journal = home_with(&sandbox, 2);
    assert_eq!(sandbox.run(&["report"]).code, 0);
    let size = fs::metadata(sandbox.ledger()).unwrap().len();
    let command = limited(&sandbox.serve_command(&[]), size + 64 * 1024);
    let service = Service::start(command, sandbox.path().join("serve.log"));
    service.wait_ready();
    service.wait_spent(journal.spent());
    let held = journal.spent();
    journal.requests(5000);
    wait_blocked_and_answering(&service);
    assert!(service.spent().requests < journal.spent().requests);
    assert!(service.spent().requests >= held.requests);
    let pid = Pid::from_raw(service.pid().cast_signed());
    prlimit(pid, Resource::Fsize, Rlimit { current: None, maximum: getrlimit(Resource::Fsize).maximum })
        .unwrap();
    service.wait_spent(journal.spent());
    until_eq("a free writer", &Some(0.0), || blocked(&service));
    assert_eq!(service.metrics().spent(&[]), journal.spent().pair());
    assert_eq!(service.terminate(), Some(0));
    assert_whole(&sandbox.ledger());
}

fn assert_whole(db: &Path) {
    let check: String =
        Connection::open(db).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

/// A small disk of its own.
struct Disk(PathBuf);

impl Disk {
    /// `None`, with the reason printed, where none can be mounted.
    fn mount(at: PathBuf, bytes: u64) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let options = format!("size={bytes},mode=0755");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "gemgauge-test"]).arg(&at).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(at)),
            Ok(output) => {
                not_checked(String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                not_checked(&format!("mount does not start: {error}"));
                None
            }
        }
    }

    fn make_read_only(&self) {
        let done = Command::new("mount").args(["-o", "remount,ro"]).arg(&self.0).status();
        assert!(done.unwrap().success());
    }

    /// Leaves no byte free.
    fn fill(&self) {
        let mut filler = File::create(self.0.join("filler")).unwrap();
        while filler.write(&[0; 4096]).is_ok_and(|written| written > 0) {}
        filler.rewind().unwrap();
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

#[test]
fn r74_a_full_disk_blocks_the_service_only_until_there_is_room() {
    let sandbox = Sandbox::new();
    let Some(disk) = Disk::mount(sandbox.path().join("disk"), 4 << 20) else { return };
    let journal = home_with(&sandbox, 2);
    let db = disk.0.join("ledger.db");
    let service = sandbox.serve_ready(&["--db", db.to_str().unwrap()]);
    service.wait_spent(journal.spent());
    disk.fill();
    journal.requests(5000);
    wait_blocked_and_answering(&service);
    assert!(service.log().contains("the disk is full: the ledger cannot grow"), "{}", service.log());
    disk.free();
    service.wait_spent(journal.spent());
    until_eq("a free writer", &Some(0.0), || blocked(&service));
    assert_eq!(service.metrics().spent(&[]), journal.spent().pair());
    assert_eq!(service.terminate(), Some(0));
    assert_whole(&db);
}

#[test]
fn on_a_full_disk_nothing_half_written_stays_and_the_sentence_says_why() {
    let sandbox = Sandbox::new();
    let Some(disk) = Disk::mount(sandbox.path().join("disk"), 4 << 20) else { return };
    let journal = home_with(&sandbox, 3);
    let before = tree(&gemini(&sandbox));
    let db = disk.0.join("ledger.db");
    let args = ["report", "--since", "all", "--json", "--db", db.to_str().unwrap()];
    disk.fill();
    let said = sandbox.run(&args);
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{}", said.err);
    assert!(said.err.starts_with("gemgauge: the disk is full: the ledger cannot grow"), "{}", said.err);
    assert_eq!(before, tree(&gemini(&sandbox)));
    disk.free();
    let said = sandbox.run(&args);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert_eq!(total(&serde_json::from_str(&said.out).unwrap()), journal.spent());
    assert_whole(&db);
}

#[test]
fn a_ledger_on_a_read_only_disk_is_no_reason_to_be_silent() {
    let sandbox = Sandbox::new();
    let Some(disk) = Disk::mount(sandbox.path().join("disk"), 4 << 20) else { return };
    home_with(&sandbox, 1);
    let db = disk.0.join("ledger.db");
    assert_eq!(sandbox.run(&["report", "--db", db.to_str().unwrap()]).code, 0);
    disk.make_read_only();
    let before = tree(&gemini(&sandbox));
    for file in ["ledger.db", "new.db"] {
        let db = disk.0.join(file);
        let said = sandbox.run(&["report", "--db", db.to_str().unwrap()]);
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{}", said.err);
        let start = format!("gemgauge: cannot open the ledger {}: ", db.display());
        assert!(said.err.starts_with(&start), "{}", said.err);
        assert!(said.err.ends_with(". Choose another file with --db FILE\n"), "the end of it: {}", said.err);
    }
    assert_eq!(before, tree(&gemini(&sandbox)));
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).mode() & 0o7777
}

#[test]
fn the_ledger_is_its_owners_alone_whatever_the_umask() {
    let sandbox = Sandbox::new();
    home_with(&sandbox, 1);
    let existing = sandbox.path().join("existing");
    fs::create_dir(&existing).unwrap();
    fs::set_permissions(&existing, fs::Permissions::from_mode(0o755)).unwrap();
    let db = existing.join("made/also/ledger.db");
    let mut command = Command::new("sh");
    let serve = sandbox.serve_command(&["--db", db.to_str().unwrap()]);
    command.args(["-c", "umask 0; exec \"$@\"", "sh"]).arg(serve.get_program()).args(serve.get_args());
    command.env_clear().env("HOME", sandbox.home());
    let service = Service::start(command, sandbox.path().join("serve.log"));
    service.wait_ready();
    assert_eq!(mode(&existing), 0o755, "what was there is left alone");
    assert_eq!((mode(&existing.join("made")), mode(db.parent().unwrap())), (0o700, 0o700));
    for file in ["ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db.lock"] {
        assert_eq!(mode(&db.with_file_name(file)), 0o600, "{file}");
    }
}

#[test]
fn r73_nothing_below_dot_gemini_is_ever_written() {
    let sandbox = Sandbox::new();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/home/.gemini");
    let copied = Command::new("cp").arg("-r").arg(demo).arg(sandbox.home()).status().unwrap();
    assert!(copied.success());
    let journal = home_with(&sandbox, 1);
    journal.line("{ torn");
    let before = tree(&gemini(&sandbox));
    for args in [&["report", "--all"][..], &["explain", "latest"], &["doctor"], &["report", "sessions"]] {
        let said = sandbox.run(args);
        assert!(said.code < 2, "{args:?}: {said:?}");
    }
    let service = sandbox.serve_ready(&[]);
    for path in ["/metrics", "/api/v1/state", "/api/v1/sessions/latest"] {
        assert_eq!(service.get(path).status, 200);
    }
    assert_eq!(service.terminate(), Some(0));
    assert_eq!(before, tree(&gemini(&sandbox)));
}
