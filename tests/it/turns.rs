//! Turns from recorded sessions of the real CLI: what its client saw through
//! the observer, what its journals hold, and what its server billed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gemgauge::ledger::bound::Bound;
use gemgauge::ledger::doors::{Door, DoorEvent, EventKind, Exit, SpoolStep};
use gemgauge::ledger::model::Role;
use gemgauge::ledger::telemetry::{Call, TelemetryBatch, TelemetryKind, TelemetryRecord};
use gemgauge::ledger::tokens::Reading;
use gemgauge::sources::acp::observer::Observer;
use serde_json::Value;

use crate::support::books::{Books, NOW, TurnFacts};
use crate::support::files::{copy_tree, files, fixture};
use crate::support::transcript::{self, Line};

/// One billed request of a recording.
struct Bill {
    at: i64,
    kind: String,
    text: String,
    reading: Reading,
}

fn bills(recording: &Path) -> Vec<Bill> {
    let text = std::fs::read_to_string(recording.join("stub.jsonl")).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| {
        let count = |name: &str| row["usage"][name].as_u64().unwrap_or(0);
        #[expect(clippy::cast_possible_truncation, reason = "seconds of a recording")]
        let at = (row["t"].as_f64().unwrap() * 1000.0) as i64;
        Bill {
            at,
            kind: row["kind"].as_str().unwrap_or_default().to_owned(),
            text: row["lastText"].as_str().unwrap_or_default().to_owned(),
            reading: Reading {
                prompt: count("promptTokenCount"),
                cached: count("cachedContentTokenCount"),
                tool: count("toolUsePromptTokenCount"),
                output: count("candidatesTokenCount"),
                thoughts: count("thoughtsTokenCount"),
            },
        }
    })
    .collect()
}

/// When each prompt text stands in the journals, unix ms.
fn journaled_prompts(recording: &Path) -> Vec<(String, i64)> {
    let mut prompts = Vec::new();
    for path in files(recording).into_iter().filter(|path| path.to_string_lossy().contains("/chats/")) {
        let text = std::fs::read_to_string(path).unwrap();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if line["type"] == "user" {
                let said =
                    line["content"][0]["text"].as_str().or(line["content"].as_str()).unwrap_or_default();
                let at = line["timestamp"].as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok());
                prompts.extend(at.map(|at| (said.to_owned(), at.as_millisecond())));
            }
        }
    }
    prompts
}

fn prompt_text(line: &Line) -> Option<String> {
    let prompt = line.by_client && line.message["method"] == "session/prompt";
    prompt.then(|| line.message["params"]["prompt"][0]["text"].as_str().unwrap_or_default().to_owned())
}

/// The start of a recording's clock: no prompt stands in a journal, or is
/// billed, before it was sent.
fn began(lines: &[Line], recording: &Path) -> i64 {
    let journaled = journaled_prompts(recording);
    let bills = bills(recording);
    let seen = lines.iter().filter_map(|line| {
        let text = prompt_text(line)?;
        let journal = journaled.iter().filter(|(said, _)| *said == text).map(|(_, at)| *at).min();
        let bill = bills.iter().filter(|bill| bill.text == text).map(|bill| bill.at).min();
        Some(journal.or(bill)? - line.at)
    });
    seen.min().expect("a prompt of the recording was seen somewhere") - 1
}

/// The spool that the proxy would have written.
pub(crate) fn spool(recording: &Path, transcript: &str) -> SpoolStep {
    let lines = transcript::read(&recording.join(transcript));
    let began = began(&lines, recording);
    let mut events = vec![DoorEvent {
        at: began,
        kind: EventKind::ProcessStarted {
            door: Door::Acp,
            home: None,
            configured_runtime: Some("gemini".into()),
            remote: false,
            pid: 1,
        },
    }];
    let mut observer = Observer::new(None);
    let mut sink = |event| events.push(event);
    for Line { at, by_client, text, .. } in &lines {
        let bytes = format!("{text}\n");
        if *by_client {
            observer.client(began + at, bytes.as_bytes(), &mut sink);
        } else {
            observer.agent(began + at, bytes.as_bytes(), &mut sink);
        }
    }
    let end = began + lines.last().unwrap().at + 1;
    observer.end(end, Some(Exit::Code(0)), &mut sink);
    let name: Arc<str> = format!("{transcript}.jsonl").into();
    SpoolStep { name, from: 0, to: 1, events, broken: 0, unknown: 0, ended: true }
}

pub(crate) fn transcripts(recording: &Path) -> Vec<String> {
    let names = files(recording).into_iter().filter(|path| path.parent() == Some(recording));
    let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut names: Vec<_> =
        names.map(name).filter(|name| name.starts_with("acp") && name.ends_with(".jsonl")).collect();
    names.sort();
    names
}

/// A ledger of a recording, with the proxy's spools.
fn ledger(name: &str) -> (Books, PathBuf, tempfile::TempDir) {
    let recording = fixture("recordings").join(name);
    let home = tempfile::tempdir().unwrap();
    copy_tree(&recording.join("dot-gemini/tmp"), &home.path().join(".gemini/tmp"), NOW);
    let mut books = Books::of(&[home.path()]);
    books.set_now(NOW + 365 * 86_400_000);
    for transcript in transcripts(&recording) {
        books.spool(spool(&recording, &transcript));
    }
    books.scan();
    books.scanned();
    (books, recording, home)
}

fn word(turn: &TurnFacts) -> String {
    let total = turn.figure.map(|figure| figure.classes().total().to_string()).unwrap_or("none".to_owned());
    let reasons: Vec<_> = turn.reasons.iter().map(|reason| reason.as_str()).collect();
    format!("{} {} {}", turn.bound.as_str(), total, reasons.join(",")).trim_end().to_owned()
}

fn words(name: &str) -> Vec<String> {
    ledger(name).0.turns().iter().map(word).collect()
}

#[test]
fn row7_row12_row14_a_concrete_model_a_change_a_command_and_late_usage_are_complete() {
    assert_eq!(words("acp-concrete"), ["exact 5277", "exact 16593", "exact 11697", "exact 0", "exact 6039"]);
}

#[test]
fn row43_news_lost_between_two_turns_leave_neither_of_them_complete() {
    let recording = fixture("recordings").join("acp-concrete");
    let home = tempfile::tempdir().unwrap();
    copy_tree(&recording.join("dot-gemini/tmp"), &home.path().join(".gemini/tmp"), NOW);
    let mut books = Books::of(&[home.path()]);
    books.set_now(NOW + 365 * 86_400_000);
    for transcript in transcripts(&recording) {
        let mut step = spool(&recording, &transcript);
        let started = |event: &DoorEvent| matches!(event.kind, EventKind::TurnStarted { .. });
        let second = step.events.iter().enumerate().filter(|(_, event)| started(event)).nth(1).unwrap().0;
        let at = step.events[second].at;
        step.events.insert(second, DoorEvent { at, kind: EventKind::Lost { count: Some(3) } });
        books.spool(step);
    }
    books.scan();
    books.scanned();
    let words: Vec<_> = books.turns().iter().map(word).collect();
    // A prompt may be among what was lost, and so may another model: until the
    // next one is named, nothing is known of it.
    assert!(words[0].starts_with("at_least"), "{words:?}");
    assert!(words[1].starts_with("at_least") && words[1].contains("model_unobserved"), "{words:?}");
    assert!(words.last().unwrap().starts_with("exact"), "{words:?}");
}

#[test]
fn row20_a_cancelled_prompt_is_a_lower_bound_and_its_neighbours_are_complete() {
    let words = words("acp-cancel");
    assert_eq!(words.len(), 3);
    assert!(words[0].starts_with("exact"), "{words:?}");
    assert!(words[1].starts_with("at_least") && words[1].ends_with("cancelled"), "{words:?}");
    assert!(words[2].starts_with("exact"), "{words:?}");
}

#[test]
fn row27_an_automatic_model_leaves_lower_bounds() {
    let words = words("acp-auto");
    assert!(!words.is_empty());
    assert!(
        words.iter().all(|word| word.starts_with("at_least") && word.ends_with("auto_model")),
        "{words:?}"
    );
}

#[test]
fn r41_a_loaded_session_counts_what_was_before_once_and_in_its_own_turns() {
    let (books, ..) = ledger("acp-load");
    let turns = books.turns();
    assert!(turns.iter().all(|turn| turn.bound == Bound::Exact), "{turns:#?}");
    let sum: u64 = turns.iter().filter_map(|turn| turn.figure).map(|figure| figure.classes().total()).sum();
    assert_eq!(sum, 21_870, "all four requests, each once");
}

#[test]
fn two_sessions_of_one_process_have_their_own_turns() {
    let (books, ..) = ledger("acp-two-sessions");
    let turns = books.turns();
    let mut sessions: Vec<_> = turns.iter().map(|turn| &turn.session).collect();
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 2);
    let sum: u64 = turns.iter().filter_map(|turn| turn.figure).map(|figure| figure.classes().total()).sum();
    assert_eq!(sum, 16_212);
    assert!(turns.iter().all(|turn| turn.bound == Bound::Exact), "{turns:#?}");
}

/// Of each turn the billed requests that fall into it: all, and those of the main chat.
fn billed(turn: &TurnFacts, bills: &[Bill], next: i64) -> (Reading, Reading) {
    let mine = || bills.iter().filter(|bill| bill.at >= turn.started_at && bill.at < next);
    let sum = |bills: &mut dyn Iterator<Item = &Bill>| {
        bills.fold(Reading::default(), |sum, bill| sum.plus(bill.reading))
    };
    (sum(&mut mine()), sum(&mut mine().filter(|bill| bill.kind == "main")))
}

#[test]
fn no_figure_above_the_bill_is_called_complete_and_a_complete_one_equals_it() {
    let mut complete = 0;
    for path in crate::support::files::folders(&fixture("recordings")) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // Two sessions at once: their bills overlap in time.
        if transcripts(&path).is_empty() || name == "acp-two-sessions" || name.starts_with("version-") {
            continue;
        }
        let (books, recording, _home) = ledger(&name);
        let bills = bills(&recording);
        let turns = books.turns();
        assert!(!turns.is_empty(), "{name}");
        for (place, turn) in turns.iter().enumerate() {
            let next = turns.get(place + 1).map_or(i64::MAX, |turn| turn.started_at);
            let (all, main) = billed(turn, &bills, next);
            let Some(figure) = turn.figure else { continue };
            assert_eq!(figure.component_max(all), all, "{name}, turn {place}: above the bill");
            if turn.bound == Bound::Exact {
                complete += 1;
                assert_eq!(figure, main, "{name}, turn {place}");
            }
        }
        assert_eq!(books.turns(), {
            // A second reading of everything changes nothing.
            let mut again = books;
            again.restart();
            again.scan();
            again.scanned();
            again.turns()
        });
    }
    assert!(complete >= 12, "{complete} complete turns");
}

#[test]
fn counters_settle_each_token_once_whatever_order_the_evidence_comes_in() {
    for name in ["acp-concrete", "acp-cancel", "acp-auto", "acp-load"] {
        let (books, recording, home) = ledger(name);
        let settled = |books: &Books| {
            let tuples = books.facts().tuples;
            let mut by: BTreeMap<(String, String), (u64, u64, u64)> = BTreeMap::new();
            for tuple in tuples {
                let sum = by.entry((tuple.model, tuple.role)).or_default();
                sum.0 += tuple.tokens.total();
                sum.1 += tuple.settled[0].0;
                sum.2 += tuple.settled[1].0;
            }
            by
        };
        let doors_first = settled(&books);
        assert!(
            doors_first.values().all(|(tokens, exact, least)| *tokens == exact + least),
            "{doors_first:?}"
        );

        let mut journals_first = Books::of(&[home.path()]);
        journals_first.set_now(NOW + 365 * 86_400_000);
        journals_first.scan();
        for transcript in transcripts(&recording) {
            journals_first.spool(spool(&recording, &transcript));
        }
        journals_first.scanned();
        assert_eq!(journals_first.turns(), books.turns(), "{name}");
        let total = |sums: &BTreeMap<_, (u64, u64, u64)>| sums.values().map(|sum| sum.0).sum::<u64>();
        assert_eq!(total(&settled(&journals_first)), total(&doors_first), "{name}");
    }
}

/// The journals of a recording and its telemetry outfile.
fn telemetered(name: &str) -> (Books, PathBuf, tempfile::TempDir) {
    let recording = fixture("recordings").join(name);
    let home = tempfile::tempdir().unwrap();
    copy_tree(&recording.join("dot-gemini/tmp"), &home.path().join(".gemini/tmp"), NOW);
    let mut books = Books::of(&[home.path()]);
    books.set_now(NOW + 365 * 86_400_000);
    books.scan();
    books.outfile(&recording.join("telemetry.log"));
    books.scanned();
    (books, recording, home)
}

fn total(turns: &[TurnFacts]) -> u64 {
    turns.iter().filter_map(|turn| turn.figure).map(|figure| figure.classes().total()).sum()
}

#[test]
fn r66_an_interactive_session_is_complete_with_no_door_and_its_cancel_names_one_unanswered_request() {
    let (books, ..) = telemetered("interactive-telemetry");
    let turns = books.turns();
    let claims: Vec<_> = turns.iter().map(|turn| turn.bound.as_str()).collect();
    assert_eq!(claims, ["exact", "at_least", "exact", "exact"], "{turns:#?}");
    let reasons: Vec<_> = turns[1].reasons.iter().map(|reason| reason.as_str()).collect();
    assert!(reasons.contains(&"request_unanswered"), "{reasons:?}");
    // All that was answered; the bill has one request more, cut by the cancel.
    assert_eq!(total(&turns), 66_124);
    assert!(turns.iter().all(|turn| turn.settled));
    let roles: BTreeMap<String, u64> =
        books.facts().tuples.into_iter().fold(BTreeMap::new(), |mut by, tuple| {
            *by.entry(tuple.role).or_default() += tuple.requests;
            by
        });
    assert_eq!(roles["utility_router"], 3);
    assert_eq!(roles["utility_compressor"], 2);
    assert_eq!(roles["utility_tool"], 1);
    assert_eq!(roles["main"], 5);
}

#[test]
fn r66_a_headless_session_is_complete_to_the_token_with_router_search_subagent_and_retries() {
    let (books, recording, _home) = telemetered("telemetry-outfile");
    let turns = books.turns();
    assert_eq!(turns.len(), 1, "{turns:#?}");
    assert_eq!(turns[0].bound, Bound::Exact, "{turns:#?}");
    let billed = bills(&recording).iter().fold(Reading::default(), |sum, bill| sum.plus(bill.reading));
    let counted: u64 = books.facts().tuples.iter().map(|tuple| tuple.tokens.total()).sum();
    assert_eq!(counted, billed.classes().total(), "46,353 were billed, subagents included");
}

#[test]
fn r66_telemetry_that_comes_again_changes_nothing() {
    let (books, recording, _home) = telemetered("interactive-telemetry");
    let before = (books.turns(), books.facts().tuples);
    let copy = tempfile::tempdir().unwrap();
    let again = copy.path().join("again.log");
    std::fs::copy(recording.join("telemetry.log"), &again).unwrap();
    books.outfile(&again);
    books.scanned();
    assert_eq!((books.turns(), books.facts().tuples), before);
}

/// A batch as the receiver hands it over.
fn batch(records: Vec<TelemetryRecord>) -> TelemetryBatch {
    TelemetryBatch { records, ..TelemetryBatch::default() }
}

fn record(at: i64, kind: TelemetryKind) -> TelemetryRecord {
    TelemetryRecord { session: "5e1d20aa-3b3b-4c4c-8d8d-9e9e0f0f1a1a".into(), at, kind }
}

fn call(role: Role) -> Call {
    Call { prompt_id: "p########0".into(), role, model: Some("gemini-2.5-pro".into()) }
}

#[test]
fn r66_batches_late_twice_and_shuffled_give_the_same_ledger() {
    let reading = Reading { prompt: 100, output: 10, ..Reading::default() };
    let response = |at, role| {
        let kind = TelemetryKind::Response { call: call(role), duration_ms: 5, reading, response_id: None };
        record(at, kind)
    };
    let records = vec![
        record(NOW, TelemetryKind::Prompt { prompt_id: "p########0".into() }),
        record(NOW + 1, TelemetryKind::Request { call: call(Role::Router) }),
        response(NOW + 2, Role::Router),
        record(NOW + 3, TelemetryKind::Request { call: call(Role::Main) }),
        response(NOW + 9, Role::Main),
        record(NOW + 20, TelemetryKind::CleanExit),
    ];
    let play = |batches: Vec<Vec<TelemetryRecord>>| {
        let home = tempfile::tempdir().unwrap();
        let mut books = Books::of(&[home.path()]);
        // The receiver was there before the prompt.
        books.listens(NOW - 1_000);
        books.set_now(NOW + 30_000);
        books.scan();
        batches.into_iter().for_each(|records| books.telemetry(batch(records)));
        books.set_now(NOW + 60 * 60_000);
        books.scanned();
        let tuples = books.facts().tuples.into_iter();
        let mut tuples: Vec<_> = tuples.map(|t| (t.role, t.requests, t.tokens, t.settled)).collect();
        tuples.sort_by(|a, b| a.0.cmp(&b.0));
        (books.turns(), tuples)
    };
    let once = play(vec![records.clone()]);
    assert_eq!(once.0.len(), 1);
    assert_eq!((once.0[0].bound, total(&once.0)), (Bound::Exact, 220), "{:#?}", once.0);
    let mut reversed = records.clone();
    reversed.reverse();
    assert_eq!(play(vec![reversed.clone()]), once);
    assert_eq!(play(vec![records[3..].to_vec(), records[..3].to_vec(), records.clone()]), once);
    assert_eq!(play(vec![reversed, records]), once);
}
