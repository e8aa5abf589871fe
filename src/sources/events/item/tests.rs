use super::*;
use crate::ledger::doors::Usage;

const AT: i64 = 1_796_053_744_042;

/// An item of that kind with more members.
fn item(kind: &str, more: &str) -> String {
    format!(r#"{{"v":1,"event_id":"e-1","at":{AT},"host":"w1","kind":"{kind}","session_id":"s"{more}}}"#)
}

fn read(json: &str) -> Result<Item, Problem> {
    super::read(&serde_json::from_str::<Box<RawValue>>(json).unwrap())
}

fn posted(json: &str) -> PostedEvent {
    match read(json) {
        Ok(Item::Event(event)) => *event,
        other => panic!("{json}: {other:?}"),
    }
}

fn kind(json: &str) -> EventKind {
    posted(json).event.kind
}

fn code(json: &str) -> &'static str {
    read(json).expect_err(json).code
}

#[test]
fn d4_every_kind_becomes_its_event() {
    let session_id = || "s".to_owned();
    let opened = |model: Option<&str>, resumed, role: Option<&str>| EventKind::SessionOpened {
        session_id: session_id(),
        model: model.map(str::to_owned),
        resumed,
        session_role: role.map(str::to_owned),
    };
    for (json, want) in [
        (item("session_opened", ""), opened(None, false, None)),
        (
            item("session_opened", r#","model":"auto","resumed":true,"session_role":"credential_check""#),
            opened(Some("auto"), true, Some("credential_check")),
        ),
        (
            item("session_opened", r#","model":null,"resumed":null,"session_role":null"#),
            opened(None, false, None),
        ),
        (
            item("model_set", r#","model":"pro""#),
            EventKind::ModelSet { session_id: session_id(), model: Some("pro".into()) },
        ),
        (item("model_set", r#","model":7"#), EventKind::ModelSet { session_id: session_id(), model: None }),
        (
            item("turn_started", r#","turn":"a""#),
            EventKind::TurnStarted { session_id: session_id(), turn: "a".into() },
        ),
        (
            item("turn_started", r#","turn":7"#),
            EventKind::TurnStarted { session_id: session_id(), turn: "7".into() },
        ),
        (item("session_ended", ""), EventKind::SessionEnded { session_id: session_id() }),
    ] {
        assert_eq!(kind(&json), want, "{json}");
    }
    let event = posted(&item("session_ended", r#","home":"/home/ana""#));
    let want = PostedEvent {
        event_id: "e-1".into(),
        host: "w1".into(),
        home: Some("/home/ana".into()),
        configured_runtime: None,
        remote: false,
        odd: None,
        event: DoorEvent { at: AT, kind: EventKind::SessionEnded { session_id: "s".into() } },
    };
    assert_eq!(event, want);
}

fn result(more: &str) -> TurnResult {
    match kind(&item("turn_ended", &format!(r#","turn":1{more}"#))) {
        EventKind::TurnEnded { result, .. } => result,
        other => panic!("{other:?}"),
    }
}

#[test]
fn d4_an_ending_is_read_by_the_rules_of_the_answer_to_a_prompt() {
    let usage = r#","usage":{"inputTokens":7,"outputTokens":2,"totalTokens":null}"#;
    let meta = r#","_meta":{"quota":{"token_count":{"input_tokens":7,"output_tokens":2}}}"#;
    let figure = Usage::Figure { input: 7, output: 2, thoughts: 0, cached_read: None, cached_write: 0 };
    let want = TurnResult {
        stop_reason: Some("end_turn".into()),
        usage: figure,
        marker: Some((7, 2)),
        ..TurnResult::default()
    };
    assert_eq!(result(&format!(r#","stop_reason":"end_turn"{usage}{meta}"#)), want);
    assert_eq!(result(&format!(r#","stopReason":"end_turn","error":null{usage}{meta}"#)), want);
    assert_eq!(result(""), TurnResult::default(), "nothing said: the ending is unknown");
    // R28: one broken counter leaves no figure.
    let broken = result(r#","usage":{"inputTokens":7,"outputTokens":2.0}"#);
    assert_eq!(broken.usage, Usage::Malformed);
    assert_eq!(result(r#","usage":null"#).usage, Usage::Malformed);
    let error = result(r#","error":{"code":-32800,"message":"cancelled"}"#);
    assert_eq!(error, TurnResult { error: Some(-32800), ..TurnResult::default() });
}

#[test]
fn d4_times_are_milliseconds_or_rfc_3339() {
    let at = |at: &str| read(&item("session_ended", "").replace(&AT.to_string(), at));
    for stated in [
        "1796053744042",
        r#""2026-11-30T15:49:04.042Z""#,
        r#""2026-11-30T16:49:04.042+01:00""#,
        r#""2026-11-30T15:49:04.042999Z""#,
    ] {
        let Ok(Item::Event(event)) = at(stated) else { panic!("{stated}") };
        assert_eq!(event.event.at, AT, "{stated}");
    }
    for stated in [
        "1796053744",
        "0",
        "-1",
        "1796053744042.0",
        "null",
        r#""today""#,
        r#""2026-11-30""#,
        "9999999999999999",
        "[]",
    ] {
        assert_eq!(at(stated).unwrap_err().code, "invalid_value", "{stated}: seconds, or no time");
    }
}

#[test]
fn d4_what_is_missing_or_no_name_is_said() {
    let whole = item("turn_started", r#","turn":1"#);
    assert!(read(&whole).is_ok());
    let long = format!(r#""{}""#, "x".repeat(ID_CHARS + 1));
    for (member, value) in
        [("event_id", r#""e-1""#), ("host", r#""w1""#), ("session_id", r#""s""#), ("turn", "1")]
    {
        let stated = format!(r#""{member}":{value}"#);
        assert!(whole.contains(&stated));
        for bad in ["null", r#""""#, "[]", "1.5", r#""a\nb""#, &long] {
            let problem = read(&whole.replace(&stated, &format!(r#""{member}":{bad}"#))).unwrap_err();
            assert_eq!(problem.code, "invalid_value", "{member}: {bad}");
            assert!(problem.message.contains(&format!("`{member}`")), "{problem:?}");
        }
        let absent = whole.replace(&stated, r#""x":1"#);
        assert_eq!(code(&absent), "invalid_value", "{member}");
    }
    for version in ["0", "2", "null", r#""1""#, "1.0"] {
        assert_eq!(code(&whole.replace(r#""v":1"#, &format!(r#""v":{version}"#))), "unsupported_version");
    }
    assert_eq!(code(&item("session_opened", r#","resumed":1"#)), "invalid_value");
    assert_eq!(code(&item("session_opened", r#","session_role":7"#)), "invalid_value");
    assert_eq!(code(&item("session_ended", r#","home":7"#)), "invalid_value");
    assert_eq!(code(&item("session_ended", r#","host":"w2""#)), "malformed_json", "a member twice");
    for json in ["[]", "7", "null", r#""x""#] {
        assert_eq!(code(json), "not_an_object");
    }
}

#[test]
fn d4_a_kind_of_a_later_version_is_unknown_and_no_error() {
    assert_eq!(read(&item("turn_paused", "")), Ok(Item::Unknown));
    // What other doors write is none of these.
    for kind in ["process_started", "lost", "odd", "cancel_sent", ""] {
        assert_eq!(read(&item(kind, "")), Ok(Item::Unknown));
    }
    assert_eq!(code(&item("x", "").replace(r#""kind":"x""#, r#""kind":7"#)), "invalid_value");
}

#[test]
fn d4_texts_are_refused_whatever_the_kind() {
    for more in [
        r#","prompt":"sentinel""#,
        r#","usage":{"inputTokens":7,"outputTokens":2},"output":[]"#,
        r#","_meta":{"x":{"messages":[]}}"#,
        r#","message":null"#,
    ] {
        for kind in ["session_opened", "turn_ended", "turn_paused"] {
            let problem = read(&item(kind, more)).unwrap_err();
            assert_eq!(problem.code, "content_not_accepted", "{kind} {more}");
            assert!(!problem.message.contains("sentinel"));
        }
    }
}

#[test]
fn r6_a_command_is_a_list_or_one_line() {
    let opened = |command: &str| read(&item("session_opened", &format!(r#","command":{command}"#)));
    let event = |command: &str| match opened(command) {
        Ok(Item::Event(event)) => *event,
        other => panic!("{command}: {other:?}"),
    };
    for (command, runtime, remote) in [
        (r#"["gemini","--acp"]"#, Some("gemini"), false),
        (r#""node /opt/gemini.js --acp""#, Some("gemini"), false),
        (r#""'/my tools/gemini' --acp""#, Some("gemini"), false),
        (r#""ssh w1 gemini --acp""#, Some("gemini"), true),
        (r#"["ssh","gemini","ls"]"#, Some("another agent"), true),
        (r#""codex""#, Some("another agent"), false),
        (r#"[]"#, None, false),
        ("null", None, false),
    ] {
        let event = event(command);
        assert_eq!((event.configured_runtime.as_deref(), event.remote), (runtime, remote), "{command}");
        assert_eq!(event.odd, None);
    }
    for unsplittable in [r#""gemini 'x""#, r#""gemini \"x""#, r#""gemini \\""#] {
        let event = event(unsplittable);
        let runtime = event.configured_runtime.as_deref();
        assert_eq!((runtime, event.odd), (Some("another agent"), Some(Oddity::UnsplittableCommand)));
    }
    for bad in ["7", "{}", "[7]"] {
        assert_eq!(opened(bad).unwrap_err().code, "invalid_value");
    }
}
