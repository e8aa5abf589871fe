//! The real Gemini CLI behind the proxy, against the scripted API: the frames
//! pass, and the spool tells what they say.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gemgauge::ledger::doors::{EventKind, Exit};

use crate::live_cli::cli;
use crate::support::Sandbox;
use crate::support::poll::until;
use crate::support::transcript::{Line, expected, read};

/// Plays a scenario with the CLI behind the proxy; returns where its output is.
fn play(sandbox: &Sandbox, cli: &Path, scenario: &str) -> PathBuf {
    let recorder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/record/record.mjs");
    let out = sandbox.path().join(scenario);
    let proxy = serde_json::json!([env!("CARGO_BIN_EXE_gemgauge"), "acp", "--"]).to_string();
    let played = Command::new("node")
        .arg(recorder)
        .args([scenario, out.to_str().unwrap(), "--home", sandbox.home().to_str().unwrap()])
        .args(["--project", sandbox.path().join("workspace").to_str().unwrap(), "--behind", &proxy])
        .env("GEMGAUGE_GEMINI_CLI", cli)
        .stdin(Stdio::null())
        .output()
        .expect("node starts where the CLI is installed");
    let said = [played.stdout, played.stderr].concat();
    assert!(played.status.success(), "{scenario}: {}", String::from_utf8_lossy(&said));
    out
}

/// The spool says what the client saw, process by process. Where two prompts
/// run at once, the client sees their ends in an order of its own.
fn compare(sandbox: &Sandbox, transcripts: &[&Path]) -> Vec<EventKind> {
    let mut spools = sandbox.spooled();
    assert_eq!(spools.len(), transcripts.len());
    let mut all = Vec::new();
    for (path, spool) in transcripts.iter().zip(&mut spools) {
        let lines: Vec<Line> = read(path);
        let mut events: Vec<EventKind> = spool.drain(..).map(|event| event.kind).collect();
        let EventKind::ProcessStarted { home, configured_runtime, remote, .. } = events.remove(0) else {
            panic!("{events:?}")
        };
        let its_home = sandbox.home().canonicalize().unwrap();
        assert_eq!((home.as_deref(), remote), (its_home.to_str(), false));
        assert_eq!(configured_runtime.as_deref(), Some("gemini"), "node …/bundle/gemini.js");
        assert_eq!(events.pop(), Some(EventKind::ProcessEnded { exit: Some(Exit::Code(0)) }));
        let sorted = |events: &[EventKind]| {
            let mut words: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
            words.sort_unstable();
            words
        };
        assert_eq!(sorted(&events), sorted(&expected(&lines)), "{}", path.display());
        all.extend(events);
    }
    all
}

#[test]
fn d2_what_the_real_cli_says_passes_and_is_told() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let out = play(&sandbox, &cli, "acp-door");
    let transcripts = ["acp-1.jsonl", "acp-2.jsonl"].map(|name| out.join(name));
    let events = compare(&sandbox, &[&transcripts[0], &transcripts[1]]);
    let some = |what: &str, is: &dyn Fn(&EventKind) -> bool| assert!(events.iter().any(is), "{what}");
    let ended = |is: &dyn Fn(&str, Option<(u64, u64)>) -> bool| {
        events.iter().any(|event| match event {
            EventKind::TurnEnded { result, .. } => {
                is(result.stop_reason.as_deref().unwrap_or_default(), result.marker)
            }
            _ => false,
        })
    };
    some(
        "R33: a concrete model",
        &|event| matches!(event, EventKind::SessionOpened { model: Some(model), resumed: false, .. } if model == "gemini-2.5-pro"),
    );
    some("R41: a session that goes on", &|event| {
        matches!(event, EventKind::SessionOpened { resumed: true, .. })
    });
    some(
        "R36: another model",
        &|event| matches!(event, EventKind::ModelSet { model: Some(model), .. } if model == "gemini-2.5-flash"),
    );
    some("R37: a cancel", &|event| matches!(event, EventKind::CancelSent { turn: Some(_), .. }));
    some("R43: a load in the minute of the start", &|event| {
        matches!(event, EventKind::LoadFailed { same_minute: true, .. })
    });
    assert!(ended(&|reason, marker| reason == "cancelled" && marker.is_none()));
    assert!(ended(&|reason, marker| reason == "end_turn" && marker == Some((0, 0))), "a command");
    assert!(ended(&|reason, marker| reason == "end_turn" && marker.is_some_and(|(input, _)| input > 0)));
    let sessions = events.iter().filter_map(|event| match event {
        EventKind::SessionOpened { session_id, .. } => Some(session_id),
        _ => None,
    });
    let sessions: std::collections::BTreeSet<_> = sessions.collect();
    assert!(sessions.len() >= 3, "{sessions:?}");

    // D2 8: nobody serves, and the ledger knows the sessions all the same.
    until("the journals in the ledger", || {
        let report = sandbox.run(&["report", "sessions", "--since", "all", "--json", "--no-scan"]);
        let known = sessions.iter().filter(|id| report.out.contains(id.as_str())).count();
        if known >= 2 { Ok(()) } else { Err(report) }
    });
}

#[test]
fn d2_an_automatic_model_of_the_real_cli_is_told() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let out = play(&sandbox, &cli, "acp-auto");
    let events = compare(&sandbox, &[&out.join("acp.jsonl")]);
    assert!(events.iter().any(|event| {
        matches!(event, EventKind::SessionOpened { model: Some(model), .. } if model == "auto")
    }));
}
