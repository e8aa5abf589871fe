//! Every trap of fixtures/traps gives exactly the answer written beside it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::books::{Billed, Books, Facts, Listed, NOW};
use crate::support::files::{copy_tree, fixture, json, write};
use crate::support::records::{answer_of, header, time};
use gemgauge::ledger::tokens::Reading;

/// Long before [`NOW`]: nobody writes these files any more.
const SETTLED: i64 = NOW - 24 * 3600 * 1000;

/// What is wrong with a trap's answers, one line each.
fn wrong(trap: &str, expect: &Value, facts: &Facts) -> Vec<String> {
    let classes = facts.classes();
    let sessions: Vec<_> = facts.sessions.iter().filter(|s| s.requests > 0 || s.prompted).collect();
    let first = |r: &Billed, key: &str| {
        if r.home == "home0" { key.to_owned() } else { String::new() }
    };
    let by = |key: &dyn Fn(&Billed) -> String| {
        let mut by = facts.by(|request| first(request, &key(request)));
        by.remove("");
        serde_json::to_value(by).unwrap()
    };
    let got = |key: &str| -> Option<Value> {
        Some(match key {
            "fresh" => classes.uncached_input.into(),
            "cached" => classes.cached_input.into(),
            "out" => (classes.output + classes.thoughts).into(),
            "tool" => classes.tool_input.into(),
            "requests" => facts.requests.len().into(),
            "sessions" => sessions.len().into(),
            "unmeasured" => sessions.iter().filter(|s| s.requests == 0).count().into(),
            "header_only" => {
                let stub = |s: &&Listed| s.requests == 0 && !s.prompted && s.started;
                facts.sessions.iter().filter(stub).count().into()
            }
            "undecodable" => facts.undecodable.len().into(),
            "demotes" => facts.undecodable.iter().filter(|line| !line.settled).count().into(),
            "failed" => facts.failed().into(),
            "projects" => facts.projects.len().into(),
            "by_session" => by(&|request| request.session.clone()),
            "by_model" => by(&|request| request.model.clone()),
            "by_role" => by(&|request| request.role.as_str().to_owned()),
            // Prices are not built yet.
            "usd" => return None,
            other => panic!("{trap}: what is {other}?"),
        })
    };
    // The reference reader knows nothing of a broken document; ours counts what
    // it decodes before the break, and a header is such a thing (R24).
    let value_of = |key: &str, value: &Value| match (trap, key) {
        ("31-json-half-written", "header_only") => 1.into(),
        _ => value.clone(),
    };
    let mut wrong = Vec::new();
    for (key, value) in expect.as_object().unwrap() {
        if let Some(got) = got(key)
            && !value.is_null()
            && got != value_of(key, value)
        {
            wrong.push(format!("{trap}: {key} is {got}, not {value}"));
        }
    }
    if facts.counted() != (facts.requests.len() as u64, classes) {
        wrong.push(format!("{trap}: counters {:?} are not the figures", facts.counted()));
    }
    wrong
}

/// The trap of a line one byte over the cap, too large to be kept in a repository.
fn write_over_cap(root: &Path) {
    let answer = |id: &str, reading| answer_of(id, reading, "gemini-2.5-pro", &time(0, 5));
    let first = Reading { prompt: 15327, output: 23, cached: 11526, thoughts: 919, tool: 7 };
    let last = Reading { prompt: 300, output: 20, cached: 100, thoughts: 5, tool: 0 };
    let long = answer("g2", Reading { prompt: 2000, output: 100, cached: 0, thoughts: 50, tool: 0 });
    let padding = "x".repeat(10 * 1024 * 1024 + 1 - long.len());
    let long = long.replace("\"ok\"", &format!("\"ok{padding}\""));
    assert_eq!(long.len(), 10 * 1024 * 1024 + 1);
    let content =
        [header("s1", 0), answer("g1", first) + "\n", long + "\n", answer("g3", last) + "\n"].concat();
    let path = root.join(".gemini/tmp/p/chats/session-2026-08-20T10-00-aaaaaaaa.jsonl");
    write(&path, content.as_bytes(), SETTLED);
}

#[test]
fn every_trap_gives_exactly_the_answer_beside_it() {
    let traps = json(&fixture("traps/homes/traps.json"));
    let traps = traps.as_object().unwrap();
    assert!(traps.len() >= 64, "the traps are found");
    let mut all = Vec::new();
    for (trap, what) in traps {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        if what.get("lazy").is_some() {
            assert_eq!(trap, "47-line-over-cap");
            write_over_cap(root);
        } else {
            copy_tree(&fixture("traps/homes").join(trap), root, SETTLED);
        }
        if let Some(link) = what.pointer("/setup/symlink") {
            let place = |key: &str| root.join(link[key].as_str().unwrap());
            assert!(place("target").exists());
            std::os::unix::fs::symlink(place("target"), place("path")).unwrap();
        }
        let homes: Vec<_> =
            what["homes"].as_array().unwrap().iter().map(|home| root.join(home.as_str().unwrap())).collect();
        let mut books = Books::of(&homes);
        books.scan();
        let facts = books.facts();
        all.extend(wrong(trap, &what["expect"], &facts));
        // Whatever is read again, from the start or not, changes nothing.
        books.restart();
        books.scan();
        if books.facts().requests != facts.requests || books.facts().counted() != facts.counted() {
            all.push(format!("{trap}: another process finds something else"));
        }
    }
    assert!(all.is_empty(), "{} wrong answers:\n{}", all.len(), all.join("\n"));
}

#[test]
fn r73_a_planted_symlink_is_skipped_and_said_so() {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(&fixture("traps/homes/42-symlink"), dir.path(), SETTLED);
    let chats = dir.path().join(".gemini/tmp/p/chats");
    std::os::unix::fs::symlink(
        dir.path().join("elsewhere.jsonl"),
        chats.join("session-2026-08-20T10-05-bbbbbbbb.jsonl"),
    )
    .unwrap();
    let mut books = Books::of(&[dir.path()]);
    books.scan();
    let facts = books.facts();
    assert_eq!(facts.journal("bbbbbbbb.jsonl"), ("skipped", Some("symlink")));
    assert_eq!(facts.counter("journal_skipped", "symlink"), 1);
    fs::remove_file(chats.join("session-2026-08-20T10-05-bbbbbbbb.jsonl")).unwrap();
    books.scan();
    assert_eq!(books.facts().journal("bbbbbbbb.jsonl").0, "gone");
}
