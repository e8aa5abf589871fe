use std::path::{Path, PathBuf};

use super::*;
use crate::config::read_bounded;

const START: i64 = 1_000;
const END: i64 = 9_000;

/// What a run is seen to do, its output coming in pieces of that size.
fn seen(origin: Origin, output: &[u8], errors: &[u8], exit: Option<Exit>, piece: usize) -> Vec<DoorEvent> {
    let mut events = Vec::new();
    let mut tell = |event| events.push(event);
    let mut observer = Observer::new(origin);
    output.chunks(piece).for_each(|bytes| observer.output(bytes, 5_000, &mut tell));
    errors.chunks(piece).for_each(|bytes| observer.errors(bytes, 5_000, &mut tell));
    observer.finish(exit, END, &mut tell);
    events
}

fn process(output: &str, exit: Exit) -> Vec<DoorEvent> {
    let origin = Origin::Process { started_ms: START };
    let all = seen(origin, output.as_bytes(), b"", Some(exit), usize::MAX);
    for piece in [1, 7] {
        assert_eq!(seen(origin, output.as_bytes(), b"", Some(exit), piece), all, "in pieces of {piece}");
    }
    all
}

fn pipe(output: &str) -> Vec<DoorEvent> {
    seen(Origin::Pipe { started_ms: START }, output.as_bytes(), b"", None, usize::MAX)
}

/// The one turn: its session, its figures, whether anything was odd.
fn turn(events: &[DoorEvent]) -> (&str, &Headless) {
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TurnEnded { session_id, result, .. } => Some((session_id.as_str(), result)),
            _ => None,
        })
        .collect();
    assert_eq!(ends.len(), 1, "{events:?}");
    (ends[0].0, ends[0].1.headless.as_ref().unwrap())
}

fn oddities(events: &[DoorEvent]) -> Vec<Oddity> {
    let odd = |event: &DoorEvent| match event.kind {
        EventKind::Odd { oddity } => Some(oddity),
        _ => None,
    };
    events.iter().filter_map(odd).collect()
}

const INIT: &str =
    r#"{"type":"init","timestamp":"1970-01-01T00:00:02.500Z","session_id":"s","model":"auto"}"#;
const MESSAGE: &str = r#"{"type":"message","role":"user","content":"{\"type\":\"result\"}"}"#;
const RESULT: &str = r#"{"type":"result","timestamp":"1970-01-01T00:00:03Z","status":"success","stats":{"total_tokens":100,"input_tokens":70,"output_tokens":20}}"#;

fn lines(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn r63_one_process_is_one_turn_from_its_start_to_its_end() {
    let events = process(&lines(&[INIT, MESSAGE, RESULT]), Exit::Code(0));
    let opened = EventKind::SessionOpened {
        session_id: "s".into(),
        model: Some("auto".into()),
        resumed: false,
        session_role: None,
    };
    let (session_id, turn) = ("s".to_owned(), "1".to_owned());
    let started = EventKind::TurnStarted { session_id: session_id.clone(), turn: turn.clone() };
    let model = ModelStats {
        model: "auto".into(),
        prompt: 70,
        output: 20,
        thoughts_and_tool: 10,
        ..ModelStats::default()
    };
    let headless = Headless {
        form: HeadlessForm::StreamJson,
        success: true,
        stats: Some(vec![model]),
        exit: Some(Exit::Code(0)),
    };
    let result = TurnResult { headless: Some(headless), ..TurnResult::default() };
    let want = [
        DoorEvent { at: START, kind: opened },
        DoorEvent { at: START, kind: started },
        DoorEvent { at: END, kind: EventKind::TurnEnded { session_id, turn, result } },
        DoorEvent { at: END, kind: EventKind::ProcessEnded { exit: Some(Exit::Code(0)) } },
    ];
    assert_eq!(events, want);
}

#[test]
fn r63_a_pipe_has_no_exit_and_its_own_times() {
    let events = pipe(&lines(&[INIT, RESULT]));
    assert_eq!(events.iter().map(|event| event.at).collect::<Vec<_>>(), [2_500, 2_500, 3_000, END]);
    let (_, headless) = turn(&events);
    assert_eq!((headless.success, headless.exit), (true, None));
    assert_eq!(events[3].kind, EventKind::ProcessEnded { exit: None });
    // Without timestamps: when it was read.
    let untimed = lines(&[r#"{"type":"init","session_id":"s"}"#, r#"{"type":"result"}"#]);
    assert_eq!(pipe(&untimed).iter().map(|event| event.at).collect::<Vec<_>>(), [START, START, END, END]);
}

#[test]
fn row_40_a_stream_without_a_result_has_no_figure_whatever_the_exit() {
    for exit in [Exit::Code(0), Exit::Code(130), Exit::Signal(9)] {
        let events = process(&lines(&[INIT, MESSAGE]), exit);
        let (session, headless) = turn(&events);
        let want = Headless { form: HeadlessForm::StreamJson, success: false, stats: None, exit: Some(exit) };
        assert_eq!((session, headless), ("s", &want));
    }
}

#[test]
fn r68_a_stream_cut_after_init_is_open_until_its_end() {
    let mut events = Vec::new();
    let mut observer = Observer::new(Origin::Pipe { started_ms: START });
    observer.output(lines(&[INIT]).as_bytes(), 5_000, &mut |event| events.push(event));
    assert_eq!(events.len(), 2, "opened and started");
    observer.finish(None, END, &mut |event| events.push(event));
    assert!(!turn(&events).1.success);
}

#[test]
fn r63_a_line_may_be_torn_at_any_byte() {
    let whole = lines(&[INIT, RESULT]);
    for cut in INIT.len() + 1..whole.len() {
        let events = pipe(&whole[..cut]);
        let (session, headless) = turn(&events);
        assert_eq!(session, "s");
        // All but the newline is enough.
        let complete = cut == whole.len() - 1;
        assert_eq!((headless.success, headless.stats.is_some()), (complete, complete), "{cut}");
        let torn = cut > INIT.len() + 1 && !complete;
        assert_eq!(oddities(&events).len(), usize::from(torn), "{cut}");
    }
}

#[test]
fn r63_malformed_lines_are_counted_and_unknown_types_ignored() {
    let noise = ["Loaded cached credentials.", "", r#"{"type":"ini"#, INIT, "  ", "not json", "[1]", "{}"];
    let more = [r#"{"type":"eclipse"}"#, MESSAGE, "\u{7}", RESULT];
    let events = process(&lines(&[&noise[..], &more[..]].concat()), Exit::Code(0));
    // Before the form shows, only what looks like an event is one.
    assert_eq!(oddities(&events), [Oddity::MalformedFrame; 5]);
    assert!(turn(&events).1.success);
    let many = format!("{INIT}\n{}", "x\n".repeat(10_000));
    assert_eq!(oddities(&pipe(&many)).len() as u64, ODDITIES);
}

#[test]
fn r63_a_line_over_the_cap_is_passed_and_may_have_been_the_result() {
    let long = format!(r#"{{"type":"message","content":"{}"}}"#, "x".repeat(super::super::lines::MAX_LINE));
    let events = pipe(&lines(&[INIT, &long, RESULT]));
    assert_eq!(oddities(&events), [Oddity::OversizedFrame]);
    assert!(turn(&events).1.success);
    let unread = |events: &[DoorEvent]| {
        events.iter().any(|event| matches!(&event.kind, EventKind::TurnEnded { result, .. } if result.unread))
    };
    assert!(!unread(&events) && unread(&pipe(&lines(&[INIT, &long]))));
}

#[test]
fn r63_odd_results_are_counted() {
    assert_eq!(oddities(&pipe(&lines(&[INIT, RESULT, RESULT]))), [Oddity::DuplicateResponse]);
    let alone = pipe(&lines(&[RESULT]));
    assert_eq!(oddities(&alone), [Oddity::UnknownResponse]);
    assert_eq!(alone.len(), 2, "no session, no turn");
    let inconsistent = RESULT.replace("100", "10");
    let events = pipe(&lines(&[INIT, &inconsistent]));
    assert_eq!(oddities(&events), [Oddity::InconsistentStats]);
    assert_eq!(turn(&events).1.stats.as_ref().unwrap()[0].thoughts_and_tool, 0);
}

#[test]
fn r67_two_runs_in_one_pipe_are_two_turns() {
    let second = INIT.replace(r#""s""#, r#""t""#);
    let events = pipe(&lines(&[INIT, RESULT, &second, RESULT, INIT]));
    let turns: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TurnEnded { session_id, turn, result } => {
                Some((session_id.as_str(), turn.as_str(), result.headless.as_ref().unwrap().success))
            }
            _ => None,
        })
        .collect();
    assert_eq!(turns, [("s", "1", true), ("t", "2", true), ("s", "3", false)]);
    // The same line twice is no second run.
    assert_eq!(pipe(&lines(&[INIT, INIT, RESULT])).len(), 4);
}

#[test]
fn r65_a_document_is_one_turn_however_it_is_printed() {
    let stats = r#"{"models":{"m":{"tokens":{"prompt":70,"candidates":20}}}}"#;
    let compact = format!(r#"{{"session_id":"s","response":"{{\n}}","stats":{stats}}}"#);
    let value: serde_json::Value = serde_json::from_str(&compact).unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    for text in [
        compact.clone(),
        pretty.clone(),
        format!("Loaded cached credentials.\n{pretty}\n"),
        pretty.replace('\n', "\r\n"),
    ] {
        let events = process(&text, Exit::Code(0));
        let (session, headless) = turn(&events);
        assert_eq!((session, headless.form, headless.success), ("s", HeadlessForm::Json, true), "{text}");
        assert_eq!(headless.stats.as_ref().unwrap()[0].prompt, 70);
        assert_eq!(events[0].at, START, "what it asked came after its start");
    }
    let failed = compact.replace("\"stats\"", "\"error\":{\"code\":1},\"stats\"");
    let events = process(&failed, Exit::Code(1));
    let (_, headless) = turn(&events);
    assert_eq!((headless.success, headless.stats.is_some()), (false, true));
    // Older versions name no session.
    let nameless = process(&compact.replace("session_id", "session"), Exit::Code(0));
    assert_eq!(nameless.len(), 1);
    let torn = pipe(&pretty[..pretty.len() - 1]);
    assert_eq!(torn.len(), 1, "a torn document says nothing");
}

#[test]
fn r65_a_fatal_error_has_its_document_on_standard_error() {
    let stderr = "Warning: x\n{\n  \"session_id\": \"s\",\n  \"error\": {\n    \"message\": \"m\"\n  }\n}\n";
    let origin = Origin::Process { started_ms: START };
    let events = seen(origin, b"", stderr.as_bytes(), Some(Exit::Code(1)), 5);
    let (session, headless) = turn(&events);
    let want = Headless { form: HeadlessForm::Json, success: false, stats: None, exit: Some(Exit::Code(1)) };
    assert_eq!((session, headless), ("s", &want));
    let both = seen(origin, lines(&[INIT, RESULT]).as_bytes(), stderr.as_bytes(), None, 5);
    assert!(turn(&both).1.success, "standard output comes first");
}

#[test]
fn r63_text_names_no_session() {
    let text = "An answer.\n{\n  \"name\": \"a value\"\n}\n{\"type\": 7}\n{ not json\n";
    assert_eq!(process(text, Exit::Code(0)).len(), 1);
    assert_eq!(process("", Exit::Code(42)).len(), 1);
}

#[test]
fn r70_no_text_of_a_run_is_in_an_event() {
    let secret = "MARK-OF-A-TEXT";
    let message = format!(r#"{{"type":"message","content":"{secret}"}}"#);
    let tool = format!(r#"{{"type":"tool_use","tool_name":"{secret}","parameters":{{"a":"{secret}"}}}}"#);
    let error = format!(r#"{{"type":"error","message":"{secret}"}}"#);
    let result = RESULT.replace("\"status\"", &format!(r#""error":{{"message":"{secret}"}},"status""#));
    for output in [
        lines(&[INIT, &message, &tool, &error, secret, &result]),
        format!(r#"{{"session_id":"s","response":"{secret}","error":{{"message":"{secret}"}}}}"#),
    ] {
        let events = process(&output, Exit::Code(0));
        assert!(!serde_json::to_string(&events).unwrap().contains(secret));
    }
}

fn recordings() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recordings");
    let named = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("headless-");
    let mut all: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(named).collect();
    all.sort();
    all
}

/// Prompt, cached, output, thoughts and tool.
type Sums = [u64; 4];

fn add(sums: &mut Sums, more: Sums) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// What the scripted API billed.
fn billed(recording: &Path) -> Sums {
    let mut sums = Sums::default();
    for line in read_bounded(&recording.join("stub.jsonl"), 1 << 22).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let count = |key: &str| row["usage"][key].as_u64().unwrap_or(0);
        let rest = count("thoughtsTokenCount") + count("toolUsePromptTokenCount");
        add(
            &mut sums,
            [
                count("promptTokenCount"),
                count("cachedContentTokenCount"),
                count("candidatesTokenCount"),
                rest,
            ],
        );
    }
    sums
}

#[test]
fn r63_r65_the_statistics_of_all_recordings_are_what_was_billed() {
    // A stream that was cut or killed is in no statistics, and text has none.
    let silent = ["headless-cut", "headless-sigint", "headless-sigkill", "headless-text"];
    let mut outputs = 0;
    for recording in recordings() {
        let name = recording.file_name().unwrap().to_string_lossy().into_owned();
        let mut sums = Sums::default();
        for entry in std::fs::read_dir(&recording).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_output = [".json", ".jsonl"].iter().any(|ending| file.ends_with(ending))
                && !["expected.json", "stub.jsonl", "recorded-responses.jsonl"].contains(&file.as_str());
            if !is_output {
                continue;
            }
            let output = read_bounded(&path, 1 << 22).unwrap();
            let errors = read_bounded(&recording.join(format!("{file}.stderr")), 1 << 22).unwrap_or_default();
            let origin = Origin::Process { started_ms: START };
            let events = seen(origin, output.as_bytes(), errors.as_bytes(), Some(Exit::Code(0)), 4096);
            assert_eq!(oddities(&events), [], "{name}/{file}");
            let (session, headless) = turn(&events);
            assert_eq!(session.len(), 36, "{name}/{file}");
            assert_eq!(headless.stats.is_none(), silent.contains(&name.as_str()), "{name}/{file}");
            for stats in headless.stats.iter().flatten() {
                add(&mut sums, [stats.prompt, stats.cached, stats.output, stats.thoughts_and_tool]);
            }
            let stream = file.ends_with(".jsonl");
            let form = if stream { HeadlessForm::StreamJson } else { HeadlessForm::Json };
            assert_eq!(headless.form, form, "{name}/{file}");
            let failed = ["400.jsonl", "safety-always.jsonl", "safety-first-turn.json", "cut-then-ok.json"]
                .contains(&file.as_str());
            let unfinished = ["headless-sigint", "headless-sigkill"].contains(&name.as_str());
            assert_eq!(headless.success, !failed && !unfinished, "{name}/{file}");
            outputs += 1;
        }
        if silent.contains(&name.as_str()) {
            assert_eq!(sums, Sums::default(), "{name}");
        } else {
            assert_eq!(sums, billed(&recording), "{name}");
        }
    }
    assert!(outputs >= 28, "{outputs}");
}
