//! The quick way through a line against the slow one, and the slow one
//! against a naive reader of its JSON.

use std::collections::BTreeSet;
use std::fs;
use std::sync::LazyLock;

use gemgauge::ledger::evidence::Broken;
use gemgauge::ledger::tokens::Reading;
use gemgauge::sources::journal::record::{Answer, Header, Line, Other, Previous, parse, read};
use gemgauge::sources::journal::{glue, json, name, record};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json as value};

use crate::support::cases;
use crate::support::files::{files, fixture};
use crate::support::records::{answer, checkpoint, header, user, with_calls};

/// Every line of every journal of the fixtures, each once, and some of our own.
static LINES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut lines = BTreeSet::new();
    for path in files(&fixture("")) {
        let text = path.to_str().unwrap();
        if text.split_once("/chats/").is_some_and(|(_, file)| name::of_path(file).is_some()) {
            let content = fs::read(&path).unwrap();
            lines.extend(content.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
        }
    }
    let lookalike = answer("nested", 3);
    for record in [
        with_calls(&answer("g1", 1), &lookalike),
        with_calls(&answer("g1", 1), r#"{"tokens":{"input":1,"output":2},"type":"gemini"}"#),
        with_calls(&answer("g1", 1), r#"{"$set":{"messages":[]},"sessionId":"x"}"#),
        answer("g1", 1),
        checkpoint(&[answer("g2", 2), user("u1"), answer("g3", 3)]),
        user("u1").replace("\"text\"", "\"functionResponse\""),
        user("u1").replace("hello", "<session_context> of today"),
        user("u1").replace("hello", &lookalike.replace('"', "\\\"")),
        header("s1", 3).replace("}", &format!(",\"messages\":[{lookalike}]}}")),
        r#"{"$rewindTo":"u1"}"#.to_owned(),
        r#"{"$patch":{"removeIds":["g1"],"updates":[{"id":"g1","tokens":null}]}}"#.to_owned(),
    ] {
        lines.insert(record.trim_end().as_bytes().to_vec());
    }
    assert!(lines.len() > 500, "the fixtures are found");
    lines.into_iter().filter(|line| line.len() < 20_000).collect()
});

/// What is done to a line.
#[derive(Clone, Debug)]
enum Mutation {
    Flip(Index, u8),
    CutEnd(Index),
    CutStart(Index),
    /// Another line behind it, from some byte on.
    Glue(Index, Index),
    /// The same JSON with white space.
    Spaced,
    /// The same JSON with its members in another order.
    Sorted,
    /// Doubled: a repeat glued on.
    Twice,
    Surround,
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        3 => (any::<Index>(), any::<u8>()).prop_map(|(at, bits)| Mutation::Flip(at, bits)),
        2 => any::<Index>().prop_map(Mutation::CutEnd),
        1 => any::<Index>().prop_map(Mutation::CutStart),
        3 => (any::<Index>(), any::<Index>()).prop_map(|(line, at)| Mutation::Glue(line, at)),
        1 => Just(Mutation::Spaced),
        1 => Just(Mutation::Sorted),
        1 => Just(Mutation::Twice),
        1 => Just(Mutation::Surround),
    ]
}

fn mutate(line: &mut Vec<u8>, mutation: &Mutation) {
    let json = |line: &[u8]| serde_json::from_slice::<Value>(line).ok();
    match mutation {
        _ if line.is_empty() => {}
        Mutation::Flip(at, bits) => {
            let at = at.index(line.len());
            line[at] ^= bits;
        }
        Mutation::CutEnd(at) => line.truncate(at.index(line.len())),
        Mutation::CutStart(at) => drop(line.drain(..at.index(line.len()))),
        Mutation::Glue(other, at) => {
            let other = other.get(&LINES);
            // No writer escapes the letters of its keys: that alone, glued on, is not seen.
            if memchr::memmem::find(other, b"\\u0074ype").is_some() {
                return;
            }
            let from =
                if other.is_empty() { 0 } else { at.index(other.len() * 2).saturating_sub(other.len()) };
            line.extend_from_slice(&other[from..]);
        }
        Mutation::Spaced => {
            if let Some(json) = json(line) {
                *line = serde_json::to_string_pretty(&json).unwrap().into_bytes();
            }
        }
        // Maps of serde_json are sorted.
        Mutation::Sorted => {
            if let Some(json) = json(line) {
                *line = json.to_string().into_bytes();
            }
        }
        Mutation::Twice => *line = line.repeat(2),
        Mutation::Surround => {
            line.insert(0, b' ');
            line.extend_from_slice(b" \t\r");
        }
    }
    line.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
}

/// Ids of the requests a line says, whatever kind of line it is.
fn ids(line: &Line, text: &[u8]) -> BTreeSet<String> {
    let of = |answers: &[Answer]| answers.iter().map(|answer| answer.id.to_string()).collect::<BTreeSet<_>>();
    match line {
        Line::Answer(answer) => BTreeSet::from([answer.id.to_string()]),
        Line::Header(header) => of(&header.answers),
        Line::Checkpoint(answers, _) => of(answers),
        Line::Broken(_) => {
            glue::search(text.trim_ascii()).records.iter().flat_map(|record| ids(record, b"")).collect()
        }
        Line::Blank | Line::Control | Line::Other(_) | Line::Repeat => BTreeSet::new(),
    }
}

/// Reads lines both ways, as [`gemgauge::sources::journal::tail`] does.
fn check(lines: &[Vec<u8>], damaged: bool) {
    let mut previous = Previous::default();
    let mut before: Option<Answer> = None;
    for line in lines {
        let (quick, slow) = (read(line, &mut previous), parse(line));
        let text = String::from_utf8_lossy(line);
        match (&quick, &slow) {
            (Line::Repeat, Line::Answer(again)) => {
                let first = before.as_ref().expect("a repeat has something before it");
                assert_eq!((&first.id, first.reading), (&again.id, again.reading), "{text}");
                assert_eq!(first.model, again.model, "{text}");
            }
            (Line::Repeat | Line::Other(_) | Line::Control | Line::Blank, Line::Broken(_)) => {
                let known =
                    before.iter().filter(|_| quick == Line::Repeat).map(|a| a.id.to_string()).collect();
                let found = ids(&slow, line);
                assert!(found.is_subset(&known), "{quick:?} hides {found:?}: {text}");
            }
            // The head of a damaged user record may say less of it than the whole: no matter.
            (Line::Other(quick), Line::Other(slow)) if damaged => {
                assert_eq!((quick.at, &quick.model), (slow.at, &slow.model), "{text}");
            }
            _ => assert_eq!(quick, slow, "{text}"),
        }
        match quick {
            Line::Answer(answer) => before = Some(answer),
            Line::Header(_) | Line::Broken(_) => previous.forget(),
            _ => {}
        }
    }
}

/// What a naive reader makes of one JSON value: the rules R16, R18 and R21 in
/// the plainest words.
fn naive(value: &Value) -> Line {
    let Some(record) = value.as_object() else { return Line::Broken(Broken::NotObject) };
    if record.get("$rewindTo").is_some_and(Value::is_string) {
        return Line::Control;
    }
    if record.get("id").is_some_and(Value::is_string) || record.get("type") == Some(&value!("gemini")) {
        return match message(record) {
            Message::Answer(answer) => Line::Answer(answer),
            Message::Bad(_) => Line::Broken(Broken::BadTokens),
            Message::Other(other) => Line::Other(other),
        };
    }
    let of = |list: Option<&Value>| {
        let (mut answers, mut bad) = (Vec::new(), Vec::new());
        for record in list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
            match message(record) {
                Message::Answer(answer) => answers.push(answer),
                Message::Bad(id) => bad.push(record::BadAnswer { id }),
                Message::Other(_) => {}
            }
        }
        (answers, bad)
    };
    let set = record.get("$set").and_then(Value::as_object);
    let control = set.is_some() || record.get("$patch").is_some_and(Value::is_object);
    if let Some(session) = record.get("sessionId").and_then(Value::as_str).filter(|_| !control) {
        let (answers, bad) = of(record.get("messages"));
        let started_at = record.get("startTime").and_then(Value::as_str).and_then(json::time);
        let subagent = record.get("kind") == Some(&value!("subagent"));
        return Line::Header(Header { session: session.into(), started_at, subagent, answers, bad });
    }
    let (answers, bad) = of(set.and_then(|set| set.get("messages")));
    match (control, answers.is_empty() && bad.is_empty()) {
        (true, false) => Line::Checkpoint(answers, bad),
        (true, true) => Line::Control,
        (false, _) => Line::Other(Other::default()),
    }
}

enum Message {
    Answer(Answer),
    Bad(Box<str>),
    Other(Other),
}

fn message(record: &Map<String, Value>) -> Message {
    let at = record.get("timestamp").and_then(Value::as_str).and_then(json::time);
    if record.get("type") != Some(&value!("gemini")) {
        return Message::Other(Other { at, prompt: is_prompt(record), model: None });
    }
    let model = record.get("model").and_then(Value::as_str).filter(|m| !m.is_empty()).map(str::to_owned);
    let (id, tokens) = (record.get("id").and_then(Value::as_str), record.get("tokens"));
    let (Some(id), Some(tokens)) = (id, tokens.filter(|tokens| !tokens.is_null())) else {
        return Message::Other(Other { at, prompt: false, model });
    };
    let count = |key: &str, required: bool| match tokens.get(key) {
        None if !required => Some(0),
        value => value.and_then(Value::as_u64).filter(|n| i64::try_from(*n).is_ok()),
    };
    let reading = || {
        Some(Reading {
            prompt: count("input", true)?,
            cached: count("cached", false)?,
            tool: count("tool", false)?,
            output: count("output", true)?,
            thoughts: count("thoughts", false)?,
        })
    };
    let Some(reading) = tokens.as_object().and_then(|_| reading()) else { return Message::Bad(id.into()) };
    let sum = [reading.output, reading.thoughts, reading.tool]
        .into_iter()
        .fold(reading.prompt, u64::saturating_add);
    let total_mismatch = count("total", true).is_some_and(|total| total != sum);
    Message::Answer(Answer { id: id.into(), at, model, reading, total_mismatch })
}

/// A user record that neither answers a tool nor is the session context.
fn is_prompt(record: &Map<String, Value>) -> bool {
    if record.get("type") != Some(&value!("user")) {
        return false;
    }
    let parts = record.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
    let answers = parts.iter().any(|part| part.get("functionResponse").is_some());
    let context = parts
        .first()
        .and_then(|part| part.get("text")?.as_str())
        .is_some_and(|text| text.starts_with("<session_context>"));
    !answers && !context
}

#[test]
fn r16_both_ways_agree_on_every_line_of_the_fixtures() {
    for line in LINES.iter() {
        check(std::slice::from_ref(line), false);
        check(&[line.clone(), line.clone()], false);
    }
}

#[test]
fn r16_a_naive_reader_agrees_on_every_line_of_the_fixtures() {
    let mut requests = 0;
    for line in LINES.iter() {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if let Ok(value) = serde_json::from_slice::<Value>(line) {
            let naive = naive(&value);
            requests += usize::from(matches!(naive, Line::Answer(_)));
            assert_eq!(parse(line), naive, "{}", String::from_utf8_lossy(line));
        }
    }
    assert!(requests > 100);
}

#[test]
fn r16_tokens_of_any_shape_are_read_as_the_rule_says() {
    let counters = [
        "0",
        "7",
        "9223372036854775807",
        "9223372036854775808",
        "-1",
        "1.5",
        "3.0",
        "1e3",
        "null",
        "\"7\"",
        "true",
        "[]",
        "{}",
    ];
    for key in ["input", "output", "cached", "thoughts", "tool", "total"] {
        for counter in counters {
            let mut line: Value = serde_json::from_str(&answer("g1", 1)).unwrap();
            line["tokens"][key] = serde_json::from_str(counter).unwrap();
            let text = line.to_string();
            assert_eq!(parse(text.as_bytes()), naive(&line), "{text}");
        }
    }
    for tokens in ["null", "0", "[]", "\"x\"", "true", "{}", "{\"input\":1}", "{\"output\":1,\"input\":2}"] {
        for id in ["\"g1\"", "3", "null", "\"\""] {
            let text = format!(r#"{{"id":{id},"type":"gemini","tokens":{tokens},"model":""}}"#);
            assert_eq!(parse(text.as_bytes()), naive(&serde_json::from_str(&text).unwrap()), "{text}");
        }
    }
}

#[test]
fn r19_a_lone_surrogate_in_a_text_breaks_no_record() {
    let line = answer("g1", 1).replace("\"ok\"", r#""cut \ud83d in half""#);
    assert!(matches!(parse(line.as_bytes()), Line::Answer(_)));
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn r16_the_quick_way_loses_no_request_that_the_slow_one_finds(
        picks in prop::collection::vec((any::<Index>(), prop::collection::vec(mutation(), 0..3), prop::bool::ANY), 1..5),
    ) {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for (pick, mutations, again) in picks {
            // Now and then the line before, changed.
            let mut line = match lines.last() {
                Some(last) if again => last.clone(),
                _ => pick.get(&LINES).clone(),
            };
            mutations.iter().for_each(|mutation| mutate(&mut line, mutation));
            lines.push(line);
        }
        check(&lines, true);
    }

    #[test]
    fn r16_a_naive_reader_agrees_on_every_valid_line(
        pick in any::<Index>(),
        mutations in prop::collection::vec(mutation(), 0..3),
    ) {
        let mut line = pick.get(&LINES).clone();
        mutations.iter().for_each(|mutation| mutate(&mut line, mutation));
        if let Ok(value) = serde_json::from_slice::<Value>(&line) {
            prop_assert_eq!(parse(&line), naive(&value));
        }
    }

    #[test]
    fn r19_random_bytes_break_nothing(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        pick in any::<Index>(),
        at in any::<Index>(),
    ) {
        let mut line = pick.get(&LINES).clone();
        let at = at.index(line.len() + 1);
        line.splice(at..at, bytes.iter().copied());
        for line in [&bytes, &line] {
            let _ = (read(line, &mut Previous::default()), record::bad_id(line), glue::legible_ids(line));
            check(std::slice::from_ref(line), true);
        }
    }
}
