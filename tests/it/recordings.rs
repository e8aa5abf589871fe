//! Sessions of the real CLI, against the reference reader's answers and the bill.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::books::{Billed, Books, Facts, NOW, sum};
use crate::support::files::{copy_tree, fixture, folders, json as read_json};

/// `{ requests, tokens }` the way expected.json writes it.
pub(crate) fn entry<'a>(requests: impl Iterator<Item = &'a Billed> + Clone) -> Value {
    let classes = sum(requests.clone());
    let mut tokens = serde_json::to_value(classes).unwrap();
    tokens["total"] = classes.total().into();
    json!({ "requests": requests.count(), "tokens": tokens })
}

/// [`entry`] of each value of `key`.
fn grouped(requests: &[&Billed], key: impl Fn(&Billed) -> &str) -> Value {
    let mut groups = serde_json::Map::new();
    for request in requests {
        let name = key(request);
        if !groups.contains_key(name) {
            let of_group = requests.iter().copied().filter(|other| key(other) == name);
            groups.insert(name.to_owned(), entry(of_group));
        }
    }
    Value::Object(groups)
}

/// A home in the shape of expected.json.
pub(crate) fn home(facts: &Facts) -> Value {
    let requests: Vec<&Billed> = facts.requests.iter().collect();
    let mut home = entry(requests.iter().copied());
    let mut sessions = serde_json::Map::new();
    let (mut prompt_only, mut header_only) = (Vec::new(), Vec::new());
    for listed in &facts.sessions {
        let own: Vec<&Billed> =
            requests.iter().copied().filter(|request| request.session == listed.session).collect();
        if own.is_empty() {
            if listed.prompted {
                prompt_only.push(listed.session.as_str());
            } else if listed.started {
                header_only.push(listed.session.as_str());
            }
            continue;
        }
        let mut session = entry(own.iter().copied());
        let subagents = own.iter().filter(|request| request.role.as_str() == "subagent").count();
        session["subagent_requests"] = subagents.into();
        session["by_model"] = grouped(&own, |request| &request.model);
        sessions.insert(listed.session.clone(), session);
    }
    prompt_only.sort_unstable();
    header_only.sort_unstable();
    home["sessions"] = Value::Object(sessions);
    home["by_model"] = grouped(&requests, |request| &request.model);
    home["by_role"] = grouped(&requests, |request| request.role.as_str());
    home["prompt_only_sessions"] = prompt_only.into();
    home["header_only_sessions"] = header_only.into();
    home["undecodable"] = facts.undecodable.len().into();
    home["failed_files"] = facts.failed().into();
    home["revisions"] = facts.counter("journal_revisions", "").into();
    home["files"] = facts.journals.iter().filter(|journal| journal.state != "skipped").count().into();
    home
}

/// Where two JSON values differ, one line each.
pub(crate) fn differences(at: &str, want: &Value, got: &Value, out: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => {
            for (key, value) in want {
                differences(&format!("{at}/{key}"), value, got.get(key).unwrap_or(&Value::Null), out);
            }
            for (key, value) in got.iter().filter(|(key, _)| !want.contains_key(*key)) {
                out.push(format!("{at}/{key}: {value} is not expected"));
            }
        }
        _ if want == got => {}
        _ => out.push(format!("{at}: {got}, not {want}")),
    }
}

/// Reads the `dot-gemini` of a recording as the `.gemini` of a home.
fn read(dot_gemini: &Path) -> Facts {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(&dot_gemini.join("tmp"), &dir.path().join(".gemini/tmp"), NOW - 24 * 3600 * 1000);
    if dot_gemini.join("projects.json").exists() {
        std::fs::copy(dot_gemini.join("projects.json"), dir.path().join(".gemini/projects.json")).unwrap();
    }
    let mut books = Books::of(&[dir.path()]);
    books.scan();
    books.facts()
}

#[test]
fn every_recording_reads_as_the_reference_reader_says_and_never_above_the_bill() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for recording in folders(&fixture("recordings")) {
        let name = recording.file_name().unwrap().to_str().unwrap();
        let expected = read_json(&recording.join("expected.json"));
        let mut all = Vec::new();
        for (home_name, want) in expected["homes"].as_object().unwrap() {
            seen += 1;
            let dot_gemini = recording.join(home_name);
            let facts = if dot_gemini.join("tmp").exists() { read(&dot_gemini) } else { continue };
            differences(&format!("{name}/{home_name}"), want, &home(&facts), &mut wrong);
            if facts.counted() != (facts.requests.len() as u64, facts.classes()) {
                wrong.push(format!("{name}: counters {:?}", facts.counted()));
            }
            all.extend(facts.requests);
        }
        let journal = entry(all.iter());
        differences(&format!("{name}/journal"), &expected["journal"], &journal, &mut wrong);
        for (class, tokens) in journal["tokens"].as_object().unwrap() {
            let billed = expected["billed"]["tokens"][class].as_u64().unwrap();
            if tokens.as_u64().unwrap() > billed {
                wrong.push(format!("{name}: {class} is {tokens}, only {billed} were billed"));
            }
        }
        assert!(journal["requests"].as_u64() <= expected["billed"]["requests"].as_u64(), "{name}");
    }
    assert!(seen >= 43, "the recordings are found");
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}
