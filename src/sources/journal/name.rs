//! What a journal's name says (accounting R12, R24, R46).

use std::sync::Arc;

use super::json;

/// The shape of a journal's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One record a line.
    Jsonl,
    /// One document, rewritten in place (before Gemini CLI 0.39).
    Json,
}

/// A journal's name taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub format: Format,
    /// The id part: of `session-<minute>-<id>.jsonl` the characters after the minute.
    pub id_part: String,
    /// The minute (UTC) or the millisecond in the name, unix ms; 0 where there is none.
    pub minute: i64,
    /// The parent session of a subagent's journal: its directory's name.
    pub parent: Option<Arc<str>>,
}

/// What a directory entry below `chats` is, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Journal(Name),
    /// The CLI's unfinished rewrite of a journal.
    Temporary,
    /// Not a journal's name.
    Foreign,
}

/// Classifies a file name directly below `chats`.
#[must_use]
pub fn main(file: &str) -> Kind {
    let Some(rest) = file.strip_prefix("session-") else { return Kind::Foreign };
    let Some((stem, format)) = split_extension(rest) else {
        return if rest.contains(".jsonl.tmp-") || rest.contains(".json.tmp-") {
            Kind::Temporary
        } else {
            Kind::Foreign
        };
    };
    let (minute, id_part) = split_time(stem);
    Kind::Journal(Name { format, id_part: id_part.to_owned(), minute, parent: None })
}

/// Classifies a file name below `chats/<parent session id>`.
#[must_use]
pub fn subagent(parent: &str, file: &str) -> Kind {
    match split_extension(file) {
        Some((stem, format)) if !stem.is_empty() => {
            Kind::Journal(Name { format, id_part: stem.to_owned(), minute: 0, parent: Some(parent.into()) })
        }
        _ if file.contains(".jsonl.tmp-") => Kind::Temporary,
        _ => Kind::Foreign,
    }
}

/// Takes the path of a journal below `chats` apart again.
#[must_use]
pub fn of_path(file: &str) -> Option<Name> {
    let kind = match file.split_once('/') {
        Some((parent, file)) => subagent(parent, file),
        None => main(file),
    };
    match kind {
        Kind::Journal(name) => Some(name),
        Kind::Temporary | Kind::Foreign => None,
    }
}

/// Stem and format, the CLI's backup suffix `.unreadable-<ms>` included.
fn split_extension(file: &str) -> Option<(&str, Format)> {
    let file = match file.rsplit_once(".unreadable-") {
        Some((kept, stamp)) if !stamp.is_empty() && stamp.bytes().all(|b| b.is_ascii_digit()) => kept,
        _ => file,
    };
    if let Some(stem) = file.strip_suffix(".jsonl") {
        return Some((stem, Format::Jsonl));
    }
    file.strip_suffix(".json").map(|stem| (stem, Format::Json))
}

/// `2026-11-30T15-21-b4265a7e` or `1780000000000-b4265a7e` into time and id part.
fn split_time(stem: &str) -> (i64, &str) {
    if let (Some(minute), Some(b"-")) = (stem.get(..16), stem.as_bytes().get(16..17)) {
        let (date, clock) = minute.split_at(11);
        if let Some(ms) = json::time(&format!("{date}{}:00Z", clock.replace('-', ":"))) {
            return (ms, &stem[17..]);
        }
    }
    match stem.split_once('-') {
        Some((ms, id)) if !ms.is_empty() && ms.bytes().all(|b| b.is_ascii_digit()) => {
            (ms.parse().unwrap_or(0), id)
        }
        _ => (0, stem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(kind: Kind) -> Name {
        match kind {
            Kind::Journal(name) => name,
            other => panic!("{other:?} is no journal"),
        }
    }

    #[test]
    fn r12_names_of_journals() {
        let name = name_of(main("session-2026-11-30T15-21-b4265a7e.jsonl"));
        assert_eq!((name.format, name.id_part.as_str()), (Format::Jsonl, "b4265a7e"));
        assert_eq!(name.minute, 1_796_052_060_000);
        let backup = name_of(main("session-2026-11-30T15-21-b4265a7e.jsonl.unreadable-1780000000000"));
        assert_eq!(backup, name);
        let imported = name_of(main("session-1780000000000-b4265a7e.jsonl"));
        assert_eq!((imported.minute, imported.id_part.as_str()), (1_780_000_000_000, "b4265a7e"));
        assert_eq!(name_of(main("session-2026-11-30T15-21-b4265a7e.json")).format, Format::Json);
    }

    #[test]
    fn r12_names_that_are_none() {
        assert_eq!(main("session-2026-11-30T15-21-b4265a7e.jsonl.tmp-123"), Kind::Temporary);
        for name in ["logs.json", "checkpoint-a.json", "session-x.txt", "session.jsonl", "x-session-a.jsonl"]
        {
            assert_eq!(main(name), Kind::Foreign, "{name}");
        }
        assert_eq!(main("session-2026-11-30T15-21-a.jsonl.unreadable-"), Kind::Foreign);
    }

    #[test]
    fn r46_a_subagents_journal_is_of_its_directory() {
        let name = name_of(subagent("230f5896-3c5b", "948a1be8.jsonl"));
        assert_eq!(name.parent.as_deref(), Some("230f5896-3c5b"));
        assert_eq!(of_path("230f5896-3c5b/948a1be8.jsonl"), Some(name));
        assert_eq!(subagent("p", ".jsonl"), Kind::Foreign);
    }
}
