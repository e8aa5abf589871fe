//! Recording and alert rules: Prometheus's own checks of them, and what they owe the reader.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::promql::selectors;
use super::{family, metrics, read, root};
use crate::support::skip::missing;

fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rules(file: &str) -> Vec<Value> {
    let file = yaml(&root().join("rules").join(file));
    let groups = file["groups"].as_array().unwrap().iter();
    groups.flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

/// The expressions of all rules.
pub(super) fn expressions() -> Vec<String> {
    let rules = rules("recording.yml").into_iter().chain(rules("alerts.yml"));
    rules.map(|rule| rule["expr"].as_str().unwrap().to_owned()).collect()
}

fn tests() -> Vec<PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(root().join("rules/tests")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    files
}

/// Runs promtool on files; says so where it is not installed.
fn promtool(args: &[&str], files: &[PathBuf]) {
    // One for each file, side by side.
    let mut running = Vec::new();
    for file in files {
        let mut command = Command::new("promtool");
        match command.args(args).arg(file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
            Ok(child) => running.push(child),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return missing("promtool"),
            Err(error) => panic!("promtool does not start: {error}"),
        }
    }
    for child in running {
        let output = child.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn promtool_finds_nothing_in_the_rules() {
    let files = ["recording.yml", "alerts.yml"].map(|file| root().join("rules").join(file));
    promtool(&["check", "rules", "--lint=all", "--lint-fatal"], &files);
}

#[test]
fn alerts_fire_stay_quiet_below_and_resolve() {
    promtool(&["test", "rules"], &tests());
}

/// A duration as promtool reads it, in minutes.
fn minutes(duration: &str) -> u64 {
    let mut total = 0;
    let mut number = String::new();
    for character in duration.chars() {
        match character {
            'd' => total += 1440 * std::mem::take(&mut number).parse::<u64>().unwrap(),
            'h' => total += 60 * std::mem::take(&mut number).parse::<u64>().unwrap(),
            'm' => total += std::mem::take(&mut number).parse::<u64>().unwrap(),
            digit => number.push(digit),
        }
    }
    assert!(number.is_empty(), "{duration}");
    total
}

/// The unit tests are worth what they cover: each alert fires in one of them,
/// and in a test in which it fires it was quiet before, or is afterwards; over
/// all of them both are there.
#[test]
fn every_alert_is_tested_before_during_and_after() {
    let mut seen: BTreeMap<String, [bool; 3]> = BTreeMap::new();
    for file in tests() {
        for test in yaml(&file)["tests"].as_array().unwrap() {
            let mut of: BTreeMap<&str, Vec<(u64, bool)>> = BTreeMap::new();
            for check in test["alert_rule_test"].as_array().into_iter().flatten() {
                let fires = check["exp_alerts"].as_array().is_some_and(|alerts| !alerts.is_empty());
                let at = minutes(check["eval_time"].as_str().unwrap());
                of.entry(check["alertname"].as_str().unwrap()).or_default().push((at, fires));
            }
            for (alert, checks) in of {
                let firing = checks.iter().filter(|(_, fires)| *fires).map(|(at, _)| *at);
                let (first, last) = (firing.clone().min(), firing.max());
                let quiet =
                    |wanted: &dyn Fn(u64) -> bool| checks.iter().any(|(at, fires)| !fires && wanted(*at));
                let covered = seen.entry(alert.to_owned()).or_default();
                covered[1] |= first.is_some();
                // A test in which it never fires shows where it does not.
                covered[0] |= quiet(&|at| first.is_none_or(|first| at < first));
                covered[2] |= quiet(&|at| last.is_some_and(|last| at > last));
            }
        }
    }
    let alerts: BTreeSet<String> =
        rules("alerts.yml").iter().map(|rule| rule["alert"].as_str().unwrap().to_owned()).collect();
    assert_eq!(alerts, seen.keys().cloned().collect(), "tests are of alerts there are, and of all of them");
    let short: Vec<_> = seen.iter().filter(|(_, covered)| covered.contains(&false)).collect();
    assert!(short.is_empty(), "[quiet below, fires, resolves]: {short:?}");
}

#[test]
fn every_alert_says_what_to_do() {
    let runbooks = read(&root().join("../docs/runbooks.md"));
    let sections: BTreeMap<&str, &str> = runbooks
        .split("\n## ")
        .skip(1)
        .map(|section| section.split_once('\n').unwrap())
        .filter(|(title, _)| title.starts_with("Gemgauge"))
        .collect();
    let mut names = BTreeSet::new();
    for rule in rules("alerts.yml") {
        let name = rule["alert"].as_str().unwrap();
        assert!(names.insert(name.to_owned()), "{name} is there once");
        let severity = rule["labels"]["severity"].as_str().unwrap();
        assert!(["critical", "warning", "info"].contains(&severity), "{name}: {severity}");
        assert_eq!(rule["labels"].as_object().unwrap().len(), 1, "{name} has a severity and no other label");
        for annotation in ["summary", "description"] {
            let said = rule["annotations"][annotation].as_str().unwrap();
            assert!(said.len() > 15, "{name}: {said}");
        }
        let anchor = format!("docs/runbooks.md#{}", name.to_lowercase());
        assert_eq!(rule["annotations"]["runbook_url"], *anchor, "{name}");
        let section = sections.get(name).unwrap_or_else(|| panic!("docs/runbooks.md has no section {name}"));
        for part in ["**Means**", "**Check**", "**Do**"] {
            assert!(section.contains(part), "{name}: its section says {part}");
        }
    }
    assert_eq!(
        names,
        sections.keys().map(|name| (*name).to_owned()).collect(),
        "sections of alerts there are"
    );
}

/// What was spent is a lower bound: "more than" may follow from it, "less than" may not.
#[test]
fn no_alert_claims_that_less_was_spent() {
    for rule in rules("alerts.yml") {
        let expression = rule["expr"].as_str().unwrap();
        if expression.contains('<') {
            let (left, _) = expression.split_once('<').unwrap();
            let left = selectors(left).pop().unwrap().metric;
            assert_eq!(left, "account_model:gemgauge_quota_remaining:fresh_ratio", "{expression}");
        }
    }
}

#[test]
fn rules_are_about_metrics_there_are() {
    let metrics = metrics();
    let recorded: Vec<Value> = rules("recording.yml");
    let names: BTreeSet<String> =
        recorded.iter().map(|rule| rule["record"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names.len(), recorded.len(), "no name is recorded twice");
    for name in &names {
        let parts: Vec<_> = name.split(':').collect();
        let [_, metric, _] = parts[..] else { panic!("{name} is level:metric:operations") };
        let known = metrics.keys().any(|known| known.starts_with(metric));
        assert!(known, "{name} names a metric");
    }
    for rule in recorded.iter().chain(&rules("alerts.yml")) {
        for selector in selectors(rule["expr"].as_str().unwrap()) {
            let metric = family(&selector.metric);
            let known = metric == "up" || metrics.contains_key(&metric) || names.contains(&metric);
            assert!(known, "there is no {metric}: {}", rule["expr"]);
        }
    }
    // What is recorded is used.
    let rules: Vec<Value> = recorded.into_iter().chain(rules("alerts.yml")).collect();
    let used =
        |name: &&String| rules.iter().any(|rule| rule["expr"].as_str().unwrap().contains(name.as_str()));
    let idle: Vec<_> = names.iter().filter(|name| !used(name)).collect();
    assert!(idle.is_empty(), "{idle:?}");
}
