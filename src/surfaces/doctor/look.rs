//! The file reads of a diagnosis: all of them, and nothing but reads.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use serde_json::Value;

use super::retention;
use super::{HomeFacts, HomeState, JournalFacts, LedgerFacts, WatchFacts};
use crate::config::{CliSettings, Home, read_bounded};
use crate::store::read::JournalRow;

/// How far into a journal a first message is looked for.
const PEEK_LIMIT: u64 = 1 << 20;

/// Looks at a home: whether it can be read, what Gemini CLI is told to delete,
/// and which of its journals, as the ledger knows them, the CLI can resume.
#[must_use]
pub fn home(home: &Home, imported: bool, rows: Vec<JournalRow>) -> HomeFacts {
    let gemini = home.path.join(".gemini");
    let tmp = gemini.join("tmp");
    let directories: BTreeSet<String> = rows.iter().map(|row| parent(&tmp, row)).collect();
    let projects: BTreeSet<&String> = rows.iter().map(|row| &row.project_dir).collect();
    // The home, .gemini and tmp themselves, each project, and each directory with journals.
    let watched = 3 + projects.len() + directories.len();
    let journals = rows.into_iter().map(|row| journal(&tmp, row)).collect();
    HomeFacts {
        name: home.name.clone(),
        path: home.path.clone(),
        state: state(&home.path, &gemini, &tmp),
        imported,
        journals,
        retention: CliSettings::of_home(&home.path),
        directories: watched as u64,
    }
}

fn parent(tmp: &Path, row: &JournalRow) -> String {
    let file = tmp.join(&row.project_dir).join("chats").join(&row.file);
    file.parent().map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default()
}

fn state(home: &Path, gemini: &Path, tmp: &Path) -> HomeState {
    let look = |dir: &Path| match fs::read_dir(dir) {
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::NotFound => Some(HomeState::Absent),
        Err(error) => Some(HomeState::Unreadable(format!("{}: {error}", dir.display()))),
    };
    match (look(home), look(gemini), look(tmp)) {
        (Some(state), _, _) => state,
        (None, Some(HomeState::Absent), _) | (None, None, Some(HomeState::Absent)) => HomeState::NoGemini,
        (None, Some(state), _) | (None, None, Some(state)) => state,
        (None, None, None) => HomeState::Present,
    }
}

fn journal(tmp: &Path, row: JournalRow) -> JournalFacts {
    let JournalRow { project_dir, file, state, reason, modified_at, .. } = row;
    let mut journal = JournalFacts { project_dir, file, state, reason, modified_at, resumable: None };
    if journal.is_there() && retention::is_session_file(&journal.file) {
        let path = tmp.join(&journal.project_dir).join("chats").join(&journal.file);
        journal.resumable = is_resumable(&path).unwrap_or(None);
    }
    journal
}

/// Whether Gemini CLI could resume a journal: a header, and a prompt or an
/// answer. Reads up to the first of them; `None` where that is too far in.
fn is_resumable(path: &Path) -> io::Result<Option<bool>> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let whole = file.metadata()?.len() <= PEEK_LIMIT;
    let mut lines = BufReader::new(file.take(PEEK_LIMIT));
    let mut line = Vec::new();
    let mut text = Vec::new();
    let mut peek = Peek::default();
    while lines.read_until(b'\n', &mut line)? > 0 {
        if let Ok(record) = serde_json::from_slice::<Value>(&line) {
            peek.record(&record);
            if peek.is_resumable() {
                return Ok(Some(true));
            }
        }
        text.append(&mut line);
    }
    // A `.json` session of old is one document over many lines.
    if let Ok(document) = serde_json::from_slice::<Value>(&text) {
        peek.record(&document);
    }
    Ok(if peek.is_resumable() { Some(true) } else { whole.then_some(false) })
}

/// What was seen of a journal so far.
#[derive(Default)]
struct Peek {
    header: bool,
    message: bool,
    subagent: bool,
}

impl Peek {
    fn is_resumable(&self) -> bool {
        self.header && self.message && !self.subagent
    }

    fn record(&mut self, record: &Value) {
        if record["id"].is_string() {
            self.message |= is_resumable_message(record);
            return;
        }
        let metadata = if record["$set"].is_object() { &record["$set"] } else { record };
        self.header |= metadata["sessionId"].is_string() && metadata["projectHash"].is_string();
        self.subagent |= metadata["kind"] == "subagent";
        let messages = metadata["messages"].as_array();
        self.message |= messages.is_some_and(|messages| messages.iter().any(is_resumable_message));
    }
}

fn is_resumable_message(message: &Value) -> bool {
    let content = text_of(&message["content"]);
    let content = content.trim();
    let filled = |key: &str| message[key].as_array().is_some_and(|items| !items.is_empty());
    match message["type"].as_str() {
        Some("user") => {
            let ignored = ["/", "?", "<session_context>", "<hook_context>"];
            !content.is_empty() && !ignored.iter().any(|start| content.starts_with(start))
        }
        Some("gemini") => !content.is_empty() || filled("toolCalls") || filled("thoughts"),
        _ => false,
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect(),
        Value::Object(part) => part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

/// The system's limits on watching files.
#[must_use]
pub fn watch(enabled: bool) -> WatchFacts {
    let limit = |name: &str| {
        let text = read_bounded(&Path::new("/proc/sys/fs/inotify").join(name), 64).ok()?;
        text.trim().parse().ok()
    };
    WatchFacts {
        enabled,
        max_user_watches: limit("max_user_watches"),
        max_user_instances: limit("max_user_instances"),
    }
}

/// What can be seen of the ledger's file from outside; the caller adds what
/// only the store and the lock know.
#[must_use]
pub fn ledger_file(path: &Path) -> LedgerFacts {
    let mut facts = LedgerFacts { path: path.to_owned(), ..LedgerFacts::default() };
    match fs::metadata(path) {
        Ok(metadata) => {
            facts.exists = true;
            facts.bytes = metadata.len();
            facts.mode = mode(&metadata);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => facts.error = Some(error.to_string()),
    }
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    facts.bytes += fs::metadata(wal).map_or(0, |metadata| metadata.len());
    facts.directory_mode = path.parent().and_then(|dir| mode(&fs::metadata(dir).ok()?));
    facts
}

#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    Some(metadata.permissions().mode() & 0o7777)
}

#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HomeBilling;

    const HEADER: &str =
        r#"{"sessionId":"34805873-d395","projectHash":"52c4","startTime":"x","kind":"main"}"#;
    const CONTEXT: &str = concat!(
        r#"{"$set":{"messages":[{"id":"d0","type":"user","content":[{"text":"#,
        r#""<session_context>\nThis is the Gemini CLI."}]}]}}"#
    );

    fn resumable(lines: &[&str]) -> Option<bool> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j.jsonl");
        fs::write(&path, lines.join("\n")).unwrap();
        is_resumable(&path).unwrap()
    }

    #[test]
    fn a_header_with_the_start_up_context_cannot_be_resumed() {
        assert_eq!(resumable(&[HEADER, CONTEXT]), Some(false));
        assert_eq!(resumable(&[HEADER]), Some(false));
        assert_eq!(resumable(&[]), Some(false));
    }

    #[test]
    fn a_prompt_or_an_answer_makes_it_resumable() {
        for message in [
            r#"{"id":"1","type":"user","content":"hello"}"#,
            r#"{"id":"1","type":"user","content":[{"text":"hel"},{"text":"lo"}]}"#,
            r#"{"id":"1","type":"gemini","content":"hi"}"#,
            r#"{"id":"1","type":"gemini","content":"","toolCalls":[{}]}"#,
            r#"{"$set":{"messages":[{"id":"1","type":"user","content":"hello"}]}}"#,
        ] {
            assert_eq!(resumable(&[HEADER, CONTEXT, message]), Some(true), "{message}");
        }
        for message in [
            r#"{"id":"1","type":"user","content":"/quit"}"#,
            r#"{"id":"1","type":"user","content":[{"functionResponse":{}}]}"#,
            r#"{"id":"1","type":"gemini","content":" "}"#,
            r#"{"id":"1","type":"info","content":"hello"}"#,
            "{torn",
        ] {
            assert_eq!(resumable(&[HEADER, CONTEXT, message]), Some(false), "{message}");
        }
    }

    #[test]
    fn without_a_header_or_as_a_subagent_it_cannot_be_resumed() {
        let prompt = r#"{"id":"1","type":"user","content":"hello"}"#;
        assert_eq!(resumable(&[prompt]), Some(false));
        assert_eq!(resumable(&[&HEADER.replace("main", "subagent"), prompt]), Some(false));
    }

    #[test]
    fn an_old_document_is_read_whole() {
        let text = "{\n \"sessionId\": \"a\",\n \"projectHash\": \"b\",\n \"messages\": [\n  \
                    {\"id\": \"1\", \"type\": \"user\", \"content\": \"hello\"}\n ]\n}\n";
        assert_eq!(resumable(&[text]), Some(true));
    }

    #[test]
    fn a_first_message_too_far_in_is_not_known() {
        let long = format!(r#"{{"id":"1","type":"info","content":"{}"}}"#, "x".repeat(PEEK_LIMIT as usize));
        assert_eq!(resumable(&[HEADER, &long]), None);
    }

    #[test]
    fn a_home_is_absent_without_gemini_or_present() {
        let dir = tempfile::tempdir().unwrap();
        let look = |path: &Path| {
            let at = Home {
                path: path.to_owned(),
                name: "ana".into(),
                named: false,
                said: HomeBilling::default(),
            };
            home(&at, false, Vec::new()).state
        };
        assert_eq!(look(&dir.path().join("none")), HomeState::Absent);
        assert_eq!(look(dir.path()), HomeState::NoGemini);
        fs::create_dir_all(dir.path().join(".gemini/tmp")).unwrap();
        assert_eq!(look(dir.path()), HomeState::Present);
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(matches!(look(&dir.path().join("file")), HomeState::Unreadable(_)));
    }

    #[test]
    fn a_ledger_is_seen_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.db");
        assert!(!ledger_file(&path).exists);
        fs::write(&path, "12345").unwrap();
        fs::write(dir.path().join("ledger.db-wal"), "123").unwrap();
        let facts = ledger_file(&path);
        assert_eq!((facts.exists, facts.bytes), (true, 8));
    }
}
