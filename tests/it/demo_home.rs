//! The demo home, read by the library and reported by the real program.

use serde_json::Value;

use crate::recordings::{differences, home};
use crate::support::Sandbox;
use crate::support::books::{Books, NOW};
use crate::support::files::{copy_tree, fixture, json};

#[test]
fn the_demo_home_reads_as_the_reference_reader_says() {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(&fixture("home/.gemini"), &dir.path().join(".gemini"), NOW - 24 * 3600 * 1000);
    let mut books = Books::of(&[dir.path()]);
    books.scan();
    let mut wrong = Vec::new();
    differences("home", &json(&fixture("home/expected.json")), &home(&books.facts()), &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Adds up the rows of a report, tokens and requests.
fn of_rows(rows: &[Value]) -> Value {
    let mut sum = serde_json::json!({
        "requests": 0,
        "tokens": {
            "uncached_input": 0, "cached_input": 0, "tool_input": 0, "output": 0, "thoughts": 0, "total": 0
        }
    });
    let add = |to: &mut Value, more: &Value| *to = (to.as_u64().unwrap() + more.as_u64().unwrap()).into();
    for row in rows {
        add(&mut sum["requests"], &row["requests"]);
        // A session of which nothing was measured has no number, not zero.
        for (class, tokens) in row["tokens"].as_object().into_iter().flatten() {
            add(&mut sum["tokens"][class], tokens);
        }
    }
    sum
}

#[test]
fn every_report_of_the_program_adds_up_to_the_demo_homes_figure() {
    let sandbox = Sandbox::new();
    copy_tree(&fixture("home/.gemini"), &sandbox.home().join(".gemini"), NOW - 24 * 3600 * 1000);
    let expected = json(&fixture("home/expected.json"));
    for kind in ["daily", "weekly", "monthly", "sessions", "models", "projects", "homes"] {
        let said = sandbox.run(&["report", kind, "--since", "all", "--json"]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{kind}");
        let report: Value = serde_json::from_str(&said.out).unwrap();
        let rows = report["rows"].as_array().unwrap();
        let totals = &report["total"];
        let mut wrong = Vec::new();
        for (what, got) in [("rows", &of_rows(rows)), ("totals", totals)] {
            for key in ["requests", "tokens"] {
                differences(&format!("{kind}/{what}/{key}"), &expected[key], &got[key], &mut wrong);
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert_eq!(totals["bound"], "at_least", "{kind}: the watcher alone claims no exact figure");
        if kind == "models" {
            // What was not measured stands under the unknown model, without a number.
            let measured = rows.iter().filter(|row| row["requests"] != 0);
            let by_model: Value =
                measured.map(|row| (row["key"].as_str().unwrap().to_owned(), entry_of(row))).collect();
            differences("by_model", &expected["by_model"], &by_model, &mut wrong);
        }
        if kind == "sessions" {
            for row in rows.iter().filter(|row| row["requests"] != 0) {
                let want = &expected["sessions"][row["session_id"].as_str().unwrap()];
                differences("session", &entry_of(want), &entry_of(row), &mut wrong);
                assert_eq!(row["subagent_requests"], want["subagent_requests"]);
            }
            let measured = rows.iter().filter(|row| row["requests"] != 0).count();
            assert_eq!(measured, expected["sessions"].as_object().unwrap().len());
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

fn entry_of(row: &Value) -> Value {
    serde_json::json!({ "requests": row["requests"], "tokens": row["tokens"] })
}
