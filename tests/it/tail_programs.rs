//! Random programs of what happens to journals, against a model that knows
//! which requests were whole on disk when somebody looked.
//!
//! The model keeps two sets. What *must* be counted: ids of records that stood
//! whole in a file at a scan, or in a file that went away while it was held
//! open. What *may* be: any id that ever stood whole in a file. Between the two
//! lies what was written and taken away again before anybody could look.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gemgauge::ledger::tokens::Classes;
use gemgauge::sources::journal::Limits;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use crate::support::books::{Books, NOW, scratch};
use crate::support::cases;
use crate::support::files::{append, files, rename_over, write};
use crate::support::records::{answer, checkpoint, document, header, reading, update, user, with_calls};

/// The journals that programs write to, below `.gemini/tmp`.
const JOURNALS: [&str; 5] = [
    "p/chats/session-2026-08-20T10-00-aaaaaaaa.jsonl",
    "p/chats/session-2026-08-20T10-05-bbbbbbbb.jsonl",
    "p/chats/aaaaaaaa-0000-4000-8000-000000000001/sub1.jsonl",
    "q/chats/session-2026-08-20T10-00-aaaaaaaa.jsonl",
    "p/chats/session-2026-08-20T10-10-cccccccc.json",
];

const HELD_MS: i64 = 15 * 60 * 1000;

#[derive(Clone, Debug)]
enum Action {
    /// A whole line of a new request.
    Line(usize),
    /// A request written before, again, with tool calls that look like one.
    Repeat(usize, Index),
    /// The beginning of a new request's line.
    Partial(usize, Index),
    /// The rest of the line begun last, if it is still there to be finished.
    Complete(usize),
    /// The newline alone.
    Newline(usize),
    /// A checkpoint of requests written before and a new one.
    Checkpoint(usize, Vec<Index>),
    Header(usize),
    Noise(usize),
    /// The file is cut to a part of its length, in place.
    Truncate(usize, Index),
    /// Cut to nothing and grown past its old length, in place.
    Replace(usize),
    /// Another file takes its name: with its whole lines, or with none of them.
    RenameOver(usize, bool),
    Delete(usize),
    /// Deleted and made again at once: the inode may be the same.
    Recreate(usize),
    /// The CLI's rewrite of a journal that it could not read.
    Backup(usize),
    /// The project's directory is copied to another name.
    CopyDirectory,
    /// The `.json` is written anew, whole or cut.
    Document(Option<Index>),
    /// The process ends and another one starts.
    Restart,
    /// Another process looks, into the same ledger.
    Other,
    /// Two processes look before either hears of the other.
    Race,
    Wait(i64),
    Scan,
}

fn action() -> impl Strategy<Value = Action> {
    let lines = 0..4_usize;
    let any = any::<Index>;
    prop_oneof![
        8 => lines.clone().prop_map(Action::Line),
        2 => (lines.clone(), any()).prop_map(|(n, i)| Action::Repeat(n, i)),
        5 => (lines.clone(), any()).prop_map(|(n, i)| Action::Partial(n, i)),
        4 => lines.clone().prop_map(Action::Complete),
        1 => lines.clone().prop_map(Action::Newline),
        2 => (lines.clone(), prop::collection::vec(any(), 0..3)).prop_map(|(n, i)| Action::Checkpoint(n, i)),
        2 => lines.clone().prop_map(Action::Header),
        2 => lines.clone().prop_map(Action::Noise),
        1 => (lines.clone(), any()).prop_map(|(n, i)| Action::Truncate(n, i)),
        1 => lines.clone().prop_map(Action::Replace),
        2 => (lines.clone(), prop::bool::ANY).prop_map(|(n, keep)| Action::RenameOver(n, keep)),
        2 => lines.clone().prop_map(Action::Delete),
        2 => lines.clone().prop_map(Action::Recreate),
        1 => lines.prop_map(Action::Backup),
        1 => Just(Action::CopyDirectory),
        2 => prop::option::of(any()).prop_map(Action::Document),
        2 => Just(Action::Restart),
        3 => Just(Action::Other),
        1 => Just(Action::Race),
        2 => prop_oneof![Just(100), Just(3000), Just(6000), Just(20 * 60 * 1000)].prop_map(Action::Wait),
        10 => Just(Action::Scan),
    ]
}

/// What the test knows of one file.
#[derive(Default)]
struct File {
    modified: i64,
    /// The first process has it open.
    held: bool,
}

struct World {
    tmp: PathBuf,
    _dir: tempfile::TempDir,
    books: Books,
    other: Option<Books>,
    now: i64,
    /// Every record ever made, by its number: its id is `g<number>`.
    made: Vec<String>,
    files: BTreeMap<PathBuf, File>,
    /// What is missing of the line begun last in a journal.
    rest: BTreeMap<usize, String>,
    must: BTreeSet<String>,
    may: BTreeSet<String>,
    /// Whole in a held file that went away.
    owed: BTreeSet<String>,
    counted: (u64, Classes),
    backups: usize,
}

impl World {
    fn new(limits: Limits) -> Self {
        let dir = scratch();
        let books = Books::with(&[dir.path()], limits);
        Self {
            tmp: dir.path().join(".gemini/tmp"),
            _dir: dir,
            books,
            other: None,
            now: NOW,
            made: Vec::new(),
            files: BTreeMap::new(),
            rest: BTreeMap::new(),
            must: BTreeSet::new(),
            may: BTreeSet::new(),
            owed: BTreeSet::new(),
            counted: (0, Classes::default()),
            backups: 0,
        }
    }

    fn path(&self, journal: usize) -> PathBuf {
        self.tmp.join(JOURNALS[journal])
    }

    fn content(&self, path: &Path) -> Vec<u8> {
        fs::read(path).unwrap_or_default()
    }

    /// A new record; its number gives its counts.
    fn make(&mut self) -> String {
        let n = self.made.len() as u64;
        let record = answer(&format!("g{n}"), n);
        self.made.push(record.clone());
        record
    }

    fn make_header(&self, journal: usize) -> String {
        match journal {
            1 => header("bbbbbbbb-0000-4000-8000-000000000002", 5),
            2 => header("sub1", 1),
            _ => header("aaaaaaaa-0000-4000-8000-000000000001", 0),
        }
    }

    /// Notes that a file has other content now.
    fn wrote(&mut self, path: &Path) {
        let file = self.files.entry(path.to_owned()).or_default();
        file.modified = self.now;
        let content = self.content(path);
        for (n, record) in self.made.iter().enumerate() {
            // Behind its tool calls a record of its own ends otherwise.
            let open = record.strip_suffix('}').unwrap().as_bytes();
            if memchr::memmem::find(&content, open).is_some() {
                self.may.insert(format!("g{n}"));
            }
        }
    }

    /// Notes that a file is about to lose its name.
    fn leaves(&mut self, path: &Path) {
        if self.files.remove(path).is_some_and(|file| file.held) {
            self.owed.extend(whole(path, &self.content(path), true));
        }
    }

    fn append(&mut self, journal: usize, text: &str) {
        let path = self.path(journal);
        append(&path, text.as_bytes(), self.now);
        self.wrote(&path);
    }

    fn act(&mut self, action: &Action) {
        self.now += 3;
        match action {
            Action::Line(journal) => {
                let line = self.make() + "\n";
                self.rest.remove(journal);
                self.append(*journal, &line);
            }
            Action::Repeat(journal, index) => {
                if self.made.is_empty() {
                    return;
                }
                let record = index.get(&self.made).clone();
                let args = r#"{"type":"gemini","tokens":{"input":1,"output":1}}"#;
                self.rest.remove(journal);
                self.append(*journal, &(with_calls(&record, args) + "\n"));
            }
            Action::Partial(journal, index) => {
                let line = self.make() + "\n";
                let cut = 1 + index.index(line.len() - 1);
                self.append(*journal, &line[..cut]);
                self.rest.insert(*journal, line[cut..].to_owned());
            }
            Action::Complete(journal) => {
                if let Some(rest) = self.rest.remove(journal) {
                    self.append(*journal, &rest);
                }
            }
            Action::Newline(journal) => {
                self.rest.remove(journal);
                self.append(*journal, "\n");
            }
            Action::Checkpoint(journal, known) => {
                let mut records = Vec::new();
                if !self.made.is_empty() {
                    records.extend(known.iter().map(|index| index.get(&self.made).clone()));
                }
                records.push(self.make());
                self.rest.remove(journal);
                self.append(*journal, &checkpoint(&records));
            }
            Action::Header(journal) => {
                let header = self.make_header(*journal);
                self.rest.remove(journal);
                self.append(*journal, &header);
            }
            Action::Noise(journal) => {
                self.rest.remove(journal);
                self.append(*journal, &(user("u1") + &update()));
            }
            Action::Truncate(journal, index) => {
                let path = self.path(*journal);
                let mut content = self.content(&path);
                if content.is_empty() {
                    return;
                }
                content.truncate(index.index(content.len()));
                self.rest.remove(journal);
                write(&path, &content, self.now);
                self.wrote(&path);
            }
            Action::Replace(journal) => {
                let path = self.path(*journal);
                let len = self.content(&path).len();
                let mut content = self.make_header(*journal);
                while content.len() <= len {
                    content += &(self.make() + "\n");
                }
                self.rest.remove(journal);
                write(&path, content.as_bytes(), self.now);
                self.wrote(&path);
            }
            Action::RenameOver(journal, keep) => {
                let path = self.path(*journal);
                let content = if *keep { self.whole_lines(&path) } else { self.make_header(*journal).into() };
                let line = self.make() + "\n";
                self.leaves(&path);
                self.rest.remove(journal);
                rename_over(&path, &[&content, line.as_bytes()].concat(), self.now);
                self.wrote(&path);
            }
            Action::Delete(journal) => self.delete(*journal),
            Action::Recreate(journal) => {
                self.delete(*journal);
                let content = self.make_header(*journal) + &self.make() + "\n";
                self.append(*journal, &content);
            }
            Action::Backup(journal) => {
                let path = self.path(*journal);
                if !path.exists() {
                    return;
                }
                self.backups += 1;
                let kept = path.with_extension(format!("jsonl.unreadable-{}", self.backups));
                let content = self.content(&path);
                write(&kept, &content, self.now);
                self.wrote(&kept);
                let lines = self.whole_lines(&path);
                self.leaves(&path);
                self.rest.remove(journal);
                rename_over(&path, &lines, self.now);
                self.wrote(&path);
            }
            Action::CopyDirectory => self.copy_directory(),
            Action::Document(cut) => {
                let record = self.make();
                let known: Vec<String> = self.made.iter().rev().take(3).rev().cloned().collect();
                let mut text = document("cccccccc-0000-4000-8000-000000000003", &known);
                if let Some(cut) = cut {
                    text.truncate(cut.index(text.len()));
                }
                let path = self.path(4);
                write(&path, text.as_bytes(), self.now);
                self.wrote(&path);
                // Decoded before the cut, it was billed as well.
                if text.contains(&record) {
                    self.may.insert(format!("g{}", self.made.len() - 1));
                }
            }
            Action::Restart => {
                self.books.restart();
                self.owed.clear();
                self.files.values_mut().for_each(|file| file.held = false);
            }
            Action::Wait(ms) => self.now += ms,
            Action::Other | Action::Race | Action::Scan => self.scan(action),
        }
    }

    fn delete(&mut self, journal: usize) {
        let path = self.path(journal);
        self.leaves(&path);
        self.rest.remove(&journal);
        let _ = fs::remove_file(&path);
    }

    /// The whole lines of a journal that are records.
    fn whole_lines(&self, path: &Path) -> Vec<u8> {
        let content = self.content(path);
        let mut kept = Vec::new();
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            if line.ends_with(b"\n") && serde_json::from_slice::<Value>(line).is_ok() {
                kept.extend_from_slice(line);
            }
        }
        kept
    }

    fn copy_directory(&mut self) {
        let from = self.tmp.join("p/chats");
        if !from.exists() {
            return;
        }
        for file in files(&from) {
            let copy = self.tmp.join("q/chats").join(file.strip_prefix(&from).unwrap());
            if !copy.exists() {
                write(&copy, &self.content(&file), self.now);
                self.wrote(&copy);
            }
        }
    }

    fn scan(&mut self, action: &Action) {
        self.books.set_now(self.now);
        for (path, file) in &self.files {
            let quiet = self.now - file.modified >= Limits::default().quiet_ms;
            self.must.extend(whole(path, &fs::read(path).unwrap(), quiet));
        }
        match action {
            Action::Other => {
                self.other.get_or_insert_with(|| self.books.beside()).scan();
            }
            Action::Race => {
                let other = self.other.get_or_insert_with(|| self.books.beside());
                self.books.look();
                other.look();
                other.scan();
                self.books.scan();
            }
            _ => drop(self.books.scan()),
        }
        if !matches!(action, Action::Other) {
            self.must.append(&mut self.owed);
            for file in self.files.values_mut() {
                file.held = self.now - file.modified <= HELD_MS;
            }
        }
        self.check();
    }

    fn check(&mut self) {
        let facts = self.books.facts();
        let ids = facts.ids();
        let distinct: BTreeSet<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(distinct.len(), ids.len(), "nothing is counted twice");
        let lost: Vec<_> = self.must.difference(&distinct).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        let invented: Vec<_> = distinct.difference(&self.may).collect();
        assert!(invented.is_empty(), "never whole on disk: {invented:?}");
        for request in &facts.requests {
            let n: u64 = request.id[1..].parse().unwrap();
            assert_eq!(request.reading, reading(n), "{}", request.id);
        }
        // What was counted once stays.
        self.must = distinct;
        let counted = facts.counted();
        assert_eq!(counted, (ids.len() as u64, facts.classes()), "counters are the figures");
        let (was, is) = (&self.counted, &counted);
        assert!(is.0 >= was.0 && is.1.total() >= was.1.total(), "counters never fall");
        self.counted = counted;
    }
}

/// Ids of the records that stand whole in a file: on lines of their own, in
/// checkpoints, and at either end of a broken line; of a broken tail once the
/// file is quiet (accounting R16, R18, R19).
fn whole(path: &Path, content: &[u8], quiet: bool) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    if path.extension().is_some_and(|extension| extension == "json") {
        if let Ok(document) = serde_json::from_slice(content) {
            collect(&document, &mut ids);
        }
        return ids;
    }
    let tail = memchr::memrchr(b'\n', content).map_or(0, |at| at + 1);
    let content = match serde_json::from_slice::<Value>(&content[tail..]) {
        Err(_) if !quiet => &content[..tail],
        _ => content,
    };
    for line in content.split(|byte| *byte == b'\n') {
        let mut line = line.trim_ascii();
        // Whole values from the start, then the first that reaches the end.
        loop {
            let mut values = serde_json::Deserializer::from_slice(line).into_iter::<Value>();
            let Some(Ok(value)) = values.next() else { break };
            line = &line[values.byte_offset()..];
            collect(&value, &mut ids);
        }
        let at_end = (0..line.len()).filter(|at| line[*at] == b'{');
        if let Some(value) = at_end.map(|at| serde_json::from_slice(&line[at..])).find_map(Result::ok) {
            collect(&value, &mut ids);
        }
    }
    ids
}

fn collect(record: &Value, ids: &mut BTreeSet<String>) {
    if record["type"] == "gemini" && record["tokens"].is_object() {
        ids.insert(record["id"].as_str().unwrap().to_owned());
    }
    for list in [&record["$set"]["messages"], &record["messages"]] {
        list.as_array().into_iter().flatten().for_each(|message| collect(message, ids));
    }
}

fn run(limits: Limits, program: &[Action]) {
    let mut world = World::new(limits);
    for action in program {
        world.act(action);
    }
    // In the end, and once nobody writes any more, everything is in.
    world.act(&Action::Scan);
    world.act(&Action::Wait(6000));
    world.act(&Action::Scan);
    world.act(&Action::Restart);
    world.act(&Action::Scan);
    let again = world.books.facts();
    world.act(&Action::Scan);
    assert_eq!(again.counters, world.books.facts().counters, "a scan of nothing new writes nothing");
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn r23_whatever_happens_to_journals_each_request_counts_once(
        program in prop::collection::vec(action(), 1..60),
        small_steps: bool,
    ) {
        let small = Limits { step_bytes: 300, step_requests: 2, ..Limits::default() };
        run(if small_steps { small } else { Limits::default() }, &program);
    }
}
