//! The real Gemini CLI, live: while it works, `serve` watches its home, and
//! counts what the API billed.
//!
//! The CLI is looked for where `tests/run` installs it, or where
//! `$GEMGAUGE_GEMINI_CLI` says; without it the tests say so and pass, unless
//! `tests/run` runs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gemgauge::ledger::tokens::Reading;
use serde_json::Value;

use crate::support::Sandbox;
use crate::support::chats::Spent;
use crate::support::poll::until_eq;
use crate::support::service::Service;
use crate::support::skip::missing;

/// The package or the program of the CLI.
pub(crate) fn cli() -> Option<PathBuf> {
    let named = std::env::var_os("GEMGAUGE_GEMINI_CLI").map(PathBuf::from);
    let prefix = std::env::var_os("RECORD_PREFIX").map(PathBuf::from);
    let installed = prefix.as_ref().map(|prefix| prefix.join("node_modules/@google/gemini-cli"));
    let cli = named.or(installed).filter(|cli| cli.exists());
    if cli.is_none() {
        missing("the Gemini CLI (or GEMGAUGE_GEMINI_CLI names it)");
    }
    cli
}

/// The command that plays a scenario in the sandbox's home.
pub(crate) fn recorder(sandbox: &Sandbox, cli: &Path, scenario: &str, out: &Path) -> Command {
    let recorder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/record/record.mjs");
    let mut command = Command::new("node");
    command
        .arg(recorder)
        .args([scenario, out.to_str().unwrap(), "--home", sandbox.home().to_str().unwrap()])
        .args(["--project", sandbox.path().join("workspace").to_str().unwrap()])
        .env("GEMGAUGE_GEMINI_CLI", cli)
        .stdin(Stdio::null());
    command
}

/// Plays a scenario in the sandbox's home and returns what was billed in main chats.
fn play(sandbox: &Sandbox, cli: &Path, scenario: &str) -> Spent {
    let out = sandbox.path().join(scenario);
    let played =
        recorder(sandbox, cli, scenario, &out).output().expect("node starts where the CLI is installed");
    let said = [played.stdout, played.stderr].concat();
    assert!(played.status.success(), "{scenario}: {}", String::from_utf8_lossy(&said));
    billed(&out.join("billed.jsonl"))
}

/// Billed requests whose kind reaches a journal, in main chats.
fn billed(log: &Path) -> Spent {
    let mut spent = Spent::default();
    for line in std::fs::read_to_string(log).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        if row["kind"] != "main" || row["status"] != 200 || row["usage"].is_null() {
            continue;
        }
        let count = |key: &str| row["usage"][key].as_u64().unwrap_or(0);
        let reading = Reading {
            prompt: count("promptTokenCount"),
            cached: count("cachedContentTokenCount"),
            tool: count("toolUsePromptTokenCount"),
            output: count("candidatesTokenCount"),
            thoughts: count("thoughtsTokenCount"),
        };
        spent.add(1, &reading.classes());
    }
    spent
}

fn journals(home: &Path) -> usize {
    let mut found = 0;
    for project in std::fs::read_dir(home.join(".gemini/tmp")).into_iter().flatten().flatten() {
        let chats = std::fs::read_dir(project.path().join("chats")).into_iter().flatten().flatten();
        found += chats.filter(|entry| entry.file_name().to_string_lossy().contains("session-")).count();
    }
    found
}

fn main_of(service: &Service) -> (u64, gemgauge::ledger::tokens::Classes) {
    service.metrics().spent(&[("role", "main")])
}

#[test]
fn d1_the_watcher_counts_what_the_api_billed_while_the_real_cli_works() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    assert!(service.said()[1].starts_with("No Gemini CLI was used below"), "{:?}", service.said());
    let mut billed = play(&sandbox, &cli, "headless-tool");
    assert!(billed.requests >= 2, "{billed:?}");
    service.wait_spent(billed);
    // Twice: a label set born while it serves stands at 0 in the first scrape.
    service.metrics();
    assert_eq!(main_of(&service), billed.pair());
    billed = billed.plus(play(&sandbox, &cli, "headless-errors"));
    service.wait_spent(billed);
    service.metrics();
    assert_eq!(main_of(&service), billed.pair());

    let report = sandbox.run(&["report", "sessions", "--since", "all", "--json"]);
    let report: Value = serde_json::from_str(&report.out).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{report}");
    for row in rows {
        assert_eq!((&row["project"], &row["bound"]), (&Value::from("workspace"), &Value::from("at_least")));
    }
    assert_eq!(service.metrics().sum("gemgauge_journal_undecodable_total", &[]), 0);
    assert_eq!(service.metrics().sum("gemgauge_journal_failed_reads_total", &[]), 0);
}

#[test]
fn fact_2_the_clean_up_of_the_real_cli_takes_nothing_back() {
    let Some(cli) = cli() else { return };
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let first = play(&sandbox, &cli, "headless-tool");
    service.wait_spent(first);
    // Its next start deletes what is too old: by then only the ledger knows.
    sandbox.write(
        "home/.gemini/settings.json",
        &serde_json::json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "general": {
                "enableAutoUpdate": false,
                "enableAutoUpdateNotification": false,
                "sessionRetention": {"enabled": true, "maxCount": 1, "minRetention": "1h"},
            },
        })
        .to_string(),
    );
    let mut billed = first;
    for scenario in ["headless-plain", "headless-plain", "headless-plain"] {
        billed = billed.plus(play(&sandbox, &cli, scenario));
        service.wait_spent(billed);
    }
    assert!(journals(&sandbox.home()) < 4, "the CLI deleted none of its journals");
    until_eq("the deletion", &true, || service.metrics().sum("gemgauge_journals", &[("state", "gone")]) > 0);
    assert_eq!(service.spent(), billed);
    assert_eq!(service.metrics().sum("gemgauge_journals_lost_total", &[]), 0);
    let sessions = service.json("/api/v1/report/sessions?since=all");
    let rows = sessions["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().any(|row| row["source_deleted"] == true), "{sessions}");
    assert_eq!(service.terminate(), Some(0));
    let service = sandbox.serve_ready(&[]);
    assert_eq!(main_of(&service), billed.pair());
}
