//! No prompt, answer, tool argument, path inside the workspace, e-mail or
//! token leaves the journals (accounting R70).

use std::fs;
use std::path::Path;

use rusqlite::Connection;

use crate::support::Sandbox;
use crate::support::chats::{Project, answer, reading, stamp};
use crate::support::poll::until_eq;
use crate::support::service::Service;

const ANA: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const BEN: &str = "bbbbbbbb-0000-4000-8000-000000000002";

/// In every planted text, whatever else it is.
const SECRET: &str = "s3ntinel";

/// A home whose journals are full of what is nobody's business.
fn plant(sandbox: &Sandbox) {
    let project = Project::new(&sandbox.home(), "proj");
    fs::write(project.dir().join(".project_root"), format!("/home/{SECRET}-user/{SECRET}/proj")).unwrap();
    fs::write(project.dir().join("logs.json"), format!(r#"[{{"message":"{SECRET} log"}}]"#)).unwrap();
    let gemini = sandbox.home().join(".gemini");
    fs::write(gemini.join("oauth_creds.json"), format!(r#"{{"access_token":"{SECRET}-token"}}"#)).unwrap();
    fs::write(gemini.join("google_accounts.json"), format!(r#"{{"active":"{SECRET}@example.com"}}"#))
        .unwrap();
    fs::write(gemini.join("settings.json"), format!(r#"{{"apiKey":"{SECRET}-key"}}"#)).unwrap();

    let journal = project.session(ANA);
    let now = stamp();
    let user = format!(
        r#"{{"id":"u","timestamp":"{now}","type":"user","content":[{{"text":"{SECRET} prompt, mail {SECRET}@example.com"}}]}}"#
    );
    journal.line(&user);
    let call = format!(
        r#""toolCalls":[{{"id":"c","name":"write_file","args":{{"path":"/srv/{SECRET}/a.rs","content":"{SECRET} argument"}},"result":[{{"functionResponse":{{"response":{{"output":"{SECRET} output"}}}}}}],"status":"success"}}]"#
    );
    let spoken = answer("a1", "gemini-2.5-pro", reading(1))
        .replace("done.", &format!("{SECRET} answer"))
        .replace("of it", &format!("{SECRET} thought"));
    journal.line(&spoken);
    journal.line(&spoken.replacen(r#""tokens""#, &format!(r#"{call},"tokens""#), 1));
    journal.line(&format!(r#"{{"$set":{{"messages":[{user},{spoken}],"summary":"{SECRET} summary"}}}}"#));
    journal.line(&format!(r#"{{"$set":{{"memoryScratchpad":"{SECRET} scratchpad"}}}}"#));
    // Lines that cannot be read, in every way that has a message of its own.
    for broken in [
        format!(r#"{{"{SECRET} torn"#),
        format!(
            r#"{{"id":"a2","type":"gemini","content":"{SECRET}","tokens":{{"input":"{SECRET}","output":1}}}}"#
        ),
        format!(r#"{{"id":"a3","type":"gemini","content":"{SECRET} cut here{spoken}"#),
        format!(r#"["{SECRET}"]"#),
        format!(r#"{{"id":"a4","type":"gemini","timestamp":"{SECRET}","tokens":{{"input":1,"output":1}}}}"#),
        format!(r#"{{"type":"{SECRET}","id":7}}"#),
    ] {
        journal.line(&broken);
    }
    journal.raw(format!("{{\"id\":\"a5\",\"content\":\"{SECRET}\u{fffd}").as_bytes());
    journal.raw(b"\xff\xfe\n");
    journal.raw(format!(r#"{{"id":"a6","type":"gemini","content":"{SECRET} tail"#).as_bytes());
    journal.age();
    let second = project.session(BEN);
    second.line(&user);
    second.request();
    // The old format, whole and broken.
    for (name, rest) in [("cccccccc", "]}"), ("dddddddd", "")] {
        let document = format!(
            r#"{{"sessionId":"{name}-0000-4000-8000-000000000003","startTime":"{now}","messages":[{user},{spoken}{rest}"#
        );
        let path = project.dir().join(format!("chats/session-2026-11-30T10-00-{name}.json"));
        fs::write(path, document).unwrap();
    }
    let parent = project.dir().join("chats").join(ANA);
    fs::create_dir(&parent).unwrap();
    fs::write(parent.join("sub-agent.jsonl"), format!("{user}\n{}\n", spoken.replace("a1", "s1"))).unwrap();
}

fn assert_silent(what: &str, bytes: &[u8]) {
    let needle = SECRET.as_bytes();
    let at = bytes.windows(needle.len()).position(|window| window == needle);
    if let Some(at) = at {
        let from = at.saturating_sub(60);
        let around = &bytes[from..bytes.len().min(at + 60)];
        panic!("{what} holds the secret: …{}…", String::from_utf8_lossy(around));
    }
}

#[test]
fn r70_nothing_that_was_said_is_stored_printed_logged_or_served() {
    let sandbox = Sandbox::new();
    plant(&sandbox);
    let mut command = sandbox.serve_command(&["-vvv"]);
    command.env("GEMGAUGE_LOG_LEVEL", "trace");
    let service = Service::start(command, sandbox.path().join("serve.log"));
    service.wait_ready();
    let requests = 5; // a1 and what it was glued to, a4, s1, Ben's
    until_eq("all that can be read", &true, || service.spent().requests + 1 >= requests);

    let mut answers = Vec::new();
    for path in [
        "/",
        "/metrics",
        "/-/ready",
        "/api/v1/state",
        &format!("/api/v1/sessions/{ANA}"),
        &format!("/api/v1/sessions/{BEN}"),
    ] {
        let answer = service.get(path);
        assert_eq!(answer.status, 200, "{path}");
        answers.push((path.to_owned(), answer.body));
    }
    for kind in ["daily", "weekly", "monthly", "sessions", "models", "projects", "homes"] {
        let path = format!("/api/v1/report/{kind}?since=all&all=true&by=project,model,role,home,class");
        answers.push((path.clone(), service.get(&path).body));
    }
    for (path, body) in &answers {
        assert_silent(path, body.as_bytes());
    }
    // What is asked for may be named in the answer, and nowhere else.
    assert_eq!(service.get(&format!("/api/v1/report/daily?project={SECRET}")).status, 200);
    files_are_silent(&sandbox);
    assert_silent("standard output", service.said().join("\n").as_bytes());
    assert_silent("standard error", service.log().as_bytes());
    assert_eq!(service.terminate(), Some(0));

    for args in [
        &["report", "--all", "--since", "all"][..],
        &["report", "sessions", "--all", "--since", "all", "--json"],
        &["report", "projects", "--since", "all", "--csv"],
        &["explain", ANA],
        &["explain", ANA, "--json"],
        &["doctor", "-vvv"],
        &["doctor", "--json"],
    ] {
        let said = sandbox.run(args);
        assert!(said.out.len() > 100, "{args:?}: {said:?}");
        assert_silent(&format!("{args:?}"), (said.out + &said.err).as_bytes());
    }
    files_are_silent(&sandbox);
    let ledger = Connection::open(sandbox.ledger()).unwrap();
    let undecodable: i64 =
        ledger.query_row("SELECT count(*) FROM undecodable", [], |row| row.get(0)).unwrap();
    assert_eq!(undecodable, 6, "the broken lines were met");
}

/// The ledger, its log and whatever else stands beside it.
fn files_are_silent(sandbox: &Sandbox) {
    let directory = sandbox.ledger();
    let directory: &Path = directory.parent().unwrap();
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        assert_silent(&path.display().to_string(), &fs::read(&path).unwrap());
        files += 1;
    }
    assert!(files >= 2, "the ledger and its lock");
}
