//! Records as the CLI writes them, for tests that make journals.

use gemgauge::ledger::tokens::Reading;

pub(crate) const PRO: &str = "gemini-2.5-pro";

/// A header line, `minute` minutes after 2026-08-20T10:00Z.
pub(crate) fn header(session: &str, minute: u32) -> String {
    let time = time(minute, 0);
    format!(
        r#"{{"sessionId":"{session}","projectHash":"{}","startTime":"{time}","lastUpdated":"{time}","kind":"main"}}"#,
        "0f".repeat(32)
    ) + "\n"
}

/// An answer's record without newline; its counts come from `n`.
pub(crate) fn answer(id: &str, n: u64) -> String {
    answer_of(id, reading(n), PRO, &time(1, 0))
}

pub(crate) fn answer_of(id: &str, r: Reading, model: &str, time: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"{time}","type":"gemini","content":"ok","thoughts":[],"tokens":{{"input":{},"output":{},"cached":{},"thoughts":{},"tool":{},"total":{}}},"model":"{model}"}}"#,
        r.prompt,
        r.output,
        r.cached,
        r.thoughts,
        r.tool,
        r.prompt + r.output + r.thoughts + r.tool
    )
}

/// The counts of [`answer`]: every class differs, and so do any two sums.
pub(crate) fn reading(n: u64) -> Reading {
    Reading { prompt: 1000 + n, cached: 100, tool: n % 3, output: 10 * n + 1, thoughts: n % 7 }
}

/// The same record as the CLI appends it when the tool calls are done.
pub(crate) fn with_calls(answer: &str, args: &str) -> String {
    let open = answer.strip_suffix('}').unwrap();
    format!(
        r#"{open},"toolCalls":[{{"id":"c1","name":"read_file","args":{args},"status":"success","timestamp":"{}"}}]}}"#,
        time(1, 30)
    )
}

pub(crate) fn user(id: &str) -> String {
    format!(r#"{{"id":"{id}","timestamp":"{}","type":"user","content":[{{"text":"hello"}}]}}"#, time(0, 30))
        + "\n"
}

pub(crate) fn update() -> String {
    format!(r#"{{"$set":{{"lastUpdated":"{}"}}}}"#, time(2, 0)) + "\n"
}

/// A checkpoint of these records.
pub(crate) fn checkpoint<S: AsRef<str>>(records: &[S]) -> String {
    let records: Vec<&str> = records.iter().map(|record| record.as_ref().trim_end()).collect();
    format!(r#"{{"$set":{{"messages":[{}],"lastUpdated":"{}"}}}}"#, records.join(","), time(3, 0)) + "\n"
}

/// A `.json` session of these records.
pub(crate) fn document<S: AsRef<str>>(session: &str, records: &[S]) -> String {
    let records: Vec<&str> = records.iter().map(|record| record.as_ref().trim_end()).collect();
    let time = time(0, 0);
    format!(
        "{{\n  \"sessionId\": \"{session}\",\n  \"startTime\": \"{time}\",\n  \"messages\": [\n    {}\n  ],\n  \
         \"kind\": \"main\"\n}}",
        records.join(",\n    ")
    )
}

pub(crate) fn time(minute: u32, second: u32) -> String {
    format!("2026-08-20T{:02}:{:02}:{second:02}.000Z", 10 + minute / 60, minute % 60)
}
