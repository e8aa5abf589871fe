//! Every expression of the dashboards, asked of a real Prometheus that holds
//! the made-up days of `world`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::world::{END, TUPLES, Tuple, open_metrics};
use super::{Dashboard, targets};
use crate::backfill::{backfill, demo, reported};
use crate::prometheus::Prometheus;
use crate::support::poll::until;
use crate::support::skip::missing;

const WEEK: i64 = 7 * 86_400;
/// A project whose name is a regular expression of its own, escaped as Grafana does.
const OPS: &str = "ops \\\\(x\\\\)";

/// What Grafana puts in the place of variables: seven days are selected, seen
/// at points ten minutes apart.
fn substituted(expression: &str, chosen: &[(&str, &str)]) -> String {
    let mut expression =
        expression.replace("$__rate_interval", "1h").replace("$__range", "7d").replace("$__interval", "10m");
    for name in ["job", "instance", "home", "project", "model", "account"] {
        let value = chosen.iter().find(|(of, _)| *of == name).map_or(".+", |(_, value)| value);
        expression = expression.replace(&format!("\"${name}\""), &format!("\"{value}\""));
    }
    assert!(!expression.contains('$'), "a variable is left: {expression}");
    expression
}

/// Makes blocks of OpenMetrics text. `None` where promtool or prometheus is not installed.
fn prometheus_of(dir: &Path, text: &str) -> Option<Prometheus> {
    let file = dir.join("history.om");
    std::fs::write(&file, text).unwrap();
    let made = Command::new("promtool")
        // It reads the file once for each block: few and long ones.
        .args(["tsdb", "create-blocks-from", "--max-block-duration=162h", "--quiet", "openmetrics"])
        .args([&file, &dir.join("tsdb")])
        .output();
    let made = match made {
        Ok(made) => made,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("promtool does not start: {error}"),
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let prometheus = Prometheus::of_blocks(dir)?;
    until("prometheus", || prometheus.query("vector(1)").filter(Value::is_array).ok_or("it is not up"));
    Some(prometheus)
}

/// A query as a panel asks it at the end of the made-up days.
fn ask(prometheus: &Prometheus, expression: &str, instant: bool) -> Vec<Value> {
    let end = END.to_string();
    let start = (END - 7200).to_string();
    let data = if instant {
        prometheus.ask("query", &[("query", expression), ("time", &end)])
    } else {
        prometheus
            .ask("query_range", &[("query", expression), ("start", &start), ("end", &end), ("step", "600")])
    };
    data.unwrap()["result"].as_array().unwrap().clone()
}

/// The last value of a series.
fn last(series: &Value) -> f64 {
    let pair = series["values"].as_array().map_or(&series["value"], |values| values.last().unwrap());
    pair[1].as_str().unwrap().parse().unwrap()
}

/// Values of a panel's query by one label.
fn by(label: &str, rows: &[Value]) -> BTreeMap<String, f64> {
    rows.iter().map(|row| (row["metric"][label].as_str().unwrap_or_default().to_owned(), last(row))).collect()
}

/// Everything on the dashboards, in one history.
#[test]
fn every_expression_returns_what_the_history_holds() {
    let dir = tempfile::tempdir().unwrap();
    let Some(prometheus) = prometheus_of(dir.path(), &open_metrics()) else {
        return missing("prometheus");
    };
    let dashboards = Dashboard::all();
    for dashboard in &dashboards {
        answers(&prometheus, dashboard);
        offers(&prometheus, dashboard);
    }
    for rule in super::rules::expressions() {
        // Of most alerts nothing comes here; none may be ambiguous.
        ask(&prometheus, &rule, true);
    }
    spend(&prometheus, &dashboards[0]);
    claims(&prometheus, &dashboards[0]);
    quota(&prometheus, &dashboards[1]);
}

/// With everything chosen or with one exact project, each query has an answer.
fn answers(prometheus: &Prometheus, dashboard: &Dashboard) {
    let mut silent = Vec::new();
    for panel in dashboard.panels() {
        for target in targets(panel) {
            let answered =
                [&[][..], &[("project", "web")], &[("project", "api")]].into_iter().any(|chosen| {
                    let expression = substituted(target["expr"].as_str().unwrap(), chosen);
                    ask(prometheus, &expression, target["instant"] == true)
                        .iter()
                        .any(|row| last(row).is_finite())
                });
            if !answered {
                silent.push(format!("{} {}: {}", panel["title"], target["refId"], target["expr"]));
            }
        }
    }
    for annotation in dashboard.annotations() {
        let expression = substituted(annotation["expr"].as_str().unwrap(), &[]);
        assert!(!ask(prometheus, &expression, false).is_empty(), "{}: {expression}", annotation["name"]);
    }
    assert!(silent.is_empty(), "{}: nothing comes of\n{}", dashboard.uid, silent.join("\n"));
}

/// The variables offer what there is.
fn offers(prometheus: &Prometheus, dashboard: &Dashboard) {
    for variable in dashboard.variables() {
        let Some(query) = variable["query"]["query"].as_str() else { continue };
        let query = query.strip_prefix("label_values(").and_then(|query| query.strip_suffix(')')).unwrap();
        let (selector, label) = query.rsplit_once(", ").unwrap();
        let (start, end) = ((END - WEEK).to_string(), END.to_string());
        let selector = substituted(selector, &[]);
        let parameters = [("match[]", &*selector), ("start", &start), ("end", &end)];
        let values = prometheus.ask(&format!("label/{label}/values"), &parameters).unwrap();
        let values: BTreeSet<_> =
            values.as_array().unwrap().iter().map(|value| value.as_str().unwrap()).collect();
        let wanted: Option<BTreeSet<_>> = match label {
            "job" => Some(["gemgauge"].into()),
            "instance" => Some(TUPLES.iter().map(|tuple| tuple.instance).collect()),
            "home" => Some(TUPLES.iter().map(|tuple| tuple.home).collect()),
            "project" => Some(TUPLES.iter().map(|tuple| tuple.project).collect()),
            "account" => Some(["a1b2c3d4"].into()),
            _ => None,
        };
        match wanted {
            Some(wanted) => assert_eq!(values, wanted, "{}: {query}", dashboard.uid),
            None => assert!(values.len() >= 3, "{}: {query}: {values:?}", dashboard.uid),
        }
    }
}

/// The rows of a column of a table, or of the one query of another panel.
fn rows(prometheus: &Prometheus, panel: &Value, reference: &str, chosen: &[(&str, &str)]) -> Vec<Value> {
    let target = targets(panel).find(|target| target["refId"] == reference).unwrap();
    let expression = substituted(target["expr"].as_str().unwrap(), chosen);
    ask(prometheus, &expression, target["instant"] == true)
}

/// The query behind a heading of a table.
fn column<'a>(panel: &'a Value, heading: &str) -> &'a str {
    let renamed = panel["transformations"][1]["options"]["renameByName"].as_object().unwrap();
    let (value, _) = renamed.iter().find(|(_, to)| *to == heading).unwrap();
    value.strip_prefix("Value #").unwrap_or("A")
}

fn summed(of: impl Fn(&Tuple) -> &str, value: impl Fn(&Tuple) -> f64) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for tuple in &TUPLES {
        *sums.entry(of(tuple).to_owned()).or_default() += value(tuple);
    }
    sums
}

fn close(got: &BTreeMap<String, f64>, wanted: &BTreeMap<String, f64>, what: &str) {
    assert!(got.keys().eq(wanted.keys()), "{what}: {got:?}, wanted {wanted:?}");
    for (key, wanted) in wanted {
        assert!(
            (got[key] - wanted).abs() <= 1e-9 * wanted.abs().max(1.0),
            "{what} {key}: {got:?}, wanted {wanted}"
        );
    }
}

/// Spend over a range is what was spent, with a project born within it and an
/// instance that joined within it and brought five million tokens of a class along.
fn spend(prometheus: &Prometheus, dashboard: &Dashboard) {
    let (models, projects) = (dashboard.panel("By model"), dashboard.panel("By project"));
    for (heading, value) in [
        ("Tokens", (|tuple| tuple.tokens(WEEK) as f64) as fn(&Tuple) -> f64),
        ("Cost", |tuple| tuple.cost(WEEK)),
    ] {
        let got = rows(prometheus, models, column(models, heading), &[]);
        close(&by("model", &got), &summed(|tuple| tuple.model, value), heading);
        let got = rows(prometheus, projects, column(projects, heading), &[]);
        close(&by("project", &got), &summed(|tuple| tuple.project, value), heading);
    }
    let got = rows(prometheus, dashboard.panel("By role"), "A", &[]);
    close(&by("role", &got), &summed(|tuple| tuple.role, |tuple| tuple.tokens(WEEK) as f64), "By role");
    let homes = dashboard.panel("Homes");
    let got = rows(prometheus, homes, column(homes, "Cost"), &[]);
    close(&by("home", &got), &summed(|tuple| tuple.home, |tuple| tuple.cost(WEEK)), "Homes");

    let got = rows(prometheus, projects, column(projects, "Tokens"), &[("project", OPS)]);
    let ops = |tuple: &Tuple| if tuple.project == "ops (x)" { tuple.tokens(WEEK) as f64 } else { 0.0 };
    close(
        &by("project", &got),
        &BTreeMap::from([("ops (x)".to_owned(), TUPLES.iter().map(ops).sum())]),
        "ops (x)",
    );

    let whole = |value: fn(&Tuple) -> f64| summed(|_| "", value);
    let got = rows(prometheus, dashboard.panel("Unmeasured turns"), "A", &[]);
    close(&by("", &got), &BTreeMap::from([(String::new(), 14.0)]), "two turns a day are unmeasured");
    let got = rows(prometheus, dashboard.panel("Unpriced tokens"), "A", &[]);
    let unpriced = whole(|tuple| if tuple.cost(WEEK) == 0.0 { tuple.tokens(WEEK) as f64 } else { 0.0 });
    close(&by("", &got), &unpriced, "unpriced");

    // increase() extrapolates, by little: that is good for a share.
    let got = rows(prometheus, dashboard.panel("Lower-bound share"), "A", &[]);
    let bound = whole(|tuple| if tuple.exact { 0.0 } else { tuple.tokens(WEEK) as f64 })[""];
    let wanted = bound / whole(|tuple| tuple.tokens(WEEK) as f64)[""];
    assert!((last(&got[0]) / wanted - 1.0).abs() < 0.02, "{got:?}, wanted {wanted}");

    let budgets = dashboard.panel("Budgets");
    let day = 86_400.0;
    let (team, web) = ("team", "web");
    for (heading, wanted) in [
        ("Spent", &[(team, 30.0), (web, 15.0)][..]),
        ("Used", &[(team, 0.3), (web, 0.75)]),
        ("Pace", &[(team, 0.6), (web, 1.5)]),
        ("Claim", &[(team, 1.0), (web, 1.0)]),
        ("Forecast", &[(team, 60.0), (web, 30.0)]),
        ("Ends in", &[(team, 15.0 * day), (web, 15.0 * day)]),
        // A dollar a day: five are left. The other lasts longer than its period.
        ("Lasts", &[(web, 5.0 * day)]),
    ] {
        let got = rows(prometheus, budgets, column(budgets, heading), &[]);
        assert!(got.iter().all(|row| row["metric"]["period"] == "month"), "{heading}: {got:?}");
        let wanted = wanted.iter().map(|(budget, value)| ((*budget).to_owned(), *value)).collect();
        close(&by("budget", &got), &wanted, heading);
    }
}

/// The same panels over what `gemgauge backfill` writes of the demo home say what the report says.
#[test]
fn the_demo_homes_week_is_on_the_spend_dashboard() {
    let sandbox = demo();
    let history = backfill(&sandbox, &["--step", "1m"]);
    let Some(prometheus) = prometheus_of(sandbox.path(), &history) else { return missing("prometheus") };
    let dashboard = &Dashboard::all()[0];
    let reported = reported(&sandbox);
    for (title, label) in [("By project", "project"), ("By model", "model")] {
        let panel = dashboard.panel(title);
        for (heading, at) in [("Tokens", 0), ("Requests", 1)] {
            let mut wanted = BTreeMap::<String, f64>::new();
            for ((project, model), figures) in &reported {
                let key = if label == "project" { project } else { model };
                *wanted.entry(key.clone()).or_default() += figures[at] as f64;
            }
            let got = rows(&prometheus, panel, column(panel, heading), &[]);
            close(&by(label, &got), &wanted, &format!("{title}, {heading}"));
        }
    }
}

/// A figure has one claim: exact only where all of it is settled as exact,
/// nothing is unmeasured and everything has a price; an estimate where one is in it.
fn claims(prometheus: &Prometheus, dashboard: &Dashboard) {
    let day = 86_400;
    // Cost over a range leaves estimates out: there it is a bound, where the calendar's sum is an estimate.
    for (project, calendar, range) in [
        (None, "C", "B"),
        (Some("web"), "B", "B"),
        // All of its tokens are settled as exact, but for a turn a day that is unmeasured.
        (Some("ops (x)"), "C", "B"),
        (Some("api"), "A", "A"),
    ] {
        let escaped = if project == Some("ops (x)") { Some(OPS) } else { project };
        let chosen: Vec<_> = escaped.map(|project| ("project", project)).into_iter().collect();
        let chosen = chosen.as_slice();
        let tuples = || TUPLES.iter().filter(|tuple| project.is_none_or(|project| tuple.project == project));
        // Eight days are all that Prometheus has.
        for (title, window, claim) in [
            ("Today", day, calendar),
            ("This month", WEEK, calendar),
            ("7 days", WEEK, range),
            ("30 days", 8 * day, range),
            ("Selected range", WEEK, range),
        ] {
            let cost = tuples().map(|tuple| tuple.cost(window)).sum();
            claimed(prometheus, dashboard.panel(title), chosen, claim, cost);
        }
        let tokens = tuples().map(|tuple| tuple.tokens(WEEK) as f64).sum();
        claimed(prometheus, dashboard.panel("Tokens"), chosen, range, tokens);
    }
    let by_project = dashboard.panel("By project");
    let got = rows(prometheus, by_project, column(by_project, "Claim"), &[]);
    let wanted =
        [("api", 0.0), ("ops (x)", 1.0), ("web", 1.0)].map(|(project, bound)| (project.to_owned(), bound));
    close(&by("project", &got), &wanted.into(), "Claim");
}

fn claimed(prometheus: &Prometheus, panel: &Value, chosen: &[(&str, &str)], claim: &str, wanted: f64) {
    for target in targets(panel) {
        let reference = target["refId"].as_str().unwrap();
        let got = rows(prometheus, panel, reference, chosen);
        let what = format!("{} {reference} of {chosen:?}: {got:?}, wanted {claim} {wanted}", panel["title"]);
        if reference == claim {
            assert_eq!(got.len(), 1, "{what}");
            assert!((last(&got[0]) - wanted).abs() <= 1e-9 * wanted, "{what}");
        } else {
            assert!(got.is_empty(), "{what}");
        }
    }
}

/// 20 % are left, 2 % go in ten minutes, the reset is in two hours: it runs out
/// first, by a pace of 120 %, in 100 minutes.
fn quota(prometheus: &Prometheus, dashboard: &Dashboard) {
    let value = |title: &str| {
        let got = rows(prometheus, dashboard.panel(title), "A", &[]);
        assert_eq!(got.len(), 1, "{title}: {got:?}");
        last(&got[0])
    };
    assert_eq!(value("Least left"), 0.2);
    assert_eq!(value("Next reset"), 7200.0);
    assert_eq!(value("Run out before reset"), 1.0);
    assert_eq!(value("Blocked"), 1.0);
    assert_eq!(value("Contradicted"), 1.0);
    assert_eq!(value("Not reported"), 1.0);
    assert_eq!(value("Observed"), 60.0);
    let buckets = dashboard.panel("Buckets");
    let got = rows(prometheus, buckets, column(buckets, "Left"), &[]);
    let left =
        [("gemini-2.5-pro", 0.2), ("gemini-2.5-flash", 0.9)].map(|(model, left)| (model.to_owned(), left));
    close(&by("model", &got), &left.into(), "what is not reported is not shown");
    let got = by("model", &rows(prometheus, buckets, column(buckets, "Runway"), &[]));
    assert!((got["gemini-2.5-pro"] - 6000.0).abs() < 1e-6, "{got:?}");
    let got = by("model", &rows(prometheus, dashboard.panel("Pace"), "A", &[]));
    assert!((got["gemini-2.5-pro"] - 1.2).abs() < 1e-9, "{got:?}");
    // Of a home that no account belongs to nothing is shown.
    assert!(rows(prometheus, dashboard.panel("Left by model"), "A", &[("home", "nobody")]).is_empty());
}
