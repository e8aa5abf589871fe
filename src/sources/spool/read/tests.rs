use std::fs;
use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use super::super::SpoolWriter;
use super::*;
use crate::ledger::doors::{Door, Exit, Oddity};

const NAME: &str = "8a3c5a0e-1b1b-4c6e-9d0f-2f6a8f1f9a10.jsonl";

/// When files of these tests were written, unix ms, and a moment when they are quiet.
const WRITTEN: i64 = 1_790_000_000_000;
const LATER: i64 = WRITTEN + QUIET_MS;

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn source(&self) -> SpoolSource {
        SpoolSource::new(self.0.path().to_owned(), [])
    }

    fn append(&self, name: &str, bytes: &[u8]) {
        let mut file = File::options().create(true).append(true).open(self.path(name)).unwrap();
        file.write_all(bytes).unwrap();
        touch(&file, WRITTEN);
    }
}

fn touch(file: &File, at_ms: i64) {
    file.set_modified(UNIX_EPOCH + Duration::from_millis(at_ms.unsigned_abs())).unwrap();
}

fn scan(source: &mut SpoolSource, now_ms: i64) -> (Vec<SpoolStep>, Seen) {
    let mut steps = Vec::new();
    let seen = source.scan(now_ms, &mut |step| {
        steps.push(step);
        Ok(())
    });
    (steps, seen.unwrap())
}

fn started() -> EventKind {
    EventKind::ProcessStarted { door: Door::Run, home: None, configured_runtime: None, remote: false, pid: 7 }
}

fn kinds(steps: &[SpoolStep]) -> Vec<EventKind> {
    steps.iter().flat_map(|step| step.events.iter().map(|event| event.kind.clone())).collect()
}

fn ended(exit: Option<Exit>) -> EventKind {
    EventKind::ProcessEnded { exit }
}

const STARTED: &str = r#"{"v":1,"at":1,"kind":"process_started","door":"run","pid":7}"#;
const OPENED: &str = r#"{"v":1,"at":2,"kind":"session_opened","session_id":"s","model":"auto"}"#;
const ENDED: &str = r#"{"v":1,"at":3,"kind":"process_ended","exit":{"code":0}}"#;

fn whole() -> String {
    format!("{STARTED}\n{OPENED}\n{ENDED}\n")
}

fn opened() -> EventKind {
    EventKind::SessionOpened {
        session_id: "s".into(),
        model: Some("auto".into()),
        resumed: false,
        session_role: None,
    }
}

#[test]
fn d2_5_what_was_appended_is_read_once_and_in_order() {
    let dir = Dir::new();
    let mut source = dir.source();
    assert_eq!(scan(&mut source, LATER).0, [], "an empty directory");
    let mut spool = SpoolWriter::create(dir.0.path(), NAME);
    spool.append(&DoorEvent { at: 1, kind: started() });
    spool.append(&DoorEvent { at: 2, kind: EventKind::Odd { oddity: Oddity::MalformedFrame } });
    let (steps, seen) = scan(&mut source, 0);
    assert_eq!(kinds(&steps), [started(), EventKind::Odd { oddity: Oddity::MalformedFrame }]);
    assert_eq!((seen.open, seen.lag_bytes, seen.skipped), (1, 0, 0));
    assert_eq!(scan(&mut source, 0).0, [], "nothing is read twice");
    spool.append(&DoorEvent { at: 3, kind: ended(Some(Exit::Signal(9))) });
    let (more, seen) = scan(&mut source, 0);
    assert_eq!((more[0].from, more[0].ended), (steps[0].to, true));
    assert_eq!(kinds(&more), [ended(Some(Exit::Signal(9)))]);
    assert_eq!(seen.open, 0);
    assert_eq!(scan(&mut source, i64::MAX / 2).0, [], "an end that was said is not said again");
}

#[test]
fn d2_5_a_directory_that_is_missing_holds_nothing() {
    let dir = Dir::new();
    let mut source = SpoolSource::new(dir.path("nowhere"), []);
    assert_eq!(scan(&mut source, LATER), (Vec::new(), Seen::default()));
}

#[test]
fn d2_5_a_spool_cut_at_any_byte_goes_on_from_there() {
    let text = whole();
    for cut in 0..=text.len() {
        let dir = Dir::new();
        let mut source = dir.source();
        dir.append(NAME, &text.as_bytes()[..cut]);
        let (mut steps, _) = scan(&mut source, WRITTEN);
        dir.append(NAME, &text.as_bytes()[cut..]);
        steps.extend(scan(&mut source, WRITTEN).0);
        assert_eq!(kinds(&steps), [started(), opened(), ended(Some(Exit::Code(0)))], "{cut}");
        assert!(steps.iter().all(|step| (step.broken, step.unknown) == (0, 0)), "{cut}");
        assert!(steps.windows(2).all(|pair| pair[0].to == pair[1].from), "{cut}");
        let last = steps.last().unwrap();
        assert_eq!((last.to, last.ended), (text.len() as u64, true));
    }
}

#[test]
fn d2_5_a_process_that_died_at_any_byte_ends_when_everything_it_left_was_read() {
    let text = format!("{STARTED}\n{OPENED}\n");
    let ends = [STARTED.len(), STARTED.len() + 1 + OPENED.len()];
    for cut in 0..=text.len() {
        let dir = Dir::new();
        let mut source = dir.source();
        dir.append(NAME, &text.as_bytes()[..cut]);
        scan(&mut source, WRITTEN).0.into_iter().for_each(|step| assert!(!step.ended, "{cut}"));
        // Another reader, that sees it only now, comes to the same end.
        for mut source in [source, dir.source()] {
            let (steps, seen) = scan(&mut source, LATER);
            let last = steps.last().unwrap();
            assert_eq!((last.to, last.ended, seen.open), (cut as u64, true, 0), "{cut}");
            let started = cut >= ends[0];
            assert_eq!(last.events.last().map(|event| &event.kind) == Some(&ended(None)), started, "{cut}");
            if started {
                assert_eq!(last.events.last().unwrap().at, WRITTEN);
            }
            // A line is whole without its newline; of any other piece one is broken.
            let starts = [0, ends[0] + 1, ends[1] + 1];
            let torn = !ends.contains(&cut) && !starts.contains(&cut);
            assert_eq!(steps.iter().map(|step| step.broken).sum::<u64>(), u64::from(torn), "{cut}");
            assert_eq!(scan(&mut source, LATER + QUIET_MS).0, [], "{cut}: it ends once");
        }
    }
}

#[cfg(unix)]
#[test]
fn d2_5_a_process_that_lives_is_not_given_up_however_quiet() {
    let dir = Dir::new();
    let mut source = dir.source();
    let mut spool = SpoolWriter::create(dir.0.path(), NAME);
    // No process has this id: the lock is what counts.
    let EventKind::ProcessStarted { door, home, configured_runtime, remote, .. } = started() else {
        unreachable!()
    };
    let kind = EventKind::ProcessStarted { door, home, configured_runtime, remote, pid: u32::MAX };
    spool.append(&DoorEvent { at: 1, kind });
    touch(&File::open(dir.path(NAME)).unwrap(), WRITTEN);
    let (steps, _) = scan(&mut source, WRITTEN + 100 * QUIET_MS);
    assert!(!steps[0].ended);
    assert_eq!(scan(&mut source, WRITTEN + 200 * QUIET_MS).0, []);
    drop(spool);
    assert_eq!(scan(&mut source, LATER - 1).0, [], "it may have been a moment ago");
    let (steps, _) = scan(&mut source, LATER);
    assert_eq!(steps[0].events, [DoorEvent { at: WRITTEN, kind: ended(None) }]);
    assert_eq!((steps[0].from, steps[0].ended), (steps[0].to, true));
}

#[test]
fn d2_5_lines_that_cannot_be_understood_are_counted_and_passed() {
    let long = format!(r#"{{"v":1,"at":1,"kind":"session_ended","session_id":"{}"}}"#, "x".repeat(MAX_LINE));
    let dir = Dir::new();
    for line in [
        STARTED.as_bytes(),
        b"",
        b"  \r",
        br#"{"v":2,"at":2,"kind":"process_ended"}"#,
        br#"{"v":2,"at":"tomorrow","kind":"process_ended","all":"new"}"#,
        br#"{"v":1,"at":2,"kind":"eclipse"}"#,
        br#"{"v":1,"at":2,"kind":"session_ended"}"#,
        br#"{"v":1,"at":"2","kind":"process_ended"}"#,
        br#"{"v":0,"at":2,"kind":"process_ended"}"#,
        br#"{"at":2,"kind":"process_ended"}"#,
        br#"{"v":1,"at":2,"kind":"process_en{"v":1,"at":2,"kind":"process_ended"}"#,
        b"[1]",
        b"\xff\xfe",
        b"\0\0\0",
        long.as_bytes(),
        OPENED.as_bytes(),
    ] {
        dir.append(NAME, &[line, b"\n"].concat());
    }
    let (steps, _) = scan(&mut dir.source(), WRITTEN);
    assert_eq!(kinds(&steps), [started(), opened()]);
    assert_eq!(steps.iter().map(|step| step.unknown).sum::<u64>(), 3);
    assert_eq!(steps.iter().map(|step| step.broken).sum::<u64>(), 9);
    assert!(!steps.last().unwrap().ended);
}

#[test]
fn d2_5_a_step_is_bounded_in_lines_and_in_bytes() {
    let dir = Dir::new();
    let role = "r".repeat(1000);
    dir.append(NAME, format!("{STARTED}\n").as_bytes());
    dir.append(NAME, format!("{OPENED}\n").repeat(2500).as_bytes());
    dir.append(
        NAME,
        format!("{}\n", OPENED.replace("}", &format!(",\"session_role\":\"{role}\"}}")))
            .repeat(2500)
            .as_bytes(),
    );
    let (steps, _) = scan(&mut dir.source(), WRITTEN);
    assert_eq!(kinds(&steps).len(), 5001);
    assert!(steps.len() >= 5, "{}", steps.len());
    for step in &steps {
        assert!(step.events.len() <= STEP_LINES);
        assert!(step.to - step.from < STEP_BYTES + MAX_LINE as u64);
    }
    assert!(steps.windows(2).all(|pair| pair[0].to == pair[1].from));
}

#[test]
fn r71_what_the_ledger_did_not_take_is_read_again() {
    let dir = Dir::new();
    dir.append(NAME, whole().as_bytes());
    let mut source = dir.source();
    source.scan(WRITTEN, &mut |_| Err(Closed)).unwrap_err();
    let (steps, _) = scan(&mut source, WRITTEN);
    assert_eq!(kinds(&steps).len(), 3);
    // Another process was faster, up to here.
    source.reset(NAME.into(), SpoolCursor { offset: STARTED.len() as u64 + 1, ended: false });
    assert_eq!(kinds(&scan(&mut source, WRITTEN).0), [opened(), ended(Some(Exit::Code(0)))]);
    let cursor = SpoolCursor { offset: whole().len() as u64, ended: true };
    let mut source = SpoolSource::new(dir.0.path().to_owned(), [(NAME.into(), cursor)]);
    assert_eq!(scan(&mut source, LATER).0, [], "a restart reads nothing twice");
}

#[cfg(unix)]
#[test]
fn r73_a_link_a_fifo_and_a_directory_planted_as_spools_are_skipped() {
    let dir = Dir::new();
    dir.append("elsewhere", whole().as_bytes());
    std::os::unix::fs::symlink("elsewhere", dir.path(NAME)).unwrap();
    fs::create_dir(dir.path("d.jsonl")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(dir.path("f.jsonl")).status().unwrap();
    assert!(fifo.success());
    let (steps, seen) = scan(&mut dir.source(), LATER);
    assert_eq!((steps, seen.skipped, seen.unread), (Vec::new(), 3, Vec::new()));
}

#[test]
fn r74_one_unreadable_file_costs_nobody_else() {
    let dir = Dir::new();
    dir.append(NAME, whole().as_bytes());
    let mut source = SpoolSource::new(dir.path(NAME), []);
    let (steps, seen) = scan(&mut source, LATER);
    assert_eq!((steps, seen.unread.len()), (Vec::new(), 1), "a file where the directory should be");
}

#[test]
fn d2_5_a_spool_goes_seven_days_after_its_process_ended_and_nothing_else_does() {
    let text = whole();
    let all = SpoolCursor { offset: text.len() as u64, ended: true };
    let part = SpoolCursor { offset: STARTED.len() as u64 + 1, ended: false };
    let other = "0a3c5a0e-1b1b-4c6e-9d0f-2f6a8f1f9a10.jsonl";
    let week = WRITTEN + KEPT_MS;
    for (case, name, content, cursor, now, goes) in [
        ("read to its end", NAME, text.as_str(), Some(all), week, true),
        ("a moment too early", NAME, &text, Some(all), week - 1, false),
        ("not read to its end", NAME, &text, Some(part), week, false),
        ("not ended", NAME, &text, Some(SpoolCursor { ended: false, ..all }), week, false),
        ("not known", NAME, &text, None, week, false),
        ("of another name", "mine.jsonl", &text, Some(all), week, false),
        ("of another ending", &NAME.replace(".jsonl", ".json"), &text, Some(all), week, false),
        ("no spool", NAME, &" ".repeat(text.len()), Some(all), week, false),
        (
            "that never started",
            NAME,
            &format!("{ENDED}{}\n", " ".repeat(text.len() - ENDED.len() - 1)),
            Some(all),
            week,
            false,
        ),
    ] {
        let dir = Dir::new();
        dir.append(name, content.as_bytes());
        dir.append(other, content.as_bytes());
        let ledger = cursor.map(|cursor| (name.into(), cursor));
        let gone = dir.source().expire(now, ledger);
        assert_eq!((gone == 1, !dir.path(name).exists()), (goes, goes), "{case}");
        assert!(dir.path(other).exists());
    }
}

#[cfg(unix)]
#[test]
fn d2_5_a_link_is_never_followed_to_a_deletion() {
    let dir = Dir::new();
    dir.append("elsewhere", whole().as_bytes());
    std::os::unix::fs::symlink("elsewhere", dir.path(NAME)).unwrap();
    let cursor = SpoolCursor { offset: whole().len() as u64, ended: true };
    let ledger = [(NAME.into(), cursor), ("../x/elsewhere".into(), cursor)];
    assert_eq!(dir.source().expire(WRITTEN + KEPT_MS, ledger), 0);
    assert!(dir.path("elsewhere").exists() && dir.path(NAME).is_symlink());
}

#[test]
fn a_fresh_name_is_a_spools_name() {
    for name in [super::super::fresh_name().as_str(), NAME] {
        assert!(is_spool_name(name), "{name}");
    }
    for name in ["", ".jsonl", "notes.jsonl", &NAME[1..], &NAME.to_uppercase(), "a-b-c-d-e.jsonl"] {
        assert!(!is_spool_name(name), "{name}");
    }
}
