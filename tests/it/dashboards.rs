//! Grafana's dashboards and Prometheus's rules: their shape, that they show all
//! metrics, what their expressions return on a real Prometheus, and how Grafana's
//! code shows their figures. No test draws a dashboard: Grafana itself is in none of
//! the registries that the tests install from.

mod chain;
mod lint;
mod promql;
mod rules;
mod run;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::files::json;
use crate::support::skip::missing;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A dashboard of the repository.
struct Dashboard {
    uid: &'static str,
    json: Value,
}

impl Dashboard {
    fn all() -> Vec<Self> {
        ["gemgauge-spend", "gemgauge-quota", "gemgauge-service"]
            .into_iter()
            .map(|uid| Self { uid, json: json(&root().join(format!("{uid}.json"))) })
            .collect()
    }

    /// Its panels, without the rows between them.
    fn panels(&self) -> impl Iterator<Item = &Value> {
        self.json["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row")
    }

    fn variables(&self) -> impl Iterator<Item = &Value> {
        self.json["templating"]["list"].as_array().unwrap().iter()
    }

    fn panel(&self, title: &str) -> &Value {
        let mut found = self.panels().filter(|panel| panel["title"] == title);
        let panel = found.next().unwrap_or_else(|| panic!("{} has a panel {title}", self.uid));
        assert!(found.next().is_none(), "{} has one panel {title}", self.uid);
        panel
    }

    fn annotations(&self) -> impl Iterator<Item = &Value> {
        self.json["annotations"]["list"].as_array().unwrap().iter()
    }

    /// The expressions of its panels, annotations and variables.
    fn expressions(&self) -> Vec<&str> {
        let targets = self.panels().flat_map(targets).map(|target| target["expr"].as_str().unwrap());
        let variables = self.variables().filter_map(|variable| variable["query"]["query"].as_str());
        let annotations = self.annotations().map(|annotation| annotation["expr"].as_str().unwrap());
        targets.chain(annotations).chain(variables).collect()
    }
}

/// The queries of a panel.
fn targets(panel: &Value) -> impl Iterator<Item = &Value> {
    panel["targets"].as_array().unwrap().iter()
}

/// Names of metrics in text, as they are exposed.
fn metrics_in(expressions: &[&str]) -> BTreeSet<String> {
    let selectors = expressions.iter().flat_map(|expression| promql::selectors(expression));
    selectors.map(|selector| family(&selector.metric)).collect()
}

/// The family that a series of a histogram belongs to.
fn family(series: &str) -> String {
    let histogram = |series: &str| {
        ["_bucket", "_count", "_sum"].iter().find_map(|end| series.strip_suffix(end)).map(str::to_owned)
    };
    histogram(series).unwrap_or_else(|| series.to_owned())
}

/// Every metric with its labels, as docs/metrics.md lists them, which is
/// generated from the descriptors.
fn metrics() -> BTreeMap<String, BTreeSet<String>> {
    let docs = read(&root().join("../docs/metrics.md"));
    let (_, reference) = docs.split_once("## Reference").expect("the reference");
    let (reference, _) = reference.split_once("## Closed lists").expect("the end of the reference");
    let owned = |labels: &mut dyn Iterator<Item = &str>| labels.map(str::to_owned).collect::<BTreeSet<_>>();
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in reference.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let [name, _, labels] = [(); 3].map(|()| cells.next().unwrap());
        // What is in back quotes stands at odd places between them.
        let labels = owned(&mut labels.split('`').skip(1).step_by(2));
        all.insert(name.trim_matches('`').to_owned(), labels);
    }
    assert_eq!(
        all["gemgauge_requests_total"],
        ["home", "project", "model", "role"].map(str::to_owned).into()
    );
    assert!(all["process_threads"].is_empty());
    all
}

#[test]
fn every_metric_is_on_a_dashboard_or_deliberately_not() {
    let dashboards = Dashboard::all();
    let expressions: Vec<_> = dashboards.iter().flat_map(Dashboard::expressions).collect();
    let shown = metrics_in(&expressions);
    let list = read(&root().join("not-shown.txt"));
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let hidden: BTreeSet<String> = lines
        .map(|line| {
            let (name, reason) = line.split_once(": ").expect("name: reason");
            assert!(reason.len() > 10, "{name} has a reason");
            name.to_owned()
        })
        .collect();
    let metrics = metrics();
    let missed: Vec<_> =
        metrics.keys().filter(|name| !shown.contains(*name) && !hidden.contains(*name)).collect();
    assert!(missed.is_empty(), "on no dashboard and not in dashboards/not-shown.txt: {missed:?}");
    let both: Vec<_> = hidden.intersection(&shown).collect();
    assert!(both.is_empty(), "on a dashboard and in dashboards/not-shown.txt: {both:?}");
    // Prometheus makes `up` itself.
    let known = |name: &&String| *name == "up" || metrics.contains_key(*name);
    let unknown: Vec<_> = shown.union(&hidden).filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "there are no such metrics: {unknown:?}");
}

#[test]
fn selectors_name_labels_there_are() {
    let metrics = metrics();
    let dashboards = Dashboard::all();
    let shown: Vec<_> = dashboards.iter().flat_map(Dashboard::expressions).map(str::to_owned).collect();
    for expression in shown.into_iter().chain(rules::expressions()) {
        for selector in promql::selectors(&expression) {
            let Some(labels) = metrics.get(&family(&selector.metric)) else { continue };
            for matcher in &selector.matchers {
                let label = matcher.split(['=', '!']).next().unwrap();
                let known = ["job", "instance", "le"].contains(&label) || labels.contains(label);
                assert!(known, "{} has no label {label}: {expression}", selector.metric);
            }
        }
    }
}

/// Grafana's own code shows the figures: the claim stands before the number,
/// and nothing measured is no number.
#[test]
fn figures_carry_their_claim_in_grafana() {
    let prefix = std::env::var_os("RECORD_PREFIX").map(PathBuf::from);
    let modules = prefix.map(|prefix| prefix.join("grafana/node_modules")).filter(|modules| modules.is_dir());
    let Some(modules) = modules else { return missing("@grafana/data (npm)") };
    let script = root().join("../tests/it/dashboards/shown.cjs");
    let output = Command::new("node")
        .env("NODE_PATH", modules)
        .arg(script)
        .arg(root().join("gemgauge-spend.json"))
        .output();
    let output = output.expect("node starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    for title in ["Today", "This month"] {
        let wanted = serde_json::json!({"A": "$1.23K", "B": "≥ $1.23K", "C": "~ $1.23K", "none": "—"});
        assert_eq!(said[title], wanted, "{title}");
    }
    for title in ["7 days", "30 days", "Selected range"] {
        assert_eq!(said[title], serde_json::json!({"A": "$1.23K", "B": "≥ $1.23K", "none": "—"}), "{title}");
    }
    for title in ["Tokens", "Requests"] {
        assert_eq!(said[title], serde_json::json!({"A": "1.23 K", "B": "≥ 1.23K", "none": "—"}), "{title}");
    }
    assert_eq!(said["Estimated cost"]["A"], "~ $1.23K");
    assert_eq!(said["Lower-bound share"]["none"], "—");
}

/// Runs python3 on a file of ours; `None` where it is not installed.
fn python(program: &Path, args: &[&Path]) -> Option<std::process::Output> {
    match Command::new(program).arg("-B").args(args).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{} does not start: {error}", program.display()),
    }
}

#[test]
fn the_dashboards_are_what_the_script_writes() {
    let made = tempfile::tempdir().unwrap();
    let Some(output) = python(Path::new("python3"), &[&root().join("generate"), made.path()]) else {
        return missing("python3");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for Dashboard { uid, .. } in Dashboard::all() {
        let file = format!("{uid}.json");
        let same = read(&made.path().join(&file)) == read(&root().join(&file));
        assert!(same, "{file} is not what the script writes: run python3 dashboards/generate");
    }
}

#[test]
fn grafanas_own_types_know_every_key() {
    // A virtual environment of tests/run.
    let prefix = std::env::var_os("RECORD_PREFIX").map(PathBuf::from);
    let Some(python3) = prefix.map(|prefix| prefix.join("grafana/bin/python3")) else {
        return missing("grafana-foundation-sdk (PyPI)");
    };
    let script = root().join("../tests/it/dashboards/round_trip.py");
    let files: Vec<_> =
        Dashboard::all().iter().map(|Dashboard { uid, .. }| root().join(format!("{uid}.json"))).collect();
    let args: Vec<&Path> = std::iter::once(&*script).chain(files.iter().map(PathBuf::as_path)).collect();
    let Some(output) = python(&python3, &args) else { return missing("grafana-foundation-sdk (PyPI)") };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.is_empty(), "{said}{}", String::from_utf8_lossy(&output.stderr));

    // A slip of the pen is found, or this proves nothing.
    let dir = tempfile::tempdir().unwrap();
    let slip = dir.path().join("slip.json");
    std::fs::write(&slip, read(&files[0]).replace("\"reduceOptions\"", "\"reduceOption\"")).unwrap();
    let output = python(&python3, &[&script, &slip]).unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains(".options.reduceOption\n"), "{output:?}");
}
