//! The byte path of the proxy: nothing is added, lost, changed or held back,
//! and the agent is started as it would be without it (accounting D2 1–3, R10).

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use gemgauge::ledger::doors::{EventKind, Exit, Oddity};
use serde_json::json;

use crate::support::Sandbox;
use crate::support::acp::{Client, agent};
use crate::support::poll::until;

/// Frames of every kind that a line protocol does not expect, some 70 MiB.
fn frames(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut bytes = Vec::new();
    for _ in 0..400 {
        match random() % 8 {
            0 => bytes.extend_from_slice(b"{\"id\":1,\"result\":{\"stopReason\":\"end_turn\"}}\n"),
            1 => bytes.extend_from_slice(b"{\"method\":\"session/update\"}\r\n"),
            2 => bytes.extend((0..random() % 3000).map(|_| (random() & 0xff) as u8)),
            3 => bytes.extend_from_slice(b"\0\0\n\0"),
            4 => bytes.extend_from_slice(b"\xff\xfe{\"id\":\"\xc3\x28\"}\n"),
            5 => bytes.extend_from_slice(b"\n\r\n\n"),
            6 => bytes.extend(std::iter::repeat_n(b'[', (random() % 5000) as usize)),
            _ => bytes.extend_from_slice("{\"é\":\"\u{2028}\"}\n".as_bytes()),
        }
    }
    let middle = bytes.len() / 2;
    let long = [b"\n{\"id\":1,\"result\":\"", &vec![b'z'; 64 << 20][..], b"\"}\n"].concat();
    bytes.splice(middle..middle, long);
    bytes.extend_from_slice(b"{\"id\":2,\"result\":\"no newline");
    bytes
}

/// Sends one stream through, receives the other; both as they arrived.
fn through(mut command: Command, sent: &[u8], arrived: &Path) -> (Vec<u8>, Vec<u8>) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut received = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut size = 1;
            let mut rest = sent;
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.len().min(size));
                input.write_all(piece).unwrap();
                (rest, size) = (after, size * 3 % 99_991 + 1);
            }
        });
        output.read_to_end(&mut received).unwrap();
    });
    assert_eq!(child.wait().unwrap().code(), Some(0));
    (fs::read(arrived).unwrap(), received)
}

#[test]
fn d2_2_both_directions_are_byte_for_byte_the_same_with_and_without_the_proxy() {
    let sandbox = Sandbox::new();
    let (sent, answered) = (frames(1), frames(2));
    let out = sandbox.path().join("out");
    fs::write(&out, &answered).unwrap();
    let arrived = sandbox.path().join("in");
    let Some(agent) = agent("pour", &[arrived.to_str().unwrap(), out.to_str().unwrap()]) else { return };
    for (command, what) in [(sandbox.bare(&agent), "without the proxy"), (sandbox.proxy(&agent), "with it")] {
        let (at_agent, at_client) = through(command, &sent, &arrived);
        assert!(at_agent == sent, "what the client wrote, {what}: {} of {}", at_agent.len(), sent.len());
        assert!(at_client == answered, "what the agent wrote, {what}: {}", at_client.len());
        fs::remove_file(&arrived).unwrap();
    }
    // What was heard of it is odd, and bounded.
    let events = sandbox.events();
    assert!(events.contains(&EventKind::Odd { oddity: Oddity::MalformedFrame }));
    assert_eq!(events.last(), Some(&EventKind::ProcessEnded { exit: Some(Exit::Code(0)) }));
    assert!(events.len() < 2000, "{}", events.len());
}

#[test]
fn d2_2_a_part_of_a_line_passes_at_once() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.proxy(&["cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for part in ["{\"id\"", ":", "1", "}", "\n", "x"] {
        input.write_all(part.as_bytes()).unwrap();
        let mut back = vec![0; part.len()];
        output.read_exact(&mut back).unwrap();
        assert_eq!(back, part.as_bytes());
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn r10_environment_arguments_and_directory_are_those_without_the_proxy() {
    let sandbox = Sandbox::new();
    let facts = sandbox.path().join("facts");
    let Some(agent) = agent("facts", &[facts.to_str().unwrap()]) else { return };
    let mut words: Vec<&OsStr> = agent.iter().map(OsStr::new).collect();
    // R9: both spellings pass, and neither becomes the other.
    let odd = ["", "a b", "--acp", "--experimental-acp", "--", "--home", "x", "-v", "*", "$HOME", "é"];
    words.extend(odd.map(OsStr::new));
    words.push(OsStr::from_bytes(b"\xff\n"));
    let told_by = |mut command: Command| {
        fs::create_dir(&facts).unwrap();
        command.env("ODD", OsStr::from_bytes(b"\xff = \n x")).env("EMPTY", "").env("GEMINI_CLI_HOME", "rel");
        assert_eq!(command.stdin(Stdio::null()).status().unwrap().code(), Some(0));
        let told = ["environ", "cmdline", "cwd"].map(|file| fs::read(facts.join(file)).unwrap());
        fs::remove_dir_all(&facts).unwrap();
        told
    };
    let bare = told_by(sandbox.bare(&words));
    assert!(bare[0].windows(5).any(|part| part == b"ODD=\xff") && bare[1].ends_with(b"\xff\n\0"));
    assert_eq!(told_by(sandbox.proxy(&words)), bare);
    // R11: the home is the agent's, from its own working directory.
    let home = sandbox.path().canonicalize().unwrap().join("rel");
    let [EventKind::ProcessStarted { home: told, configured_runtime: None, remote: false, .. }, _] =
        &sandbox.events()[..]
    else {
        panic!("{:?}", sandbox.events())
    };
    assert_eq!(told.as_deref(), home.to_str());
}

#[test]
fn d2_3_a_client_that_does_not_read_holds_the_agent_back() {
    let sandbox = Sandbox::new();
    let progress = sandbox.path().join("progress");
    let Some(agent) = agent("flood", &[progress.to_str().unwrap()]) else { return };
    let mut child = sandbox.proxy(&agent).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let full = || rustix::io::ioctl_fionread(&output).unwrap();
    until("a full pipe", || if full() > 60_000 { Ok(()) } else { Err(full()) });
    // Two pipes and one chunk fit between the agent and us, however long it goes on.
    let written = || fs::read_to_string(&progress).unwrap_or_default().parse::<usize>().unwrap_or(0);
    let mut read = 0;
    let mut buffer = vec![0; 1 << 20];
    for _ in 0..200 {
        assert!(written() <= read + (512 << 10), "{} while {read} were read", written());
        read += output.read(&mut buffer[..40_000]).unwrap();
    }
    loop {
        match output.read(&mut buffer).unwrap() {
            0 => break,
            more => read += more,
        }
    }
    assert_eq!((child.wait().unwrap().code(), read, written()), (Some(0), 64 << 20, 64 << 20));
}

#[test]
fn d2_1_standard_error_is_the_agents_alone() {
    let sandbox = Sandbox::new();
    // It says much, and dies in mid-frame; the proxy has nothing to add.
    let script = "head -c 3000000 /dev/zero | tr '\\0' e >&2; printf '{\"id\":'; exit 3";
    let said = sandbox.proxy(&["sh", "-c", script]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(said.status.code(), Some(3));
    assert_eq!((said.stdout.as_slice(), said.stderr.len()), (&b"{\"id\":"[..], 3_000_000));
    assert!(said.stderr.iter().all(|byte| *byte == b'e'));
}

#[test]
fn d2_5_what_a_session_says_is_in_the_spool() {
    let sandbox = Sandbox::new();
    let Some(agent) = agent("talk", &[]) else { return };
    let mut command = sandbox.command(&["acp", "--session-role", "credential_check", "--"]);
    command.args(&agent).env("PATH", std::env::var_os("PATH").unwrap());
    let mut client = Client::start(command);
    client.one_turn();
    client.call("session/set_model", &json!({"sessionId": "s-1", "modelId": "gemini-2.5-flash"}));
    assert_eq!(client.close().code(), Some(0));
    let events = sandbox.events();
    let [started, rest @ ..] = &events[..] else { panic!("events") };
    assert!(matches!(started, EventKind::ProcessStarted { .. }), "{started:?}");
    let rest = serde_json::to_value(rest).unwrap();
    assert_eq!(
        rest,
        json!([
            {"kind": "handshake", "name": "gemini-cli", "version": "9"},
            {"kind": "session_opened", "session_id": "s-1", "model": "gemini-2.5-pro",
             "session_role": "credential_check"},
            {"kind": "turn_started", "session_id": "s-1", "turn": "3#1"},
            {"kind": "turn_ended", "session_id": "s-1", "turn": "3#1", "stop_reason": "end_turn", "marker": [7, 2]},
            {"kind": "model_set", "session_id": "s-1", "model": "gemini-2.5-flash"},
            {"kind": "process_ended", "exit": {"code": 0}},
        ])
    );
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&sandbox.spool()), 0o700);
    for entry in fs::read_dir(sandbox.spool()).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn d2_5_a_spool_that_cannot_be_written_breaks_no_session() {
    let Some(agent) = agent("talk", &[]) else { return };
    for place in ["/dev/full/spool", "/proc/nowhere", "file/spool"] {
        let sandbox = Sandbox::new();
        sandbox.write("file", "no directory");
        let mut command = sandbox.proxy(&agent);
        command.env("GEMGAUGE_SPOOL", place).stderr(Stdio::piped());
        let mut client = Client::start(command);
        let mut stderr = client.proxy.stderr.take().unwrap();
        client.one_turn();
        assert_eq!(client.close().code(), Some(0), "{place}");
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        assert_eq!(said, "", "{place}");
    }
}

#[test]
fn d2_7_a_configuration_that_cannot_be_used_breaks_no_session() {
    let Some(agent) = agent("talk", &[]) else { return };
    let sandbox = Sandbox::new();
    sandbox.write("home/.config/gemgauge/config.yml", "no_such_key: 1\n");
    let mut client = Client::start(sandbox.proxy(&agent));
    client.one_turn();
    assert_eq!(client.close().code(), Some(0));
    assert_eq!(sandbox.events().len(), 6, "it is noted where it is by default");
    assert!(!sandbox.ledger().exists(), "the file may name another ledger");
}

#[test]
fn d2_8_where_nobody_serves_the_journals_are_read_after_each_turn() {
    let Some(agent) = agent("talk", &[]) else { return };
    let sandbox = Sandbox::new();
    let journal = "home/.gemini/tmp/p/chats/session-2026-11-30T10-00-aaaaaaaa.jsonl";
    let records = concat!(
        r#"{"sessionId":"aaaaaaaa-1","projectHash":"x","startTime":"2026-11-30T10:00:00.000Z","lastUpdated":"2026-11-30T10:00:00.000Z"}"#,
        "\n",
        r#"{"id":"1","timestamp":"2026-11-30T10:00:01.000Z","type":"gemini","content":"","tokens":{"input":5,"output":2,"cached":0,"thoughts":0,"tool":0,"total":7},"model":"gemini-2.5-pro"}"#,
        "\n"
    );
    let journal = sandbox.write(journal, records);
    let mut client = Client::start(sandbox.proxy(&agent));
    client.one_turn();
    // While the session goes on, and before the CLI deletes it.
    let report = ["report", "sessions", "--since", "all", "--json", "--no-scan"];
    until("the journal in the ledger", || {
        let report = sandbox.run(&report);
        let read = serde_json::from_str::<serde_json::Value>(&report.out);
        match read {
            Ok(read) if read["total"]["tokens"]["total"] == 7 => Ok(()),
            _ => Err(report),
        }
    });
    fs::remove_file(journal).unwrap();
    client.one_turn();
    assert_eq!(client.close().code(), Some(0));
    assert!(sandbox.run(&report).out.contains("aaaaaaaa-1"));
}

#[test]
fn d2_8_where_a_serve_runs_nobody_else_reads() {
    let Some(agent) = agent("talk", &[]) else { return };
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let mut client = Client::start(sandbox.proxy(&agent));
    client.one_turn();
    assert_eq!(client.close().code(), Some(0));
    assert!(!sandbox.ledger().with_file_name("ledger.db.ingest.lock").exists());
    assert_eq!(service.terminate(), Some(0));
    // The same without it, so that the file's name is known to be right.
    let mut client = Client::start(sandbox.proxy(&agent));
    client.one_turn();
    assert_eq!(client.close().code(), Some(0));
    until("the lock of the reader", || {
        let lock = sandbox.ledger().with_file_name("ledger.db.ingest.lock");
        if lock.exists() { Ok(()) } else { Err("not there") }
    });
}
