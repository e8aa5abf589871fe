//! Killed at any moment, the ledger is exact: nothing is lost, nothing counts
//! twice (architecture, house rules 1 and 2; accounting R17, R71).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gemgauge::ledger::tokens::Reading;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::support::Sandbox;
use crate::support::chats::{Spent, answer};
use crate::support::service::{spent, total};

/// How often a child is killed.
const KILLS: u64 = 400;

/// Seeded: what is written, and when a child dies, is drawn from it.
const SEED: u64 = 20_261_130;

/// A small generator (Steele, Lea and Flood, *SplitMix*).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

/// A journal as its writer knows it.
struct Open {
    path: PathBuf,
    session: String,
    /// Whole lines of answers in it, for checkpoints and repeats.
    answers: Vec<String>,
    /// The rest of a line that is written in two goes.
    rest: Option<(String, Reading)>,
}

/// Writes journals as the CLI does, at its worst, and knows what was billed.
struct Author {
    home: PathBuf,
    ledger: PathBuf,
    dice: Dice,
    journals: Vec<Open>,
    sessions: u64,
    requests: u64,
    billed: BTreeMap<String, Spent>,
}

impl Author {
    fn new(sandbox: &Sandbox) -> Self {
        let home = sandbox.home();
        fs::create_dir_all(home.join(".gemini/tmp")).unwrap();
        let ledger = sandbox.ledger();
        let (journals, billed) = (Vec::new(), BTreeMap::new());
        let mut author = Self { home, ledger, dice: Dice(SEED), journals, sessions: 0, requests: 0, billed };
        (0..4).for_each(|_| author.begin());
        author
    }

    fn chats(&self, project: &str) -> PathBuf {
        let chats = self.home.join(".gemini/tmp").join(project).join("chats");
        fs::create_dir_all(&chats).unwrap();
        chats
    }

    /// A new session's journal.
    fn begin(&mut self) {
        self.sessions += 1;
        let n = self.sessions;
        let session = format!("{n:08x}-0000-4000-8000-000000000000");
        let chats = self.chats(["one", "two"][usize::try_from(n % 2).unwrap()]);
        let path = chats.join(format!("session-2026-11-30T10-00-{n:08x}.jsonl"));
        let header = format!(
            r#"{{"sessionId":"{session}","startTime":"2026-11-30T10:00:00.000Z","lastUpdated":"2026-11-30T10:00:00.000Z","kind":"main"}}"#
        );
        append(&path, &format!("{header}\n"));
        self.journals.push(Open { path, session, answers: vec![header], rest: None });
    }

    fn reading(&mut self) -> Reading {
        let mut roll = |sides| self.dice.roll(sides);
        Reading {
            prompt: 1000 + roll(9000),
            cached: roll(1000),
            tool: roll(9),
            output: roll(500),
            thoughts: roll(99),
        }
    }

    /// One thing that happens to one journal.
    fn act(&mut self) {
        let which = usize::try_from(self.dice.roll(self.journals.len() as u64)).unwrap();
        if let Some((rest, reading)) = self.journals[which].rest.take() {
            append(&self.journals[which].path, &rest);
            self.bill(which, reading);
            return;
        }
        match self.dice.roll(20) {
            0..=8 => {
                let (line, reading) = self.answer(which);
                append(&self.journals[which].path, &format!("{line}\n"));
                self.journals[which].answers.push(line);
                self.bill(which, reading);
            }
            // In two goes, somewhere in the middle of the line.
            9..=11 => {
                let (line, reading) = self.answer(which);
                let cut = usize::try_from(1 + self.dice.roll(line.len() as u64 - 1)).unwrap();
                append(&self.journals[which].path, &line[..cut]);
                self.journals[which].answers.push(line.clone());
                self.journals[which].rest = Some((format!("{}\n", &line[cut..]), reading));
            }
            // The CLI died in a line, its next start writes behind it. What is
            // torn was billed and cannot be known: it is no part of the truth.
            12 => {
                let (torn, _) = self.answer(which);
                let (line, reading) = self.answer(which);
                append(&self.journals[which].path, &format!("{}{line}\n", &torn[..torn.len() / 3]));
                self.journals[which].answers.push(line);
                self.bill(which, reading);
            }
            13..=14 => {
                let journal = &self.journals[which];
                let history = journal.answers[1..].join(",");
                append(&journal.path, &format!("{{\"$set\":{{\"messages\":[{history}]}}}}\n"));
            }
            15 => {
                let journal = &self.journals[which];
                append(&journal.path, &format!("{}\n", journal.answers.last().unwrap()));
            }
            // Written anew, without what a checkpoint would repeat.
            16 => {
                let journal = &self.journals[which];
                let whole = journal.answers.join("\n") + "\n";
                let temporary = journal.path.with_extension("jsonl.tmp-1");
                fs::write(&temporary, whole).unwrap();
                fs::rename(&temporary, &journal.path).unwrap();
            }
            // Moved to another project directory.
            17 => {
                let to = self.chats("moved").join(self.journals[which].path.file_name().unwrap());
                let journal = &mut self.journals[which];
                if journal.path != to {
                    fs::copy(&journal.path, &to).unwrap();
                    fs::remove_file(&journal.path).unwrap();
                    journal.path = to;
                }
            }
            // A deletion takes back nothing that was read.
            18 if self.journals.len() > 3 && self.is_read(which) => {
                fs::remove_file(&self.journals.swap_remove(which).path).unwrap();
            }
            _ if self.journals.len() < 12 => self.begin(),
            _ => {}
        }
    }

    fn answer(&mut self, which: usize) -> (String, Reading) {
        self.requests += 1;
        let id = format!("{}#{}", self.journals[which].session, self.requests);
        let reading = self.reading();
        (answer(&id, ["gemini-2.5-pro", "gemini-2.5-flash"][which % 2], reading), reading)
    }

    fn bill(&mut self, which: usize, reading: Reading) {
        let session = self.journals[which].session.clone();
        self.billed.entry(session).or_default().add(1, &reading.classes());
    }

    /// Whether the ledger holds all of a journal, as its own cursor says.
    fn is_read(&self, which: usize) -> bool {
        let journal = &self.journals[which];
        let Ok(connection) = Connection::open_with_flags(&self.ledger, OpenFlags::SQLITE_OPEN_READ_WRITE)
        else {
            return false;
        };
        let (chats, file) = (journal.path.parent().unwrap(), journal.path.file_name().unwrap());
        let dir = chats.parent().unwrap().file_name().unwrap();
        let row = connection.query_row(
            "SELECT offset FROM journals WHERE project_dir = ?1 AND file = ?2 AND state = 'read'",
            [dir.to_str(), file.to_str()],
            |row| row.get::<_, i64>(0),
        );
        row.is_ok_and(|offset| offset.unsigned_abs() == fs::metadata(&journal.path).unwrap().len())
    }

    /// Finishes every line.
    fn finish(&mut self) {
        for which in 0..self.journals.len() {
            if let Some((rest, reading)) = self.journals[which].rest.take() {
                append(&self.journals[which].path, &rest);
                self.bill(which, reading);
            }
        }
    }
}

pub(crate) fn append(path: &Path, text: &str) {
    use std::io::Write as _;
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

pub(crate) fn spawn(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
}

/// Rows and counters fit at any moment, and nothing is there twice.
fn assert_counters_fit(ledger: &Path) {
    let connection = Connection::open_with_flags(ledger, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    // On a busy machine nobody may have lived long enough to make the tables.
    let made = "SELECT count(*) FROM sqlite_schema WHERE name = 'requests'";
    if connection.query_row(made, [], |row| row.get::<_, i64>(0)).unwrap() == 0 {
        return;
    }
    // One statement sees one moment.
    let sql = "SELECT * FROM
        (SELECT count(*), coalesce(sum(prompt + tool), 0), coalesce(sum(output), 0), coalesce(sum(thoughts), 0)
         FROM requests),
        (SELECT coalesce(sum(requests), 0), coalesce(sum(uncached_input + cached_input + tool_input), 0),
                coalesce(sum(output), 0), coalesce(sum(thoughts), 0) FROM tuples),
        (SELECT count(DISTINCT message_id) FROM requests)";
    let columns = |row: &rusqlite::Row<'_>| (0..9).map(|n| row.get(n)).collect();
    let sums: Vec<i64> = connection.query_row(sql, [], columns).unwrap();
    assert_eq!(sums[..4], sums[4..8], "rows and counters");
    assert_eq!(sums[0], sums[8], "rows and ids");
}

/// Ends the author, also when a check fails.
struct EndOf<'a>(&'a AtomicBool);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn r71_killed_at_any_moment_the_ledger_is_exact() {
    let sandbox = Sandbox::new();
    let mut author = Author::new(&sandbox);
    let mut dice = Dice(SEED + 1);
    let done = AtomicBool::new(false);
    let author = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                author.act();
                // A pace, not a signal: nothing waits for it.
                std::thread::sleep(Duration::from_millis(2));
            }
            author.finish();
            author
        });
        // Whatever fails below, the author has to end, or the failure is never said.
        let end = EndOf(&done);
        for kill in 0..KILLS {
            // What serves stays for a while; what runs once is met at all its stages.
            let command = match kill % 4 {
                0 => sandbox.serve_command(&[]),
                _ => sandbox.command(&["report", "--since", "all"]),
            };
            let mut child = spawn(command);
            std::thread::sleep(Duration::from_micros(dice.roll(60_000)));
            child.kill().unwrap();
            child.wait().unwrap();
            if kill % 50 == 49 && sandbox.ledger().exists() {
                assert_counters_fit(&sandbox.ledger());
            }
        }
        drop(end);
        writer.join().unwrap()
    });

    let said = sandbox.run(&["report", "sessions", "--since", "all", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&said.out).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let by_session: BTreeMap<_, _> =
        rows.iter().map(|row| (row["session_id"].as_str().unwrap().to_owned(), spent(row))).collect();
    assert_eq!(by_session, author.billed);
    let billed = author.billed.values().fold(Spent::default(), |sum, spent| sum.plus(*spent));
    assert_eq!(total(&report), billed);
    assert!(billed.requests > 500, "{billed:?}");

    let service = sandbox.serve_ready(&[]);
    assert_eq!(service.metrics().spent(&[]), billed.pair());
    assert_eq!(service.terminate(), Some(0));
    assert_counters_fit(&sandbox.ledger());
    let connection = Connection::open(sandbox.ledger()).unwrap();
    let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    let broken = connection.prepare("PRAGMA foreign_key_check").unwrap().exists([]).unwrap();
    assert!(!broken, "every reference holds");
}
