//! The whole way of an alert: scraped, evaluated by the rules as they are
//! shipped, handed to a real Alertmanager, told to a webhook, and resolved.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::Value;

use super::root;
use crate::prometheus::{Prometheus, free_address};
use crate::support::poll::{until, until_eq};
use crate::support::skip::missing;

/// What a scrape shows.
struct Shown {
    spent: f64,
    refused: u8,
}

impl Shown {
    fn text(&self) -> String {
        let Self { spent, refused } = self;
        let bucket = "account=\"a1\",cloud_project=\"cp\",model=\"pro\",token_type=\"REQUESTS\"";
        format!(
            "gemgauge_up 1\n\
             gemgauge_build_info{{version=\"0\",revision=\"r\",rustc=\"c\"}} 1\n\
             gemgauge_budget_limit_usd{{budget=\"team\"}} 10\n\
             gemgauge_budget_spent_usd{{budget=\"team\"}} {spent}\n\
             gemgauge_budget_spent_at_least_usd{{budget=\"team\"}} {spent}\n\
             gemgauge_budget_spent_exact{{budget=\"team\"}} 0\n\
             gemgauge_quota_blocked{{{bucket},evidence=\"poll\"}} 0\n\
             gemgauge_quota_blocked{{{bucket},evidence=\"429\"}} {refused}\n"
        )
    }
}

/// An exporter whose scrape a test writes, and a webhook that keeps what it is told.
struct Ends {
    address: SocketAddr,
    shown: Arc<Mutex<Shown>>,
    told: Arc<Mutex<Vec<Value>>>,
    _runtime: tokio::runtime::Runtime,
}

impl Ends {
    fn new() -> Self {
        let shown = Arc::new(Mutex::new(Shown { spent: 10.0, refused: 0 }));
        let told = Arc::<Mutex<Vec<Value>>>::default();
        let (scrape, keep) = (shown.clone(), told.clone());
        let router = Router::new()
            .route("/metrics", get(move || std::future::ready(scrape.lock().unwrap().text())))
            .route(
                "/hook",
                post(move |Json(notice): Json<Value>| {
                    keep.lock().unwrap().push(notice);
                    std::future::ready("")
                }),
            );
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async { axum::serve(listener, router).await.unwrap() });
        Self { address, shown, told, _runtime: runtime }
    }

    fn show(&self, spent: f64, refused: u8) {
        *self.shown.lock().unwrap() = Shown { spent, refused };
    }

    /// The last alert of each name that the webhook was told of with that status.
    fn told(&self, status: &str) -> BTreeMap<String, Value> {
        let told = self.told.lock().unwrap();
        let alerts = told.iter().flat_map(|notice| {
            assert_eq!(notice["version"], "4", "{notice}");
            notice["alerts"].as_array().unwrap()
        });
        let alerts = alerts.filter(|alert| alert["status"] == status);
        alerts
            .map(|alert| (alert["labels"]["alertname"].as_str().unwrap().to_owned(), alert.clone()))
            .collect()
    }

    fn names(&self, status: &str) -> Vec<String> {
        self.told(status).into_keys().collect()
    }
}

struct Alertmanager {
    child: Child,
    address: SocketAddr,
}

impl Alertmanager {
    /// `None` where it is not installed.
    fn start(dir: &Path, hook: SocketAddr) -> Option<Self> {
        let config = format!(
            "route: {{receiver: hook, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}\n\
             receivers: [{{name: hook, webhook_configs: [{{url: 'http://{hook}/hook'}}]}}]\n"
        );
        std::fs::write(dir.join("alertmanager.yml"), config).unwrap();
        let log = std::fs::File::create(dir.join("alertmanager.log")).unwrap();
        let address = free_address();
        let child = Command::new("prometheus-alertmanager")
            .args(["--config.file=alertmanager.yml", "--storage.path=alertmanager"])
            .arg(format!("--web.listen-address={address}"))
            // No port for a cluster.
            .arg("--cluster.listen-address=")
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        match child {
            Ok(child) => Some(Self { child, address }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => panic!("prometheus-alertmanager does not start: {error}"),
        }
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// When each group of rules was last evaluated.
fn evaluated(prometheus: &Prometheus) -> BTreeMap<String, String> {
    let Some(rules) = prometheus.ask("rules", &[]) else { return BTreeMap::new() };
    let groups = rules["groups"].as_array().cloned().unwrap_or_default();
    let text = |group: &Value, key: &str| group[key].as_str().unwrap().to_owned();
    groups.iter().map(|group| (text(group, "name"), text(group, "lastEvaluation"))).collect()
}

#[test]
fn exhaustion_and_a_budget_reach_a_webhook_and_are_resolved() {
    let dir = tempfile::tempdir().unwrap();
    let ends = Ends::new();
    let Some(alertmanager) = Alertmanager::start(dir.path(), ends.address) else {
        return missing("prometheus-alertmanager");
    };
    let config = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n\
         rule_files: ['{}/*.yml']\n\
         alerting: {{alertmanagers: [{{static_configs: [{{targets: ['{}']}}]}}]}}\n\
         scrape_configs: [{{job_name: ai, static_configs: [{{targets: ['{}']}}]}}]\n",
        root().join("rules").display(),
        alertmanager.address,
        ends.address,
    );
    let Some(prometheus) = Prometheus::spawn(dir.path(), &config) else { return missing("prometheus") };

    // At the limit, and not refused: whole evaluations pass, and nothing fires.
    let spent = "gemgauge_budget_spent_usd{budget='team'} == 10";
    until("a scrape", || prometheus.query(spent).filter(|rows| rows[0].is_object()).ok_or("none yet"));
    let before = evaluated(&prometheus);
    let alerts = ["gemgauge-quota-alerts", "gemgauge-spend-alerts"];
    until("an evaluation after it", || {
        let now = evaluated(&prometheus);
        if alerts.iter().all(|group| now[*group] != before[*group]) { Ok(()) } else { Err(now) }
    });
    let fires = "ALERTS{alertname=~'GemgaugeBudgetOver|GemgaugeQuotaExhausted'}";
    assert_eq!(prometheus.query(fires), Some(Value::Array(Vec::new())));

    ends.show(10.25, 1);
    let both = ["GemgaugeBudgetOver", "GemgaugeQuotaExhausted"].map(str::to_owned);
    until_eq("both alerts", &both.to_vec(), || ends.names("firing"));
    let told = ends.told("firing");
    let [budget, quota] = both.each_ref().map(|name| &told[name]);
    assert_eq!(budget["labels"]["severity"], "critical");
    assert_eq!(budget["labels"]["budget"], "team");
    assert_eq!(budget["annotations"]["description"], "$10.25 or more spent of $10.00, at list prices.");
    assert_eq!(budget["annotations"]["runbook_url"], "docs/runbooks.md#gemgaugebudgetover");
    assert_eq!(quota["labels"]["model"], "pro");
    assert_eq!(quota["annotations"]["summary"], "Gemini quota of pro is used up");
    assert_eq!(ends.names("resolved"), [] as [String; 0]);

    // A new period of the budget, and a request that was answered.
    ends.show(0.5, 0);
    until_eq("both alerts resolved", &both.to_vec(), || ends.names("resolved"));
}
