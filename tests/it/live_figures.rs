//! The real Gemini CLI behind each door, and what the ledger makes of it,
//! against what its server billed. The CLI is found as in [`crate::live_cli`].

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::live_cli::cli;
use crate::support::Sandbox;
use crate::support::poll::until;
use crate::support::service::Service;

/// Plays a scenario in the sandbox's home; returns where its output is.
pub(crate) fn play(sandbox: &Sandbox, cli: &Path, scenario: &str, more: &[String]) -> PathBuf {
    let recorder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/record/record.mjs");
    let out = sandbox.path().join(scenario);
    let played = Command::new("node")
        .arg(recorder)
        .args([scenario, out.to_str().unwrap(), "--home", sandbox.home().to_str().unwrap()])
        .args(["--project", sandbox.path().join("workspace").to_str().unwrap()])
        .args(more)
        .env("GEMGAUGE_GEMINI_CLI", cli)
        .stdin(Stdio::null())
        .output()
        .expect("node starts where the CLI is installed");
    let said = [played.stdout, played.stderr].concat();
    assert!(played.status.success(), "{scenario}: {}", String::from_utf8_lossy(&said));
    out
}

fn behind(words: &[&str]) -> [String; 2] {
    let mut command = vec![env!("CARGO_BIN_EXE_gemgauge")];
    command.extend(words);
    ["--behind".to_owned(), serde_json::to_string(&command).unwrap()]
}

/// The tokens that the server billed.
pub(crate) fn billed(out: &Path) -> u64 {
    let text = std::fs::read_to_string(out.join("billed.jsonl")).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter_map(|row| row["usage"]["totalTokenCount"].as_u64()).sum()
}

pub(crate) fn report(sandbox: &Sandbox) -> Value {
    let run = sandbox.run(&["report", "sessions", "--since", "all", "--json"]);
    serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{run:?}"))
}

pub(crate) fn turns(sandbox: &Sandbox, session: &str) -> Vec<Value> {
    let run = sandbox.run(&["explain", session, "--json"]);
    let explained: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{run:?}"));
    explained["turns"].as_array().unwrap().clone()
}

#[test]
fn behind_the_proxy_figures_and_classes_are_what_the_accounting_says() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let out = play(&sandbox, &cli, "acp-door", &behind(&["acp", "--"]));
    let report = report(&sandbox);
    assert!(report["total"]["tokens"]["total"].as_u64().unwrap() <= billed(&out), "{report}");
    let mut all = Vec::new();
    for row in report["rows"].as_array().unwrap() {
        all.extend(turns(&sandbox, row["session_id"].as_str().unwrap()));
    }
    let with = |is: &dyn Fn(&Value) -> bool| all.iter().filter(|turn| is(turn)).collect::<Vec<_>>();
    // Row 20 or 21: a cancel.
    let cancelled = with(&|turn| turn["stop_reason"] == "cancelled");
    assert_eq!(cancelled.len(), 1, "{all:#?}");
    assert!(cancelled[0]["bound"] != "exact" && cancelled[0]["reasons"][0] == "cancelled");
    // Row 12: a slash command.
    let nothing = with(&|turn| turn["bound"] == "exact" && turn["tokens"]["total"] == 0);
    assert_eq!(nothing.len(), 1, "{all:#?}");
    // Row 10: an invalid stream, billed four times and in no journal.
    let invalid = with(&|turn| turn["reasons"][0] == "no_figure");
    assert_eq!((invalid.len(), &invalid[0]["bound"]), (1, &Value::from("unmeasured")), "{all:#?}");
    // Row 7: the others, each as its marker says.
    let rest = with(&|turn| turn["bound"] == "exact" && turn["tokens"]["total"] != 0);
    assert_eq!(rest.len(), 4, "{all:#?}");
    for turn in rest {
        let tokens = &turn["tokens"];
        let input = tokens["uncached_input"].as_u64().unwrap() + tokens["cached_input"].as_u64().unwrap();
        assert_eq!(turn["marker"]["input_tokens"].as_u64(), Some(input), "{turn:#}");
        assert_eq!(turn["marker"]["output_tokens"], tokens["output"], "{turn:#}");
    }
    let run = sandbox.run(&["reconcile", "latest", "--no-scan"]);
    assert!(run.out.contains("Journal") && run.out.contains("Marker"), "{run:?}");
}

#[test]
fn row27_behind_the_proxy_an_automatic_model_is_a_lower_bound() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let out = play(&sandbox, &cli, "acp-auto", &behind(&["acp", "--"]));
    let report = report(&sandbox);
    assert_eq!(report["total"]["bound"], "at_least");
    assert!(report["total"]["reasons"].as_array().unwrap().contains(&"auto_model".into()), "{report}");
    assert!(report["total"]["tokens"]["total"].as_u64().unwrap() < billed(&out));
}

#[test]
fn row39_behind_the_wrapper_an_automatic_model_is_complete_to_the_token() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let out = play(&sandbox, &cli, "headless-mix", &behind(&["run", "--"]));
    let report = report(&sandbox);
    assert_eq!(report["total"]["bound"], "exact", "{report}");
    assert_eq!(report["total"]["tokens"]["total"].as_u64(), Some(billed(&out)), "{report}");
    let strict = sandbox.run(&["report", "sessions", "--since", "all", "--json", "--strict", "--no-scan"]);
    let strict: Value = serde_json::from_str(&strict.out).unwrap();
    assert_eq!(strict["total"]["bound"], "at_least", "{strict}");
    assert_eq!(strict["total"]["tokens"], report["total"]["tokens"]);
}

/// Waits until the report of the service says what was billed.
pub(crate) fn complete(service: &Service, out: &Path) -> Value {
    let want = billed(out);
    until("the bill in the ledger", || {
        let report = service.json("/api/v1/report/sessions?since=all");
        if report["total"]["tokens"]["total"].as_u64() == Some(want) && report["total"]["bound"] == "exact" {
            Ok(report)
        } else {
            Err(report)
        }
    })
}

#[test]
fn row41_with_telemetry_to_the_service_a_run_with_everything_is_complete() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let telemetry = ["--telemetry".to_owned(), format!("http://{}", service.address)];
    let out = play(&sandbox, &cli, "headless-mix", &telemetry);
    let report = complete(&service, &out);
    assert_eq!(report["rows"][0]["basis"], serde_json::json!(["journal", "telemetry"]), "{report}");
}

#[test]
fn row41_behind_the_proxy_and_with_telemetry_two_sessions_are_complete() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let mut more = behind(&["acp", "--"]).to_vec();
    more.extend(["--telemetry".to_owned(), format!("http://{}", service.address)]);
    let out = play(&sandbox, &cli, "acp-two-sessions", &more);
    let report = complete(&service, &out);
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(2), "{report}");
}
