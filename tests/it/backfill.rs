//! The ledger's history in a real Prometheus: what it returns is what the
//! report says, under the labels of the scrape.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::prometheus::{Prometheus, SPEND};
use crate::support::Sandbox;
use crate::support::books::NOW;
use crate::support::exposition::{Exposition, Series};
use crate::support::files::{copy_tree, fixture};
use crate::support::poll::until;
use crate::support::skip::missing;

/// The end of the demo home's week.
const END: &str = "2026-11-30T00:00:00Z";
const END_SECONDS: i64 = 1_795_996_800;

pub(crate) fn demo() -> Sandbox {
    let sandbox = Sandbox::new();
    copy_tree(&fixture("home/.gemini"), &sandbox.home().join(".gemini"), NOW - 24 * 3600 * 1000);
    sandbox
}

pub(crate) fn backfill(sandbox: &Sandbox, args: &[&str]) -> String {
    let said = sandbox.run(&[&["backfill", "--until", END], args].concat());
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.ends_with("\n# EOF\n"));
    said.out
}

/// What the report says by project and model.
pub(crate) fn reported(sandbox: &Sandbox) -> BTreeMap<(String, String), [u64; 2]> {
    let said = sandbox.run(&["report", "projects", "--by", "model", "--since", "all", "--json"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    let mut reported = BTreeMap::new();
    for row in report["rows"].as_array().unwrap() {
        for part in row["by_model"].as_array().unwrap().iter().filter(|part| part["requests"] != 0) {
            let key = [&row["key"], &part["model"]].map(|name| name.as_str().unwrap().to_owned());
            let figures = [&part["tokens"]["total"], &part["requests"]].map(|n| n.as_u64().unwrap());
            assert_eq!(reported.insert(key.into(), figures), None);
        }
    }
    reported
}

#[test]
fn a_prometheus_that_came_later_returns_the_reports_numbers() {
    let sandbox = demo();
    let history = sandbox.write("history.om", &backfill(&sandbox, &["--step", "1m"]));
    let made = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics"])
        .args([&history, &sandbox.path().join("tsdb")])
        .output();
    let made = match made {
        Ok(made) => made,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return missing("promtool"),
        Err(error) => panic!("promtool does not start: {error}"),
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let Some(prometheus) = Prometheus::of_blocks(sandbox.path()) else { return missing("prometheus") };

    let wanted = reported(&sandbox);
    assert!(wanted.len() >= 5, "{wanted:?}");
    for (counter, at) in [("gemgauge_tokens_total", 0), ("gemgauge_requests_total", 1)] {
        // As the interface has it, at the end of the history instead of now.
        let query = SPEND
            .replace("(project)", "(project, model)")
            .replace("C[R]", &format!("{counter}[7d] @ {END_SECONDS}"))
            .replace('R', "7d");
        let result = until("an answer", || prometheus.query(&query).ok_or("it is not up"));
        let mut stored = BTreeMap::new();
        for row in result.as_array().unwrap() {
            let label = |name: &str| row["metric"][name].as_str().unwrap().to_owned();
            let value: f64 = row["value"][1].as_str().unwrap().parse().unwrap();
            stored.insert((label("project"), label("model")), value as u64);
        }
        let wanted: BTreeMap<_, _> = wanted.iter().map(|(key, figures)| (key.clone(), figures[at])).collect();
        assert_eq!(stored, wanted, "{query}");
    }

    // A day of it is that day.
    let day = SPEND
        .replace(" by (project)", "")
        .replace("C[R]", &format!("gemgauge_tokens_total[1d] @ {END_SECONDS}"))
        .replace('R', "1d");
    let said = sandbox.run(&["report", "--since", "2026-11-29", "--until", "2026-11-29", "--json"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    let value = prometheus.query(&day).unwrap()[0]["value"][1].as_str().unwrap().to_owned();
    assert_eq!(value, report["total"]["tokens"]["total"].to_string());
}

/// A series without the labels that a scraper adds.
fn scraped(series: &Series) -> (String, Vec<(String, String)>) {
    let mut labels = series.labels.clone();
    labels.retain(|(name, _)| name != "job" && name != "instance");
    labels.sort();
    (series.name.clone(), labels)
}

#[test]
fn history_ends_where_the_scrape_begins() {
    let sandbox = demo();
    let text = backfill(&sandbox, &["--job", "ai", "--instance", "host:1"]);
    assert!(
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .all(|line| { line.contains("instance=\"host:1\",job=\"ai\"}") })
    );
    let mut history = BTreeMap::new();
    for series in &Exposition::parse(&text).0 {
        let value = series.value;
        let first = history.entry(scraped(series)).or_insert((value, value));
        assert!(first.0 == 0.0 && first.1 <= value, "begins at 0 and never falls: {series:?}");
        first.1 = value;
    }
    let service = sandbox.serve_ready(&[]);
    let scrape = Exposition::parse(&service.get("/metrics").body);
    let spend = ["gemgauge_tokens_total", "gemgauge_requests_total", "gemgauge_cost_usd_total"];
    let scrape = scrape.0.iter().filter(|series| spend.contains(&series.name.as_str()));
    let scrape: BTreeMap<_, _> = scrape.map(|series| (scraped(series), series.value)).collect();
    let history: BTreeMap<_, _> = history.into_iter().map(|(series, (_, last))| (series, last)).collect();
    assert!(scrape.len() > 10);
    assert_eq!(history, scrape);
}

#[test]
fn a_range_that_ends_before_it_begins_is_usage() {
    let said = demo().run(&["backfill", "--since", "2026-11-30", "--until", "2026-11-01"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{}", said.err);
}
