//! Appends events to a spool file and never gets in anybody's way: nothing is
//! printed, nothing fails, and what could not be written is counted and said
//! as soon as writing works again (accounting 3, D2 5).

use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{MAX_LINE, VERSION};
use crate::ledger::doors::{DoorEvent, EventKind};

/// A file that takes lines.
type Sink = Box<dyn Write + Send>;

/// One event, as a line holds it.
#[derive(Serialize)]
struct Line<'e> {
    v: u64,
    #[serde(flatten)]
    event: &'e DoorEvent,
}

/// A name that no other spool has: shaped as a random UUID, with its ending.
#[must_use]
pub fn fresh_name() -> String {
    // The hasher's keys come from the system's own randomness.
    let half = |salt: u64| RandomState::new().hash_one((std::process::id(), salt));
    let (high, low) = (half(0), half(1));
    let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xfff);
    let (d, e) = ((low >> 48) & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    format!("{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}.jsonl")
}

/// Writes the spool of one process behind a door.
///
/// The file is opened with the first event. Until that event is written no
/// other is, so a spool always begins with it.
pub struct SpoolWriter {
    open: Box<dyn FnMut() -> io::Result<Sink> + Send>,
    file: Option<Sink>,
    /// The first event, while it waits to be written.
    first: Option<Vec<u8>>,
    begun: bool,
    /// The file ends in the middle of a line.
    torn: bool,
    /// Events that could not be written and were not told of yet.
    lost: u64,
}

impl SpoolWriter {
    /// A spool of that name in a directory, which is made when it is missing.
    /// Nothing is touched before the first event.
    #[must_use]
    pub fn create(dir: &Path, name: &str) -> Self {
        let (dir, path) = (dir.to_owned(), dir.join(name));
        Self::over(move || open(&dir, &path))
    }

    fn over(open: impl FnMut() -> io::Result<Sink> + Send + 'static) -> Self {
        Self { open: Box::new(open), file: None, first: None, begun: false, torn: false, lost: 0 }
    }

    /// Appends one event, with one write. Where that fails the event is lost,
    /// the loss is counted, and the next event tries again.
    pub fn append(&mut self, event: &DoorEvent) {
        let Some(line) = encode(event) else {
            self.lost += 1;
            return;
        };
        if !self.begun {
            self.begun = true;
            self.first = Some(line);
            self.catch_up(event.at);
        } else if !(self.catch_up(event.at) && self.write(&line)) {
            self.lost += 1;
        }
    }

    /// Writes what has to stand before the next event.
    fn catch_up(&mut self, at: i64) -> bool {
        if let Some(first) = self.first.take()
            && !self.write(&first)
        {
            self.first = Some(first);
            return false;
        }
        if self.lost == 0 {
            return true;
        }
        let kind = EventKind::Lost { count: Some(self.lost) };
        let told = encode(&DoorEvent { at, kind }).is_some_and(|line| self.write(&line));
        if told {
            self.lost = 0;
        }
        told
    }

    /// Whether the whole line is in the file.
    fn write(&mut self, line: &[u8]) -> bool {
        let ended;
        let bytes = if self.torn {
            ended = [b"\n", line].concat();
            &ended[..]
        } else {
            line
        };
        let written = match self.write_once(bytes) {
            Ok(0) | Err(_) => return false,
            Ok(written) => written,
        };
        let of_line = written - usize::from(self.torn);
        self.torn = of_line > 0 && of_line < line.len();
        // Without its newline it still reads: the next write begins with one.
        of_line + 1 >= line.len()
    }

    fn write_once(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = Some((self.open)()?);
        }
        let file = self.file.as_mut().expect("it was opened above");
        loop {
            match file.write(bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }
}

/// The line of an event; `None` if no reader would take it.
fn encode(event: &DoorEvent) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(&Line { v: VERSION, event }).ok()?;
    if line.len() > MAX_LINE {
        return None;
    }
    line.push(b'\n');
    Some(line)
}

fn open(dir: &PathBuf, path: &Path) -> io::Result<Sink> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)?;
    let mut options = OpenOptions::new();
    // A new file, always: never somebody's, never through a link.
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // Held as long as the process lives: that it can be taken tells a reader
    // that the process is gone. Where locks do not work, its id tells.
    #[cfg(unix)]
    let _ = file.try_lock();
    Ok(Box::new(file))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::ledger::doors::Door;

    fn started() -> DoorEvent {
        let kind = EventKind::ProcessStarted {
            door: Door::Run,
            home: None,
            configured_runtime: None,
            remote: false,
            pid: 7,
        };
        DoorEvent { at: 1, kind }
    }

    fn ended(at: i64) -> DoorEvent {
        DoorEvent { at, kind: EventKind::ProcessEnded { exit: None } }
    }

    const STARTED: &str = r#"{"v":1,"at":1,"kind":"process_started","door":"run","pid":7}"#;

    fn ended_line(at: i64) -> String {
        format!(r#"{{"v":1,"at":{at},"kind":"process_ended"}}"#)
    }

    /// A disk with so much room left; what it holds, and how often it was written to.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(Vec<u8>, usize, usize)>>);

    impl Disk {
        fn with_room(room: usize) -> Self {
            let disk = Self::default();
            disk.0.lock().unwrap().1 = room;
            disk
        }

        fn make_room(&self, room: usize) {
            self.0.lock().unwrap().1 = room;
        }

        fn lines(&self) -> Vec<String> {
            let held = self.0.lock().unwrap();
            String::from_utf8(held.0.clone()).unwrap().lines().map(str::to_owned).collect()
        }

        fn writes(&self) -> usize {
            self.0.lock().unwrap().2
        }

        fn writer(&self) -> SpoolWriter {
            let disk = self.clone();
            SpoolWriter::over(move || Ok(Box::new(disk.clone())))
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut disk = self.0.lock().unwrap();
            let fits = bytes.len().min(disk.1);
            disk.2 += 1;
            if fits == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            disk.0.extend_from_slice(&bytes[..fits]);
            disk.1 -= fits;
            Ok(fits)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn d2_5_each_event_is_one_line_and_one_write() {
        let disk = Disk::with_room(usize::MAX);
        let mut spool = disk.writer();
        spool.append(&started());
        spool.append(&ended(2));
        assert_eq!(disk.lines(), [STARTED.to_owned(), ended_line(2)]);
        assert_eq!(disk.writes(), 2);
    }

    #[test]
    fn d2_5_what_a_full_disk_swallowed_is_told_when_there_is_room_again() {
        let whole = STARTED.len() + 1;
        let disk = Disk::with_room(whole);
        let mut spool = disk.writer();
        spool.append(&started());
        spool.append(&ended(2));
        spool.append(&ended(3));
        disk.make_room(usize::MAX);
        spool.append(&ended(4));
        spool.append(&ended(5));
        let lost = r#"{"v":1,"at":4,"kind":"lost","count":2}"#.to_owned();
        assert_eq!(disk.lines(), [STARTED.to_owned(), lost, ended_line(4), ended_line(5)]);
    }

    #[test]
    fn d2_5_a_disk_that_fills_at_any_byte_costs_whole_lines_only() {
        let (first, second) = (STARTED.to_owned(), ended_line(2));
        for room in 0..=first.len() + second.len() + 2 {
            let disk = Disk::with_room(room);
            let mut spool = disk.writer();
            spool.append(&started());
            spool.append(&ended(2));
            disk.make_room(usize::MAX);
            spool.append(&ended(3));
            let lines = disk.lines();
            let whole: Vec<_> =
                lines.iter().filter(|line| serde_json::from_str::<DoorEvent>(line).is_ok()).collect();
            // At most the one torn line beside them.
            assert!(lines.len() - whole.len() <= 2, "{room}: {lines:?}");
            assert_eq!(whole[0], &first, "{room}: a spool begins with its process");
            assert_eq!(*whole.last().unwrap(), &ended_line(3), "{room}");
            let second_is_there = whole.contains(&&second);
            let told = whole.iter().any(|line| line.contains("\"lost\",\"count\":1"));
            assert_ne!(second_is_there, told, "{room}: written or told of, never both: {lines:?}");
        }
    }

    #[test]
    fn d2_5_a_directory_that_cannot_be_written_is_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        // A file where the directory should be fails for root too.
        let spool_dir = dir.path().join("spool");
        std::fs::write(&spool_dir, "").unwrap();
        let mut spool = SpoolWriter::create(&spool_dir, "a.jsonl");
        spool.append(&started());
        spool.append(&ended(2));
        std::fs::remove_file(&spool_dir).unwrap();
        spool.append(&ended(3));
        let text = crate::config::read_bounded(&spool_dir.join("a.jsonl"), 1 << 16).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines, [STARTED, r#"{"v":1,"at":3,"kind":"lost","count":1}"#, &ended_line(3)]);
    }

    #[cfg(unix)]
    #[test]
    fn r70_a_spool_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let spool_dir = dir.path().join("state/gemgauge/spool");
        let mut spool = SpoolWriter::create(&spool_dir, "a.jsonl");
        assert!(!spool_dir.exists(), "nothing is touched before there is something to say");
        spool.append(&started());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&spool_dir), mode(&spool_dir.join("a.jsonl"))), (0o700, 0o600));
    }

    #[cfg(unix)]
    #[test]
    fn r73_a_file_or_link_that_is_there_already_is_never_written() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("victim"), "as it was").unwrap();
        std::os::unix::fs::symlink("victim", dir.path().join("a.jsonl")).unwrap();
        let mut spool = SpoolWriter::create(dir.path(), "a.jsonl");
        spool.append(&started());
        spool.append(&ended(2));
        assert_eq!(crate::config::read_bounded(&dir.path().join("victim"), 100).unwrap(), "as it was");
    }

    #[test]
    fn an_event_that_no_reader_would_take_is_lost_and_told() {
        let disk = Disk::with_room(usize::MAX);
        let mut spool = disk.writer();
        spool.append(&started());
        let session_id = "x".repeat(MAX_LINE);
        spool.append(&DoorEvent { at: 2, kind: EventKind::SessionEnded { session_id } });
        spool.append(&ended(3));
        assert_eq!(
            disk.lines()[1..],
            [r#"{"v":1,"at":3,"kind":"lost","count":1}"#.to_owned(), ended_line(3)]
        );
    }

    #[test]
    fn names_are_random_uuids() {
        let names: std::collections::BTreeSet<_> = (0..1000).map(|_| fresh_name()).collect();
        assert_eq!(names.len(), 1000);
        for name in names {
            let parts: Vec<_> = name.strip_suffix(".jsonl").unwrap().split('-').collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{name}");
            assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']), "{name}");
        }
    }
}
