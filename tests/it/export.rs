//! What the ledger says to other systems adds up to what its reports say.

use serde_json::Value;

use crate::support::Sandbox;
use crate::support::books::NOW;
use crate::support::files::{copy_tree, fixture};

const CLASSES: [&str; 6] = ["uncached_input", "cached_input", "tool_input", "output", "thoughts", "total"];

fn demo() -> Sandbox {
    let sandbox = Sandbox::new();
    copy_tree(&fixture("home/.gemini"), &sandbox.home().join(".gemini"), NOW - 24 * 3600 * 1000);
    sandbox
}

fn said(sandbox: &Sandbox, args: &[&str]) -> String {
    let said = sandbox.run(args);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
    said.out
}

fn total(sandbox: &Sandbox, filters: &[&str]) -> Value {
    let report = said(sandbox, &[&["report", "--json"], filters].concat());
    serde_json::from_str::<Value>(&report).unwrap()["total"].clone()
}

#[test]
fn every_grain_adds_up_to_the_report() {
    let sandbox = demo();
    for filters in [
        &["--since", "all"][..],
        &["--since", "2026-11-25", "--until", "2026-11-27", "-z", "America/Los_Angeles"],
        &["--since", "all", "--project", "website", "--model", "gemini-3.8-flash"],
    ] {
        let total = total(&sandbox, filters);
        assert_ne!(total["requests"], 0, "{filters:?}");
        for grain in ["request", "hour", "day"] {
            let export = [&["export", "--grain", grain, "--format"], &["jsonl"][..], filters].concat();
            let lines = said(&sandbox, &export);
            let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let sum = |name: &str| rows.iter().map(|row| row[name].as_u64().unwrap()).sum::<u64>();
            for class in CLASSES {
                assert_eq!(Value::from(sum(class)), total["tokens"][class], "{grain} {class} {filters:?}");
            }
            let requests = if grain == "request" { rows.len() as u64 } else { sum("requests") };
            assert_eq!(Value::from(requests), total["requests"], "{grain}");
            assert_eq!(lines, said(&sandbox, &export), "the order of rows is stable");

            // The same rows as CSV, and the same tokens as FOCUS.
            let csv = said(&sandbox, &[&["export", "--grain", grain, "--format", "csv"], filters].concat());
            assert_eq!(csv.lines().count(), rows.len() + 1);
            let focus =
                said(&sandbox, &[&["export", "--grain", grain, "--format", "focus"], filters].concat());
            let consumed = focus.lines().skip(1).map(|line| {
                // Nothing before the quantity is quoted in this home.
                line.split(',').nth(7).unwrap().parse::<u64>().unwrap()
            });
            assert_eq!(Value::from(consumed.sum::<u64>()), total["tokens"]["total"], "{grain}");
        }
    }
}

#[test]
fn what_cannot_be_understood_is_usage() {
    let sandbox = demo();
    for args in [
        &["export", "--since", "tomorrow"][..],
        &["export", "--since", "2026-11-30", "--until", "2026-11-01"],
        &["reconcile", "--bill", "x.csv", "--zone", "Mars/Olympus"],
        &["reconcile"],
        &["backfill", "--until", "7d"],
    ] {
        let said = sandbox.run(args);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}: {}", said.err);
    }
}

#[test]
fn a_bill_is_compared_and_one_below_the_ledger_is_an_answer_of_1() {
    let sandbox = demo();
    let bill = fixture("bill/console.csv");
    let reconcile = |bill: &std::path::Path| {
        let args = [&["reconcile", "--json", "--bill"][..], &[bill.to_str().unwrap()]].concat();
        let said = sandbox.run(&args);
        let json: Value = serde_json::from_str(&said.out).unwrap();
        (said.code, json)
    };
    let (code, json) = reconcile(&bill);
    assert_eq!((code, &json["below"], &json["timezone"]), (0, &false.into(), &"America/Los_Angeles".into()));
    let rows = json["rows"].as_array().unwrap();
    let sum = |name: &str| rows.iter().map(|row| row[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(Value::from(sum("ledger_tokens")), total(&sandbox, &["--since", "all"])["tokens"]["total"]);
    assert!(sum("billed_tokens") > sum("ledger_tokens"));
    for cause in ["equal", "lower_bound", "model_unseen"] {
        assert!(rows.iter().any(|row| row["cause"] == cause), "{cause}");
    }
    assert_eq!(json["skipped_skus"]["Standard Storage US Regional"], 1);

    let text = std::fs::read_to_string(&bill).unwrap().replace("\"9,009\"", "\"9,008\"");
    let (code, json) = reconcile(&sandbox.write("below.csv", &text));
    assert_eq!((code, &json["below"]), (1, &true.into()));

    let said = sandbox.run(&["reconcile", "--bill", sandbox.write("no.csv", "a,b\n").to_str().unwrap()]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("no.csv could not be read: no line of it names the columns"), "{}", said.err);
}

#[test]
fn a_day_is_explained_and_a_session_still_is() {
    let sandbox = demo();
    let text = said(&sandbox, &["explain", "2026-11-29"]);
    assert!(text.starts_with("2026-11-29 (UTC): ≥ 266,533 tokens in 12 requests, ≥ $0.2925"), "{text}");
    assert!(text.contains("2 of the 7 days before had no spend; they count as 0 in the median."), "{text}");
    let json: Value = serde_json::from_str(&said(&sandbox, &["explain", "2026-11-29", "--json"])).unwrap();
    // 0, 0, 42,664, 450,309, 468,403, 545,575 and 2,195,154.
    assert_eq!((&json["total"]["median_tokens"], &json["total"]["factor"]), (&450_309.into(), &0.59.into()));
    assert_eq!(
        json["projects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["tokens"]["total"].as_u64().unwrap())
            .sum::<u64>(),
        266_533
    );
    assert!(said(&sandbox, &["explain", "latest"]).starts_with("Session "));
    assert!(said(&sandbox, &["explain", "28398f9f"]).starts_with("Session 28398f9f"));
}
