//! A real Prometheus scrapes a real service: what it stores is what was spent.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::exposition::promtool;
use crate::support::Sandbox;
use crate::support::chats::{Project, Spent};
use crate::support::poll::until_eq;
use crate::support::service::Service;
use crate::support::skip::missing;

const ANA: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const BEN: &str = "bbbbbbbb-0000-4000-8000-000000000002";
const CY: &str = "cccccccc-0000-4000-8000-000000000003";

/// Exact spend over a range (interface, *Metrics*; docs/metrics.md).
pub(crate) const SPEND: &str =
    "sum by (project) (last_over_time(C[R]) - (last_over_time(C[R] offset R) or min_over_time(C[R])))";

pub(crate) struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    /// Scrapes every second; `None` where it is not installed.
    fn start(dir: &Path, target: SocketAddr) -> Option<Self> {
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
             scrape_configs: [{{job_name: gemgauge, static_configs: [{{targets: ['{target}']}}]}}]\n"
        );
        Self::spawn(dir, &config)
    }

    /// Scrapes nothing and answers from what is in `tsdb`, however old it is;
    /// `None` where it is not installed.
    pub(crate) fn of_blocks(dir: &Path) -> Option<Self> {
        Self::spawn(dir, "global: {}\n")
    }

    /// `None` where it is not installed.
    pub(crate) fn spawn(dir: &Path, config: &str) -> Option<Self> {
        std::fs::write(dir.join("prometheus.yml"), config).unwrap();
        let log = std::fs::File::create(dir.join("prometheus.log")).unwrap();
        let address = free_address();
        let child = Command::new("prometheus")
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=tsdb")
            .arg("--storage.tsdb.retention.time=50y")
            .arg(format!("--web.listen-address={address}"))
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        match child {
            Ok(child) => Some(Self { child, address }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => panic!("prometheus does not start: {error}"),
        }
    }

    /// The result of an instant query; `None` while it is not up.
    pub(crate) fn query(&self, query: &str) -> Option<Value> {
        Some(self.ask("query", &[("query", query)])?["result"].clone())
    }

    /// The data of an answer of the API; `None` while it is not up.
    pub(crate) fn ask(&self, what: &str, parameters: &[(&str, &str)]) -> Option<Value> {
        let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        let parameters: Vec<String> =
            parameters.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let mut stream = TcpStream::connect(self.address).ok()?;
        write!(stream, "GET /api/v1/{what}?{} HTTP/1.0\r\n\r\n", parameters.join("&")).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let answer: Value = serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()?;
        assert!(
            answer["status"] == "success" || answer["errorType"] == "unavailable",
            "{what} {parameters:?}: {answer}"
        );
        Some(answer["data"].clone())
    }

    /// The only sample of a query, if there is one yet.
    pub(crate) fn value(&self, query: &str) -> Option<f64> {
        let result = self.query(query)?;
        assert!(result.as_array()?.len() <= 1, "{query}: {result}");
        result[0]["value"][1].as_str()?.parse().ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that stays free until it is taken: below the ports that the
/// system gives to clients and to listeners that ask for any.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(101);
    std::iter::repeat_with(|| first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000 + 20_000)
        .map(|port| SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).expect("below 30,000"))))
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("a port is free")
}

/// Passes scrapes on to the service as a scraper that knows the text format only.
fn text_only(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            // A scraper that hangs up in between scrapes again.
            let _ = client.read(&mut [0; 8192]).and_then(|_| {
                let mut service = TcpStream::connect(to)?;
                write!(service, "GET /metrics HTTP/1.0\r\nHost: {to}\r\nAccept: text/plain\r\n\r\n")?;
                std::io::copy(&mut service, &mut client)
            });
        }
    });
    address
}

#[test]
fn promtool_finds_nothing_in_a_real_scrape() {
    let sandbox = Sandbox::new();
    let journal = Project::new(&sandbox.home(), "proj").session(ANA);
    journal.request();
    journal.line("{ torn");
    let service = sandbox.serve_ready(&[]);
    service.wait_spent(journal.spent());
    match promtool(&service.get("/metrics").body) {
        None => missing("promtool"),
        Some(said) => assert_eq!(said, ""),
    }
}

/// Histories, births and outages, scraped in one format. `via` is how
/// Prometheus reaches the service.
fn stores_exactly_what_was_spent(via: fn(SocketAddr) -> SocketAddr) {
    let sandbox = Sandbox::new();
    let old = Project::new(&sandbox.home(), "old").session(ANA);
    old.requests(3);
    let history = old.spent();
    let address = free_address();
    let serve = || {
        let command = sandbox.command(&["serve", "--web.listen-address", &address.to_string()]);
        Service::start(command, sandbox.path().join("serve.log"))
    };
    let service = serve();
    service.wait_ready();
    let Some(prometheus) = Prometheus::start(sandbox.path(), via(address)) else {
        missing("prometheus");
        return;
    };
    until_eq("a scrape", &Some(1.0), || prometheus.value("up"));
    settle(&service, &prometheus, history);

    // Spent while both run: by a known label set, and by one that is born now.
    old.requests(2);
    let new = Project::new(&sandbox.home(), "new").session(BEN);
    new.requests(4);
    settle(&service, &prometheus, old.spent().plus(new.spent()));
    let born = "max(min_over_time(gemgauge_tokens_total{project='new'}[1h]))";
    assert_eq!(prometheus.value(born), Some(0.0), "every class stood at 0 first");

    // An outage of the service, with spend in it, and a birth after it.
    assert_eq!(service.terminate(), Some(0));
    old.request();
    let service = serve();
    service.wait_spent(old.spent().plus(new.spent()));
    let late = Project::new(&sandbox.home(), "late").session(CY);
    late.request();
    settle(&service, &prometheus, old.spent().plus(new.spent()).plus(late.spent()));

    let since =
        |spent: Spent, was: Spent| [spent.tokens.total() - was.tokens.total(), spent.requests - was.requests];
    let none = Spent::default();
    let wanted = [
        ("old", since(old.spent(), history)),
        ("new", since(new.spent(), none)),
        ("late", since(late.spent(), none)),
    ];
    for (counter, at) in [("gemgauge_tokens_total", 0), ("gemgauge_requests_total", 1)] {
        let result =
            prometheus.query(&SPEND.replace("C[", &format!("{counter}[")).replace('R', "1h")).unwrap();
        for (project, spent) in wanted {
            let rows = result.as_array().unwrap();
            let row = rows.iter().find(|row| row["metric"]["project"] == project);
            let value: Option<u64> = row.and_then(|row| row["value"][1].as_str()?.parse().ok());
            assert_eq!(value, Some(spent[at]), "{project} in {counter}: {result}");
        }
    }
}

/// Waits until the ledger holds it and Prometheus has scraped it.
fn settle(service: &Service, prometheus: &Prometheus, all: Spent) {
    service.wait_spent(all);
    let stored = || {
        let value = |counter: &str| prometheus.value(&format!("sum({counter})")).map(|value| value as u64);
        (value("gemgauge_requests_total"), value("gemgauge_tokens_total"))
    };
    until_eq("a scrape of it", &(Some(all.requests), Some(all.tokens.total())), stored);
}

#[test]
fn prometheus_stores_exactly_what_was_spent_in_openmetrics() {
    // It prefers OpenMetrics where a service offers it.
    stores_exactly_what_was_spent(|address| address);
}

#[test]
fn prometheus_stores_exactly_what_was_spent_in_the_text_format() {
    stores_exactly_what_was_spent(text_only);
}
