//! Money through the real binary: first prices, gaps, repricing.

use serde_json::Value;

use crate::support::Sandbox;

const HEADER: &str = r#"{"sessionId":"aaaaaaaa-1","projectHash":"h","startTime":"2026-08-20T10:00:00.000Z","lastUpdated":"2026-08-20T10:00:00.000Z","kind":"main"}"#;

fn answer(id: &str, model: &str, input: u64, cached: u64, output: u64) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-08-20T10:00:05.000Z","type":"gemini","content":"ok","thoughts":[],"tokens":{{"input":{input},"output":{output},"cached":{cached},"thoughts":0,"tool":0,"total":{}}},"model":"{model}"}}"#,
        input + output
    )
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let lines = [
        HEADER.to_owned(),
        answer("g1", "gemini-2.5-pro", 250_000, 200_000, 0),
        answer("g2", "gemini-of-tomorrow", 1_000, 0, 500),
    ];
    let journal = "home/.gemini/tmp/p/chats/session-2026-08-20T10-00-aaaaaaaa.jsonl";
    sandbox.write(journal, &(lines.join("\n") + "\n"));
    sandbox
}

/// The ledger's requests: message id to cost in 10⁻¹² USD.
fn costs(sandbox: &Sandbox) -> Vec<(String, Option<i64>)> {
    let db = rusqlite::Connection::open(sandbox.ledger()).unwrap();
    let mut rows = db.prepare("SELECT message_id, cost FROM requests ORDER BY message_id").unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn a_request_is_priced_when_it_is_read_and_a_model_without_a_price_is_a_gap() {
    let sandbox = sandbox();
    assert_eq!(sandbox.run(&["report", "--since", "all"]).code, 0);
    // 50,000 at $2.50 and 200,000 cached at $0.25: the whole request at the high rates.
    assert_eq!(costs(&sandbox), [("g1".into(), Some(175_000_000_000)), ("g2".into(), None)]);
}

#[test]
fn repricing_moves_the_figures_and_counters_keep_the_first_price() {
    let sandbox = sandbox();
    assert_eq!(sandbox.run(&["report", "--since", "all"]).code, 0);
    let prices = sandbox.write(
        "prices.yml",
        "prices:\n  - model: gemini-of-tomorrow\n    list: gemini-api\n    input: 1\n    output: 10\n    source: a test\n",
    );
    let said = sandbox.run(&["reprice", "--json", "--prices", prices.to_str().unwrap()]);
    assert_eq!(said.code, 0, "{}", said.err);
    let changes: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(changes["changed"], 1, "{changes}");
    assert_eq!(changes["models"][0]["model"], "gemini-of-tomorrow");
    assert_eq!(changes["models"][0]["unpriced_before"], 1_500);
    assert_eq!(changes["models"][0]["unpriced_after"], 0);
    // 1,000 at $1 and 500 at $10 a million.
    assert_eq!(costs(&sandbox)[1], ("g2".into(), Some(6_000_000_000)));

    let db = rusqlite::Connection::open(sandbox.ledger()).unwrap();
    let tuple = |column: &str| -> i64 {
        let sql = format!("SELECT {column} FROM tuples WHERE model = 'gemini-of-tomorrow'");
        db.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(tuple("cost_uncached_input + cost_output"), 0);
    assert_eq!(tuple("unpriced_uncached_input + unpriced_output"), 1_500);
    assert_eq!(tuple("cost_adjustment"), 6_000_000_000);

    let again = sandbox.run(&["reprice", "--prices", prices.to_str().unwrap()]);
    assert!(again.out.starts_with("Nothing changed"), "{}", again.out);
}

#[test]
fn repricing_leaves_a_home_alone_that_nobody_names() {
    let sandbox = sandbox();
    let other = sandbox.write(
        "other/.gemini/tmp/p/chats/session-2026-08-20T10-00-aaaaaaaa.jsonl",
        &format!("{HEADER}\n{}\n", answer("g3", "gemini-of-tomorrow", 1_000, 0, 500)),
    );
    let other = other.ancestors().nth(5).unwrap();
    assert_eq!(sandbox.run(&["report", "--since", "all"]).code, 0);
    assert_eq!(sandbox.run(&["report", "--since", "all", "--home", other.to_str().unwrap()]).code, 0);
    let prices = sandbox.write(
        "prices.yml",
        "prices:\n  - model: gemini-of-tomorrow\n    list: gemini-api\n    input: 1\n    output: 10\n    source: a test\n",
    );
    let said = sandbox.run(&["reprice", "--json", "--prices", prices.to_str().unwrap()]);
    let changes: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&changes["requests"], &changes["changed"]), (&2.into(), &1.into()), "{changes}");
    assert_eq!(costs(&sandbox)[1..], [("g2".into(), Some(6_000_000_000)), ("g3".into(), None)]);
}
