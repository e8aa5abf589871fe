//! Which journals Gemini CLI deletes, and when.
//!
//! At every start the CLI cleans the project it starts in: sessions older than
//! `maxAge` or beyond `maxCount` go, and whatever it cannot resume (a header
//! and nothing else, no header, a subagent's file), each with **every** file of
//! the same eight characters.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::JournalFacts;
use crate::config::CliSettings;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// What Gemini CLI does to old journals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Retention {
    /// Whether it deletes anything.
    pub enabled: bool,
    pub max_age: Option<String>,
    pub max_count: Option<u64>,
    /// Why the setting could not be found out, or why the CLI ignores it.
    pub problem: Option<String>,
    #[serde(skip)]
    max_age_ms: Option<i64>,
}

impl Default for Retention {
    /// The CLI's defaults since 0.33.
    fn default() -> Self {
        Self {
            enabled: true,
            max_age: Some("30d".to_owned()),
            max_count: None,
            problem: None,
            max_age_ms: Some(30 * DAY),
        }
    }
}

impl Retention {
    /// The setting in force; where it cannot be found out, the worst is assumed.
    #[must_use]
    pub fn of(settings: &CliSettings) -> Self {
        match settings.json() {
            Ok(settings) => of_settings(&settings),
            Err(problem) => Self { problem: Some(problem), ..Self::default() },
        }
    }
}

/// The way the CLI reads it, with its defaults filled in. A setting that makes
/// no sense to the CLI switches the clean-up off.
fn of_settings(settings: &Value) -> Retention {
    let said = &settings["general"]["sessionRetention"];
    let mut retention = Retention::default();
    if let Some(enabled) = said["enabled"].as_bool() {
        retention.enabled = enabled;
    }
    match &said["maxAge"] {
        Value::String(age) => retention.max_age = Some(age.clone()).filter(|age| !age.is_empty()),
        Value::Null => {}
        other => retention.max_age = Some(other.to_string()),
    }
    retention.max_age_ms = retention.max_age.as_deref().and_then(period);
    retention.max_count = said["maxCount"].as_u64();
    let min_age = said["minRetention"].as_str().and_then(period).unwrap_or(DAY);
    let ignored = if retention.max_age.is_some() && retention.max_age_ms.is_none() {
        Some("maxAge is no period such as 30d")
    } else if retention.max_age_ms.is_some_and(|age| age < min_age) {
        Some("maxAge is less than minRetention")
    } else if said["maxCount"].as_f64().is_some_and(|count| count < 1.0) {
        Some("maxCount is less than 1")
    } else if retention.max_age.is_none() && retention.max_count.is_none() {
        Some("neither maxAge nor maxCount is set")
    } else {
        None
    };
    if let Some(why) = ignored.filter(|_| retention.enabled) {
        retention.enabled = false;
        retention.problem = Some(format!("{why}, so Gemini CLI does not clean up at all"));
    }
    retention
}

/// `30d`, `12h`, `2w` or `3m` in milliseconds.
fn period(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "h" => HOUR,
        "d" => DAY,
        "w" => 7 * DAY,
        "m" => 30 * DAY,
        _ => return None,
    };
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let number: i64 = digits.then(|| number.parse().ok()).flatten()?;
    (number > 0).then(|| number.saturating_mul(unit))
}

/// A journal that the CLI's next start in its project deletes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doomed {
    pub project_dir: String,
    pub file: String,
    pub why: Why,
    /// Whether the ledger holds all of it already.
    pub read: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    NotResumable,
    TooOld,
    BeyondMaxCount,
    /// Another file of the same eight characters goes.
    SameId,
}

/// The journals that go at the CLI's next start in their project, in order.
#[must_use]
pub fn doomed(retention: &Retention, journals: &[JournalFacts], now: i64) -> Vec<Doomed> {
    if !retention.enabled {
        return Vec::new();
    }
    let mut projects: BTreeMap<&str, Vec<&JournalFacts>> = BTreeMap::new();
    for journal in journals.iter().filter(|journal| journal.is_there()) {
        projects.entry(&journal.project_dir).or_default().push(journal);
    }
    projects.into_values().flat_map(|journals| doomed_of_project(retention, journals, now)).collect()
}

fn doomed_of_project(retention: &Retention, mut journals: Vec<&JournalFacts>, now: i64) -> Vec<Doomed> {
    // Newest first, as the CLI counts them.
    journals.sort_by(|a, b| b.modified_at.cmp(&a.modified_at).then_with(|| a.file.cmp(&b.file)));
    let oldest = retention.max_age_ms.map(|age| now.saturating_sub(age));
    let mut valid = 0;
    let mut reasons: Vec<Option<Why>> = Vec::with_capacity(journals.len());
    for journal in &journals {
        reasons.push(if !is_session_file(&journal.file) {
            None
        } else if journal.resumable == Some(false) {
            Some(Why::NotResumable)
        } else {
            valid += 1;
            match () {
                () if oldest.is_some_and(|oldest| journal.modified_at < oldest) => Some(Why::TooOld),
                () if retention.max_count.is_some_and(|max| valid > max) => Some(Why::BeyondMaxCount),
                () => None,
            }
        });
    }
    let ids: BTreeSet<&str> = journals
        .iter()
        .zip(&reasons)
        .filter(|(_, why)| why.is_some())
        .filter_map(|(journal, _)| short_id(&journal.file))
        .collect();
    let mut doomed: Vec<Doomed> = journals
        .iter()
        .zip(reasons)
        .filter_map(|(journal, why)| {
            let same = || id8(&journal.file).is_some_and(|id| ids.contains(id)).then_some(Why::SameId);
            Some(Doomed {
                project_dir: journal.project_dir.clone(),
                file: journal.file.clone(),
                why: why.or_else(same)?,
                read: journal.state == "read",
            })
        })
        .collect();
    doomed.sort_by(|a, b| a.file.cmp(&b.file));
    doomed
}

/// When the next journal gets too old, unix ms.
#[must_use]
pub fn next_expiry(retention: &Retention, journals: &[JournalFacts], now: i64) -> Option<i64> {
    let age = retention.max_age_ms.filter(|_| retention.enabled)?;
    let there = journals.iter().filter(|journal| journal.is_there() && is_session_file(&journal.file));
    there.map(|journal| journal.modified_at.saturating_add(age)).filter(|at| *at >= now).min()
}

/// Whether the clean-up looks at a file of `chats` at all.
pub(super) fn is_session_file(file: &str) -> bool {
    file.starts_with("session-")
        && !file.contains('/')
        && (file.ends_with(".jsonl") || file.ends_with(".json"))
}

/// The eight characters that tie files together for the clean-up.
fn short_id(file: &str) -> Option<&str> {
    let stem = file.strip_suffix(".jsonl").or_else(|| file.strip_suffix(".json"))?;
    let (_, id) = stem.rsplit_once('-')?;
    (id.len() == 8 && id.bytes().all(|b| b.is_ascii_alphanumeric())).then_some(id)
}

/// The same, for a subagent's file too: it lies in a directory of its parent's id.
fn id8(file: &str) -> Option<&str> {
    match file.split_once('/') {
        Some((parent, _)) => parent.get(..8),
        None => short_id(file).filter(|_| is_session_file(file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(text: &str) -> Retention {
        Retention::of(&CliSettings::Text(text.to_owned()))
    }

    fn journal(file: &str, days_old: i64, resumable: Option<bool>) -> JournalFacts {
        JournalFacts {
            project_dir: "proj".into(),
            file: file.into(),
            state: "read".into(),
            reason: None,
            modified_at: 100 * DAY - days_old * DAY,
            resumable,
        }
    }

    fn fates(retention: &Retention, journals: &[JournalFacts]) -> Vec<(String, Why)> {
        doomed(retention, journals, 100 * DAY).into_iter().map(|d| (d.file, d.why)).collect()
    }

    #[test]
    fn the_clis_defaults_hold_where_nothing_is_said() {
        for text in
            ["{}", "{\"general\":{}}", "{\"general\":{\"sessionRetention\":{}}}", "{\"general\":3}", "[]"]
        {
            assert_eq!(setting(text), Retention::default(), "{text}");
        }
        assert_eq!(Retention::of(&CliSettings::NoFile), Retention::default());
    }

    #[test]
    fn comments_are_allowed_and_strings_keep_their_slashes() {
        let text = "// mine\n{ /* keep\n all */ \"a\": \"http://x/*y*/\\\"//\",\n\
                    \"general\": {\"sessionRetention\": {\"enabled\": false // off\n}}}";
        let retention = setting(text);
        assert!(!retention.enabled && retention.problem.is_none(), "{retention:?}");
        let kept = CliSettings::Text(text.to_owned()).json().unwrap();
        assert_eq!(kept["a"], "http://x/*y*/\"//");
    }

    #[test]
    fn what_the_cli_cannot_use_switches_its_clean_up_off() {
        for said in [
            r#"{"maxAge":"soon"}"#,
            r#"{"maxAge":"0d"}"#,
            r#"{"maxAge":"12h"}"#,
            r#"{"maxAge":"2d","minRetention":"1w"}"#,
            r#"{"maxCount":0}"#,
            r#"{"maxAge":""}"#,
            r#"{"maxAge":30}"#,
        ] {
            let retention = setting(&format!("{{\"general\":{{\"sessionRetention\":{said}}}}}"));
            assert!(!retention.enabled && retention.problem.is_some(), "{said}");
        }
        let retention =
            setting(r#"{"general":{"sessionRetention":{"maxAge":"12h","minRetention":"1h","maxCount":5}}}"#);
        assert!(retention.enabled);
        assert_eq!((retention.max_age_ms, retention.max_count), (Some(12 * HOUR), Some(5)));
    }

    #[test]
    fn unreadable_settings_assume_the_worst() {
        let retention = setting("{");
        assert!(retention.enabled && retention.problem.is_some());
    }

    #[test]
    fn periods() {
        assert_eq!(period("24h"), Some(DAY));
        assert_eq!(period("2w"), Some(14 * DAY));
        assert_eq!(period("1m"), Some(30 * DAY));
        for text in ["", "d", "0d", "-1d", "+1d", "1y", "1.5d", "1 d", "é"] {
            assert_eq!(period(text), None, "{text}");
        }
    }

    #[test]
    fn a_stub_takes_every_file_of_its_eight_characters_with_it() {
        let journals = [
            journal("session-2026-11-30T10-00-34805873.jsonl", 0, Some(true)),
            journal("session-2026-11-30T11-00-34805873.jsonl", 0, Some(false)),
            journal("session-2026-11-30T10-00-0544eb2c.jsonl", 0, Some(true)),
            journal("34805873-d395-4b38-8dfd-725041a0e2ed/gc846s.jsonl", 0, None),
            journal("session-2026-11-30T10-00-34805873.jsonl.unreadable-1", 0, None),
        ];
        assert_eq!(
            fates(&Retention::default(), &journals),
            [
                ("34805873-d395-4b38-8dfd-725041a0e2ed/gc846s.jsonl".to_owned(), Why::SameId),
                ("session-2026-11-30T10-00-34805873.jsonl".to_owned(), Why::SameId),
                ("session-2026-11-30T11-00-34805873.jsonl".to_owned(), Why::NotResumable),
            ]
        );
        let off = Retention { enabled: false, ..Retention::default() };
        assert_eq!(fates(&off, &journals), []);
    }

    #[test]
    fn the_stub_of_one_project_spares_the_files_of_another() {
        let mut other = journal("session-2026-11-30T10-00-34805873.jsonl", 0, Some(true));
        other.project_dir = "other".into();
        let stub = journal("session-2026-11-30T11-00-34805873.jsonl", 0, Some(false));
        assert_eq!(fates(&Retention::default(), &[other, stub]).len(), 1);
    }

    #[test]
    fn old_ones_and_those_beyond_the_count_go() {
        let journals = [
            journal("session-a-00000001.jsonl", 31, Some(true)),
            journal("session-a-00000002.jsonl", 2, Some(true)),
            journal("session-a-00000003.jsonl", 1, None),
        ];
        assert_eq!(
            fates(&Retention::default(), &journals),
            [("session-a-00000001.jsonl".to_owned(), Why::TooOld)]
        );
        assert_eq!(next_expiry(&Retention::default(), &journals, 100 * DAY), Some(128 * DAY));
        let counted = Retention { max_count: Some(1), ..Retention::default() };
        assert_eq!(
            fates(&counted, &journals)[1],
            ("session-a-00000002.jsonl".to_owned(), Why::BeyondMaxCount)
        );
    }

    #[test]
    fn what_is_gone_cannot_go_again() {
        let mut gone = journal("session-a-00000001.jsonl", 31, None);
        gone.state = "gone".into();
        assert_eq!(fates(&Retention::default(), &[gone]), []);
    }
}
