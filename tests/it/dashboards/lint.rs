//! The rules of grafana/dashboard-linter, and a few of our own. The linter is a
//! Go program that no registry of packages has; its rules are small.

use std::collections::BTreeSet;

use serde_json::Value;

use super::promql::{Selector, selectors};
use super::{Dashboard, targets};

/// Units of Grafana that these dashboards use; custom ones begin as Grafana wants it.
const UNITS: &[&str] =
    &["short", "none", "percentunit", "currencyUSD", "s", "dtdurations", "bytes", "Bps", "ops"];

fn is_source(value: &Value) -> bool {
    value["type"] == "prometheus" && value["uid"] == "${datasource}"
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The labels a metric can be filtered by: with a variable of that name, a query must.
fn has_label(metric: &str, label: &str) -> bool {
    let spend =
        ["tokens_total", "requests_total", "cost_usd_total", "cost_estimated_usd_total", "savings_usd_total"];
    match label {
        "job" | "instance" => true,
        "home" | "project" | "model" => {
            spend.iter().any(|end| metric.ends_with(end)) && !metric.contains("late")
        }
        _ => false,
    }
}

/// Everything wrong with a dashboard, as sentences.
fn findings(dashboard: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut say = |at: &str, what: &str| wrong.push(format!("{at}: {what}"));
    let variables: Vec<&Value> = dashboard["templating"]["list"].as_array().unwrap().iter().collect();
    let named = |name: &str| variables.iter().find(|variable| variable["name"] == name);

    // Import and provisioning alike: a variable for the source, nothing for the import wizard.
    if dashboard.get("__inputs").is_some() || dashboard["id"] != Value::Null {
        say("dashboard", "has inputs or an id");
    }
    if dashboard["editable"] != false {
        say("dashboard", "is editable");
    }
    if text(dashboard, "description").is_empty() {
        say("dashboard", "has no description");
    }
    match named("datasource") {
        Some(source) if source["type"] == "datasource" && source["query"] == "prometheus" => {
            if source["label"] != "Data source" {
                say("datasource", "is not labelled Data source");
            }
        }
        _ => say("datasource", "is no variable for a Prometheus"),
    }
    for (name, label) in [("job", "Job"), ("instance", "Instance")] {
        if named(name).is_none_or(|variable| variable["type"] != "query" || variable["label"] != label) {
            say(name, "is no query variable with its label");
        }
    }
    for variable in variables.iter().filter(|variable| variable["type"] == "query") {
        let name = text(variable, "name");
        if !is_source(&variable["datasource"]) {
            say(name, "asks another source");
        }
        if variable["multi"] != true || variable["includeAll"] != true || variable["allValue"] != ".+" {
            say(name, "does not take several values, or all");
        }
        if variable["refresh"] != 2 {
            say(name, "is not asked again when the range changes");
        }
        let query = text(&variable["query"], "query");
        if !(query.starts_with("label_values(") && query.ends_with(&format!(", {name})"))) {
            say(name, "does not list the values of its label");
        }
    }

    for annotation in dashboard["annotations"]["list"].as_array().unwrap() {
        let name = text(annotation, "name");
        if !is_source(&annotation["datasource"]) {
            say(name, "asks another source");
        }
        for fault in faults(text(annotation, "expr"), &variables) {
            say(name, &fault);
        }
    }

    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        if !ids.insert(panel["id"].as_u64()) || panel["id"].is_null() {
            say(text(panel, "title"), "has no id of its own");
        }
        if text(panel, "title").is_empty() {
            say("panel", "has no title");
        }
        if panel["type"] == "row" {
            continue;
        }
        let title = text(panel, "title");
        if text(panel, "description").is_empty() {
            say(title, "has no description");
        }
        if !is_source(&panel["datasource"]) || !targets(panel).all(|target| is_source(&target["datasource"]))
        {
            say(title, "asks another source");
        }
        let units = overridden(panel, "unit").chain([&panel["fieldConfig"]["defaults"]["unit"]]);
        for unit in units.map(|unit| unit.as_str().unwrap_or_default()) {
            if !UNITS.contains(&unit) && !unit.starts_with("currency:") {
                say(title, &format!("has the unit {unit:?}"));
            }
        }
        let references: BTreeSet<_> = targets(panel).map(|target| text(target, "refId")).collect();
        if references.is_empty() || references.len() != targets(panel).count() {
            say(title, "has no targets, or two of one name");
        }
        for target in targets(panel) {
            for fault in faults(text(target, "expr"), &variables) {
                say(title, &fault);
            }
        }
    }
    wrong
}

/// Values that overrides of a panel give to a property.
fn overridden<'a>(panel: &'a Value, property: &'a str) -> impl Iterator<Item = &'a Value> {
    let overrides = panel["fieldConfig"]["overrides"].as_array().unwrap().iter();
    let properties = overrides.flat_map(|change| change["properties"].as_array().unwrap());
    properties.filter(move |change| change["id"] == property).map(|change| &change["value"])
}

/// What is wrong with an expression.
fn faults(expression: &str, variables: &[&Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    if expression.contains("$__interval") || expression.contains("${datasource") {
        wrong.push("has an interval shorter than two scrapes".to_owned());
    }
    for Selector { metric, matchers, window, function } in selectors(expression) {
        for label in ["job", "instance", "home", "project", "model"] {
            let asked =
                variables.iter().any(|variable| variable["name"] == label) && has_label(&metric, label);
            if asked && !matchers.contains(&format!("{label}=~\"${label}\"")) {
                wrong.push(format!("{metric} is not matched by ${label}"));
            }
        }
        if let Some(matcher) = matchers.iter().find(|matcher| matcher.contains("=\"$")) {
            wrong.push(format!("{metric} matches several values literally: {matcher}"));
        }
        // Fixed windows decide whether a quota lasts; everything else follows the zoom.
        let fixed = metric == "gemgauge_quota_consumed_ratio_total"
            && matches!(window.as_deref(), Some("30m" | "2h"));
        let rate = matches!(&*function, "rate" | "irate");
        if rate && window.as_deref() != Some("$__rate_interval") && !fixed {
            wrong.push(format!("the rate of {metric} is over {window:?}"));
        }
        // Last minus first is exact; increase() is for graphs. A counter's own value says nothing.
        let counter = metric.ends_with("_total") || metric.ends_with("_bucket") || metric.ends_with("_count");
        let counted = ["rate", "irate", "increase", "last_over_time", "min_over_time"].contains(&&*function);
        let consumed =
            metric == "gemgauge_quota_consumed_ratio_total" && expression.contains("min_over_time");
        if counter && !counted && !consumed {
            wrong.push(format!("the counter {metric} stands in {function:?}"));
        }
        if rate && !counter {
            wrong.push(format!("{metric} is no counter"));
        }
    }
    wrong
}

#[test]
fn dashboards_keep_the_linters_rules() {
    for dashboard in Dashboard::all() {
        let found = findings(&dashboard.json);
        assert!(found.is_empty(), "{}:\n{}", dashboard.uid, found.join("\n"));
    }
}

#[test]
fn a_planted_fault_is_found() {
    let whole = Dashboard::all().remove(0).json;
    let plant = |pointer: &str, value: Value| {
        let mut planted = whole.clone();
        *planted.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        findings(&planted).join("; ")
    };
    let stat = whole["panels"].as_array().unwrap().iter().position(|panel| panel["type"] == "stat").unwrap();
    let at = |rest: &str| format!("/panels/{stat}{rest}");
    for (pointer, value, wanted) in [
        ("/editable".to_owned(), true.into(), "is editable"),
        ("/templating/list/1/multi".to_owned(), false.into(), "does not take several values"),
        (at("/description"), "".into(), "has no description"),
        (at("/datasource/uid"), "P1809F7CD0C75ACF3".into(), "asks another source"),
        (at("/fieldConfig/defaults/unit"), "dollar".into(), "has the unit"),
        (at("/id"), 1.into(), "has no id of its own"),
        (at("/targets/0/expr"), "sum(gemgauge_up)".into(), "not matched by $job"),
        (
            at("/targets/0/expr"),
            "sum(rate(gemgauge_tokens_total{job=~\"$job\", instance=~\"$instance\"}[5m]))".into(),
            "the rate of gemgauge_tokens_total is over",
        ),
        (at("/targets/0/expr"), "gemgauge_requests_total".into(), "stands in \"\""),
        (at("/targets/0/expr"), "rate(gemgauge_up[$__rate_interval])".into(), "is no counter"),
    ] {
        let found = plant(&pointer, value);
        assert!(found.contains(wanted), "{pointer}: {wanted} in {found:?}");
    }
}

#[test]
fn dashboards_are_laid_out_side_by_side() {
    for dashboard in Dashboard::all() {
        let mut taken = BTreeSet::new();
        for panel in dashboard.json["panels"].as_array().unwrap() {
            let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
            assert!(w > 0 && h > 0 && x + w <= 24, "{} {}", dashboard.uid, panel["title"]);
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                assert!(taken.insert(cell), "{} {} lies on another", dashboard.uid, panel["title"]);
            }
        }
    }
}

#[test]
fn dashboards_lead_to_each_other_and_to_the_page() {
    let dashboards = Dashboard::all();
    let uids: BTreeSet<_> =
        dashboards.iter().map(|dashboard| dashboard.json["uid"].as_str().unwrap()).collect();
    assert_eq!(uids, dashboards.iter().map(|dashboard| dashboard.uid).collect());
    let mut pages = 0;
    for dashboard in &dashboards {
        assert!(dashboard.json["tags"].as_array().unwrap().contains(&"gemgauge".into()));
        let variables: BTreeSet<_> = dashboard.variables().map(|variable| text(variable, "name")).collect();
        assert!(variables.contains("page"), "{variables:?}");
        let defaults = dashboard.panels().map(|panel| &panel["fieldConfig"]["defaults"]["links"]);
        let links = defaults.chain(dashboard.panels().flat_map(|panel| overridden(panel, "links")));
        for link in links.filter_map(Value::as_array).flatten() {
            let url = text(link, "url");
            match url.strip_prefix("/d/") {
                Some(there) => {
                    let (uid, rest) = there.split_once("?var-").unwrap();
                    assert!(uids.contains(uid), "{url}");
                    let target = dashboards.iter().find(|dashboard| dashboard.uid == uid).unwrap();
                    let variable = rest.split('=').next().unwrap();
                    assert!(target.variables().any(|known| known["name"] == variable), "{url}");
                }
                None => {
                    assert!(url.starts_with("${page}/#session="), "{url}");
                    pages += 1;
                }
            }
        }
    }
    assert!(pages > 0, "a session leads to the page");
}
