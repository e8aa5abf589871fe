//! The real Gemini CLI as a person uses it, in a pseudo-terminal, and where it
//! is cut short; with its telemetry to the service and nothing in front of it.
//! The CLI is found as in [`crate::live_cli`].

use std::path::Path;

use serde_json::{Value, json};

use crate::live_cli::cli;
use crate::live_figures::{billed, complete, play, report, turns};
use crate::support::Sandbox;
use crate::support::poll::until;
use crate::support::service::Service;

fn telemetry(service: &Service) -> [String; 2] {
    ["--telemetry".to_owned(), format!("http://{}", service.address)]
}

fn rows(out: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(out.join("billed.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What was billed for answers that came to their end.
fn answered(out: &Path) -> u64 {
    let rows = rows(out).into_iter().filter(|row| row["complete"] == true);
    rows.map(|row| row["usage"]["totalTokenCount"].as_u64().unwrap()).sum()
}

/// Waits for the turns of the one session to be `claims`.
fn claimed(sandbox: &Sandbox, service: &Service, claims: &[&str]) -> Vec<Value> {
    until("the claims of the turns", || {
        let report = service.json("/api/v1/report/sessions?since=all");
        let Some(session) = report["rows"][0]["session_id"].as_str() else { return Err(vec![report]) };
        let turns = turns(sandbox, session);
        if turns.iter().map(|turn| turn["bound"].as_str().unwrap()).eq(claims.iter().copied()) {
            Ok(turns)
        } else {
            Err(turns)
        }
    })
}

#[test]
fn row41_an_interactive_session_with_telemetry_is_complete_routers_and_all() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let out = play(&sandbox, &cli, "interactive", &telemetry(&service));
    let kinds: Vec<Value> = rows(&out).into_iter().map(|mut row| row["kind"].take()).collect();
    assert_eq!(kinds, ["router", "main", "main", "router", "main"]);
    let report = complete(&service, &out);
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!(report["rows"][0]["basis"], json!(["journal", "telemetry"]), "{report}");
    let turns = claimed(&sandbox, &service, &["exact", "exact"]);
    let tokens = turns.iter().map(|turn| turn["tokens"]["total"].as_u64().unwrap());
    assert_eq!(tokens.sum::<u64>(), billed(&out), "{turns:#?}");
    assert_eq!(turns[0]["requests"], 3, "{turns:#?}");
    assert_eq!(turns[1]["requests"], 2, "{turns:#?}");
}

#[test]
fn r66_escape_leaves_one_unanswered_request_and_a_lower_bound() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let out = play(&sandbox, &cli, "interactive-cancel", &telemetry(&service));
    let cut = rows(&out).into_iter().filter(|row| row["complete"] == false).count();
    assert_eq!(cut, 1, "Esc was pressed in the middle of an answer");
    let turns = claimed(&sandbox, &service, &["exact", "exact", "at_least"]);
    assert!(turns[2]["reasons"].as_array().unwrap().contains(&"request_unanswered".into()), "{turns:#?}");
    let tokens = turns.iter().map(|turn| turn["tokens"]["total"].as_u64().unwrap());
    assert_eq!(tokens.sum::<u64>(), answered(&out), "{turns:#?}");
    let total = &service.json("/api/v1/report/sessions?since=all")["total"];
    assert_eq!((&total["bound"], &total["tokens"]["total"]), (&json!("at_least"), &json!(answered(&out))));
}

#[test]
fn r66_a_prompt_that_names_a_file_is_a_lower_bound_for_its_start_is_not_told() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let out = play(&sandbox, &cli, "interactive-mention", &telemetry(&service));
    let turns = claimed(&sandbox, &service, &["at_least", "exact"]);
    assert!(turns[0]["reasons"].as_array().unwrap().contains(&"ending_unseen".into()), "{turns:#?}");
    let tokens = turns.iter().map(|turn| turn["tokens"]["total"].as_u64().unwrap());
    assert_eq!(tokens.sum::<u64>(), billed(&out), "{turns:#?}");
}

#[test]
fn row42_a_killed_run_with_telemetry_is_never_called_complete() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let out = play(&sandbox, &cli, "headless-sigkill", &telemetry(&service));
    assert!(rows(&out).iter().any(|row| row["step"] == "slow" && row["complete"] == false));
    // The journal has the answer with the tool call; that much is known.
    let known = |report: &Value| {
        let total = &report["total"];
        assert_ne!(total["bound"], "exact", "{report}");
        assert!(total["tokens"]["total"].as_u64().unwrap() < billed(&out), "{report}");
        total["tokens"]["total"].as_u64() == Some(answered(&out))
    };
    until("the answered request", || {
        let report = service.json("/api/v1/report/sessions?since=all");
        if known(&report) { Ok(()) } else { Err(report) }
    });
    assert_eq!(service.terminate(), Some(0));
    assert!(known(&report(&sandbox)));
}
