//! Every journal of the fixtures, cut at every byte: what stands whole in the
//! part counts, nothing else does, and the rest makes it the whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use gemgauge::ledger::evidence::{Cursor, HomeId, JournalPath, JournalStep};
use gemgauge::ledger::tokens::Reading;
use gemgauge::sources::journal::discover::stamp;
use gemgauge::sources::journal::lines::Buffer;
use gemgauge::sources::journal::tail::Look;
use gemgauge::sources::journal::{Limits, Name, name};
use serde_json::Value;

use crate::support::books::{Books, NOW, scratch};
use crate::support::files::{append, files, fixture, write};

/// Journals up to this size are cut at every byte, others within their last two lines.
const SMALL: usize = 8 * 1024;

/// A journal of the fixtures: its path below `chats` and its content.
struct Journal {
    fixture: PathBuf,
    file: String,
    content: Vec<u8>,
}

/// Every journal of the fixtures, each content once.
fn journals() -> Vec<Journal> {
    let mut seen = BTreeSet::new();
    let mut journals = Vec::new();
    for path in files(&fixture("")) {
        let text = path.to_str().unwrap().to_owned();
        let Some((_, file)) = text.split_once("/chats/") else { continue };
        let content = fs::read(&path).unwrap();
        if name::of_path(file).is_some() && seen.insert(content.clone()) {
            journals.push(Journal { fixture: path, file: file.to_owned(), content });
        }
    }
    assert!(journals.len() > 100, "the fixtures are found");
    journals
}

impl Journal {
    fn is_document(&self) -> bool {
        self.name().format == name::Format::Json
    }

    fn name(&self) -> Name {
        name::of_path(&self.file).unwrap()
    }

    /// Where it is cut: at every byte, where a cut can matter. In a record that
    /// carries no tokens one place is as good as another.
    fn cuts(&self) -> Vec<usize> {
        let ends: Vec<usize> = memchr::memrchr_iter(b'\n', &self.content).take(3).collect();
        let small = self.content.len() <= SMALL || self.is_document();
        let from = if small { 0 } else { ends.last().map_or(0, |end| end + 1) };
        let mut cuts = Vec::new();
        let mut start = 0;
        for line in self.content.split_inclusive(|byte| *byte == b'\n') {
            let step = if memchr::memmem::find(line, b"gemini\"").is_some() { 1 } else { 23 };
            cuts.extend((start..start + line.len()).step_by(step).filter(|cut| *cut >= from));
            start += line.len();
        }
        cuts
    }
}

/// One look at a journal that holds `content`, from a cursor.
fn look(journal: &Journal, file: &File, cursor: &Cursor, quiet: bool, buffer: &mut Buffer) -> JournalStep {
    let path = JournalPath { home: HomeId(1), project_dir: "p".into(), file: journal.file.as_str().into() };
    let limits = Limits::default();
    let name = journal.name();
    let stamp = stamp(&file.metadata().unwrap());
    let look = Look { path: &path, name: &name, cursor, stamp, now_ms: NOW, quiet, limits: &limits };
    let looked = if journal.is_document() { look.read_document(file) } else { look.read(file, buffer) };
    let looked = looked.unwrap();
    assert!(!looked.more, "no fixture is larger than a step");
    looked.step
}

fn requests(step: &JournalStep, into: &mut BTreeMap<String, Reading>) {
    for request in step.sections.iter().flat_map(|section| &section.requests) {
        into.entry(request.id.to_string()).or_insert(request.reading);
    }
}

/// Ids that a line says, by its whole JSON: `None` where it is none.
fn said(line: &[u8]) -> Option<BTreeSet<String>> {
    let value: Value = serde_json::from_slice(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)).ok()?;
    let mut ids = BTreeSet::new();
    let mut take = |message: &Value| {
        if message["type"] == "gemini"
            && let (Some(id), Some(tokens)) = (message["id"].as_str(), message["tokens"].as_object())
            && good(tokens)
        {
            ids.insert(id.to_owned());
        }
    };
    take(&value);
    for list in [&value["$set"]["messages"], &value["messages"]] {
        list.as_array().into_iter().flatten().for_each(&mut take);
    }
    Some(ids)
}

/// Accounting R21.
fn good(tokens: &serde_json::Map<String, Value>) -> bool {
    let count = |value: &Value| value.as_u64().is_some_and(|n| i64::try_from(n).is_ok());
    ["input", "output"].iter().all(|key| tokens.get(*key).is_some_and(count))
        && ["cached", "thoughts", "tool"].iter().all(|key| tokens.get(*key).is_none_or(count))
}

/// What a growing journal says while somebody still writes it; of lines that
/// are no JSON it knows only that there are some.
#[derive(Default)]
struct Oracle {
    ids: BTreeSet<String>,
    broken: bool,
    /// Where the line begins that is not finished.
    line: usize,
}

impl Oracle {
    fn grow(&mut self, content: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', &content[self.line..]) {
            let line = &content[self.line..self.line + end];
            self.line += end + 1;
            match said(line) {
                Some(ids) => self.ids.extend(ids),
                None => self.broken |= !line.trim_ascii().is_empty(),
            }
        }
        let tail = &content[self.line..];
        if tail.trim_ascii_end().ends_with(b"}") {
            self.ids.extend(said(tail).unwrap_or_default());
        }
    }

    fn of(content: &[u8]) -> BTreeSet<String> {
        let mut oracle = Self::default();
        oracle.grow(content);
        oracle.ids
    }
}

#[test]
fn r19_a_journal_read_byte_by_byte_says_what_stands_whole_in_it() {
    let mut wrong = Vec::new();
    for journal in journals() {
        let mut buffer = Buffer::default();
        let mut grown = tempfile::tempfile().unwrap();
        let mut written = 0;
        let (mut cursor, mut have) = (Cursor::default(), BTreeMap::new());
        let mut oracle = Oracle::default();
        for cut in journal.cuts() {
            grown.write_all(&journal.content[written..cut]).unwrap();
            written = cut;
            let step = look(&journal, &grown, &cursor, false, &mut buffer);
            assert!(!step.revised, "{}: cut at {cut}", journal.fixture.display());
            requests(&step, &mut have);
            cursor = step.to;
            if !journal.is_document() {
                oracle.grow(&journal.content[..cut]);
                let got = have.keys();
                if !(got.clone().eq(&oracle.ids)
                    || oracle.broken && oracle.ids.iter().all(|id| have.contains_key(id)))
                {
                    let got: Vec<_> = got.collect();
                    wrong.push(format!(
                        "{} cut at {cut}: {got:?}, not {:?}",
                        journal.fixture.display(),
                        oracle.ids
                    ));
                    break;
                }
            }
        }
        grown.write_all(&journal.content[written..]).unwrap();
        // Settled, it is what it would be if read at once.
        let step = look(&journal, &grown, &cursor, true, &mut buffer);
        requests(&step, &mut have);
        let mut at_once = BTreeMap::new();
        let whole = look(&journal, &grown, &Cursor::default(), true, &mut buffer);
        requests(&whole, &mut at_once);
        if have != at_once || step.to.offset != whole.to.offset || step.to.context != whole.to.context {
            wrong.push(format!("{}: {have:?}, at once {at_once:?}", journal.fixture.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn r19_a_journal_cut_anywhere_and_settled_holds_no_more_than_the_whole() {
    for journal in journals().iter().filter(|journal| journal.fixture.to_str().unwrap().contains("/traps/")) {
        let mut buffer = Buffer::default();
        let mut all = BTreeMap::new();
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(&journal.content).unwrap();
        requests(&look(journal, &file, &Cursor::default(), true, &mut buffer), &mut all);
        for cut in journal.cuts().into_iter().rev() {
            file.set_len(cut as u64).unwrap();
            let mut part = BTreeMap::new();
            let step = look(journal, &file, &Cursor::default(), true, &mut buffer);
            requests(&step, &mut part);
            for (id, reading) in &part {
                // A glued line cut behind one of its records shows that one alone.
                assert!(
                    all.get(id) == Some(reading) || !Oracle::of(&journal.content[..cut]).contains(id),
                    "{} cut at {cut}: {id} {reading:?}",
                    journal.fixture.display()
                );
            }
            if !journal.is_document() {
                let whole = Oracle::of(&journal.content[..cut]);
                assert!(whole.iter().all(|id| part.contains_key(id)), "{} {cut}", journal.fixture.display());
            }
        }
    }
}

/// What a ledger says of each journal's home, in the order of the homes.
fn said_of(books: &Books) -> Vec<String> {
    let facts = books.facts();
    let mut said: Vec<String> = facts.requests.iter().map(|request| format!("{request:?}")).collect();
    said.extend(facts.undecodable.iter().map(|line| format!("{line:?}")));
    said.extend(
        facts.sessions.iter().map(|s| format!("{} {} {:?} {:?}", s.home, s.session, s.requests, s.reasons)),
    );
    said.sort();
    said
}

#[test]
fn r23_cut_in_the_middle_of_a_record_restarted_and_finished_is_the_whole() {
    let journals = journals();
    let place = |home: &Path, journal: &Journal| home.join(".gemini/tmp/p/chats").join(&journal.file);
    let settled = NOW - 3_600_000;
    let start = |cut: &dyn Fn(&Journal) -> usize, dir: &Path| {
        let homes: Vec<PathBuf> = (0..journals.len()).map(|n| dir.join(format!("{n:03}"))).collect();
        for (home, journal) in homes.iter().zip(&journals) {
            write(&place(home, journal), &journal.content[..cut(journal)], NOW);
        }
        homes
    };
    let dir = scratch();
    let homes = start(&|journal| journal.content.len(), dir.path());
    for (home, journal) in homes.iter().zip(&journals) {
        crate::support::files::touch(&place(home, journal), settled);
    }
    let mut books = Books::of(&homes);
    books.scan();
    let whole = said_of(&books);
    assert!(whole.len() > 400);
    for part in 1..8 {
        // Somewhere in a line, another one each time.
        let cut = |journal: &Journal| journal.content.len() * part / 8;
        let dir = scratch();
        let homes = start(&cut, dir.path());
        let mut books = Books::of(&homes);
        books.scan();
        books.restart();
        for (home, journal) in homes.iter().zip(&journals) {
            append(&place(home, journal), &journal.content[cut(journal)..], settled);
        }
        books.scan();
        let got = said_of(&books);
        let differs = whole.iter().filter(|line| !got.contains(line)).collect::<Vec<_>>();
        let extra = got.iter().filter(|line| !whole.contains(line)).collect::<Vec<_>>();
        assert!(
            differs.is_empty() && extra.is_empty(),
            "part {part}: missing {differs:#?}, extra {extra:#?}"
        );
        assert_eq!(books.facts().counted().0, books.facts().requests.len() as u64);
    }
}
