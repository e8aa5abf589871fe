//! Budgets as a user checks them, and hooks as a receiver meets them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::support::Sandbox;
use crate::support::chats::{Journal, Project};
use crate::support::poll::{until, until_eq};
use crate::support::service::Service;

const ANA: &str = "aaaaaaaa-0000-4000-8000-000000000001";

fn journal(sandbox: &Sandbox, requests: u64) -> Journal {
    let journal = Project::new(&sandbox.home(), "proj").session(ANA);
    journal.requests(requests);
    journal
}

fn configure(sandbox: &Sandbox, text: &str) {
    sandbox.write("home/.config/gemgauge/config.yml", text);
}

/// A budget that the first request of a journal, some cents, goes far over.
const TIGHT: &str = "budgets:\n  - {name: tight, limit_usd: 0.0001, period: month, thresholds: [0.5, 1]}\n";
/// One that nothing reaches.
const WIDE: &str = "budgets:\n  - {name: wide, limit_usd: 1000000, period: month}\n";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A receiver on loopback that answers with these statuses, the last one from then on.
struct Receiver {
    address: SocketAddr,
    got: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Receiver {
    fn new(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let got = Arc::<Mutex<Vec<_>>>::default();
        let kept = got.clone();
        std::thread::spawn(move || {
            for (n, stream) in listener.incoming().enumerate() {
                let request = receive(stream.unwrap(), statuses[n.min(statuses.len() - 1)]);
                kept.lock().unwrap().push(request);
            }
        });
        Self { address, got }
    }

    fn url(&self) -> String {
        format!("http://{}/T00/s3cret", self.address)
    }

    fn got(&self) -> Vec<(String, Value)> {
        self.got.lock().unwrap().clone()
    }

    /// The thresholds of what came, in order.
    fn thresholds(&self) -> Vec<f64> {
        self.got().iter().map(|(_, body)| body["threshold"].as_f64().unwrap()).collect()
    }
}

/// Takes one request in: its first line, and its body.
fn receive(mut stream: TcpStream, status: u16) -> (String, Value) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        if header.trim().is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').unwrap();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    write!(
        stream,
        "HTTP/1.1 {status} x\r\nContent-Length: 0\r\nLocation: /elsewhere\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    (line.trim().to_owned(), serde_json::from_slice(&body).unwrap())
}

fn with_webhook(budgets: &str, url: &str, retries: u64) -> String {
    format!("{budgets}hooks:\n  webhook:\n    url: {url}\n    timeout_seconds: 2\n    retries: {retries}\n")
}

fn deliveries(service: &Service) -> [f64; 3] {
    let text = service.get("/metrics").body;
    ["ok", "failed", "gave_up"].map(|result| {
        let series = format!("gemgauge_webhook_deliveries_total{{result=\"{result}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
    })
}

#[test]
fn check_says_by_its_exit_code_whether_a_budget_is_over() {
    let sandbox = Sandbox::new();
    let none = sandbox.run(&["budget", "--check"]);
    assert_eq!(none.code, 1, "nothing to check is no success");
    assert_eq!(sandbox.run(&["budget"]).code, 0);

    configure(&sandbox, TIGHT);
    let before = sandbox.run(&["budget", "--check"]);
    assert_eq!(before.code, 0, "{before:?}");
    journal(&sandbox, 1);
    let stale = sandbox.run(&["budget", "--check", "--no-scan"]);
    assert_eq!(stale.code, 0, "{stale:?}");
    let over = sandbox.run(&["budget", "--check"]);
    assert_eq!((over.code, over.err.as_str()), (1, ""), "{over:?}");
    assert!(over.out.starts_with("tight: all, month (20"), "{}", over.out);
    assert!(over.out.contains(")  OVER\n  ████████████████████ "), "{}", over.out);
    assert!(over.out.contains("  ≥ $0.0") && over.out.contains(" of $0.00010, ≤ -$0.0"), "{}", over.out);
    assert!(over.out.lines().all(|line| line.chars().count() <= 80), "{}", over.out);
    assert_eq!(sandbox.run(&["budget"]).code, 0, "without --check it only shows");

    configure(&sandbox, WIDE);
    assert_eq!(sandbox.run(&["budget", "--check"]).code, 0);
}

#[test]
fn budgets_agree_with_the_report() {
    let sandbox = Sandbox::new();
    journal(&sandbox, 3);
    let entry = |name: &str, scope: &str| {
        format!("  - {{name: {name}, limit_usd: 100, period: day, {scope}thresholds: [0.5]}}\n")
    };
    let budgets = [
        entry("all", ""),
        entry("proj", "project: proj, "),
        entry("model", "model: gemini-2.5-pro, "),
        entry("else", "project: nothing, "),
    ];
    configure(&sandbox, &format!("budgets:\n{}", budgets.concat()));
    let said = json(&sandbox.run(&["budget", "--json"]).out);
    let total = json(&sandbox.run(&["report", "daily", "-s", "today", "--json"]).out)["total"].clone();
    for n in 0..3 {
        let budget = &said["budgets"][n];
        assert_eq!(budget["spent_bound"], "at_least");
        let left = budget["left_usd"].as_f64().unwrap();
        let spent = budget["spent_usd"].as_f64().unwrap();
        assert!(spent > 0.0 && (left + spent - 100.0).abs() < 1e-9, "{budget}");
        assert_eq!(Some(spent), total["cost_usd"].as_f64(), "{total}");
    }
    let nothing = &said["budgets"][3];
    assert_eq!((nothing["unmatched"].as_bool(), nothing["spent_usd"].as_f64()), (Some(true), Some(0.0)));
    assert_eq!((said["schema"].as_u64(), said["over"].as_bool()), (Some(1), Some(false)));
}

#[test]
fn the_status_is_one_line() {
    let sandbox = Sandbox::new();
    let empty = sandbox.run(&["status"]);
    assert_eq!((empty.code, empty.out.as_str()), (0, "$0.00 today · $0.00 this month\n"));
    journal(&sandbox, 1);
    assert_eq!(sandbox.run(&["status", "--no-scan"]).out, empty.out);
    configure(&sandbox, TIGHT);
    let said = sandbox.run(&["status"]);
    assert!(
        said.out.starts_with("≥ $0.0") && said.out.ends_with(" this month · over: tight\n"),
        "{}",
        said.out
    );
    assert_eq!(said.out.lines().count(), 1);
    let said = json(&sandbox.run(&["status", "--json"]).out);
    assert_eq!(
        (said["today"]["cost_bound"].as_str(), said["over"][0].as_str()),
        (Some("at_least"), Some("tight"))
    );
    let nobody = sandbox.run(&["status", "--home", "nobody"]);
    assert_eq!(nobody.code, 1, "{nobody:?}");
}

#[test]
fn a_wrong_budget_stops_the_start_with_its_line_and_its_key() {
    let sandbox = Sandbox::new();
    let path = sandbox.write(
        "home/.config/gemgauge/config.yml",
        "budgets:\n  - name: team\n    limit_usd: -5\n    period: month\n",
    );
    for command in [&["budget"][..], &["status"], &["serve"], &["report"]] {
        let said = sandbox.run(command);
        let start = format!("gemgauge: {}, line 3, budgets.limit_usd: `-5` is no limit", path.display());
        assert_eq!((said.code, said.out.as_str()), (1, ""));
        assert!(said.err.starts_with(&start), "{}", said.err);
    }
}

#[test]
fn a_webhook_is_told_of_each_threshold_once_whatever_restarts_are_between() {
    let sandbox = Sandbox::new();
    let journal = journal(&sandbox, 2);
    let receiver = Receiver::new(&[200]);
    configure(&sandbox, &with_webhook(TIGHT, &receiver.url(), 3));
    let service = sandbox.serve_ready(&[]);
    until_eq("both thresholds", &vec![0.5, 1.0], || receiver.thresholds());
    until_eq("the count", &[2.0, 0.0, 0.0], || deliveries(&service));

    let (line, body) = &receiver.got()[0];
    assert_eq!(line, "POST /T00/s3cret HTTP/1.1");
    assert_eq!((body["event"].as_str(), body["schema"].as_u64()), (Some("budget_threshold"), Some(1)));
    let budget = &body["budget"];
    assert_eq!((budget["name"].as_str(), budget["period"].as_str()), (Some("tight"), Some("month")));
    assert_eq!(
        (budget["limit_usd"].as_f64(), budget["spent_bound"].as_str()),
        (Some(0.0001), Some("at_least"))
    );
    assert!(budget["spent_usd"].as_f64().unwrap() > 0.001);
    let contributors = &body["contributors"];
    assert_eq!(contributors["projects"][0]["name"], "proj");
    assert_eq!(contributors["models"][0]["name"], "gemini-2.5-pro");
    assert_eq!(contributors["sessions"][0]["name"], ANA);
    assert!(body["text"].as_str().unwrap().contains("budget tight reached 0.5 of its limit: ≥ $"), "{body}");

    // More spend in the same period, and a restart, tell nothing again.
    journal.requests(3);
    service.wait_spent(journal.spent());
    assert_eq!(service.terminate(), Some(0));
    let service = sandbox.serve_ready(&[]);
    until("the budget metrics", || {
        let text = service.get("/metrics").body;
        if text.contains("gemgauge_budget_spent_usd{budget=\"tight\"} 0.") { Ok(()) } else { Err(text) }
    });
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(receiver.thresholds(), [0.5, 1.0]);
    assert_eq!(deliveries(&service), [0.0, 0.0, 0.0]);
    assert!(!service.log().contains("s3cret"), "{}", service.log());
}

#[test]
fn a_receiver_in_trouble_is_asked_again() {
    let sandbox = Sandbox::new();
    journal(&sandbox, 1);
    let receiver = Receiver::new(&[500, 200]);
    configure(&sandbox, &with_webhook(TIGHT, &receiver.url(), 3));
    let service = sandbox.serve_ready(&[]);
    until_eq("what came", &vec![0.5, 0.5, 1.0], || receiver.thresholds());
    until_eq("the count", &[2.0, 1.0, 0.0], || deliveries(&service));
    let [first, again, _] = &receiver.got()[..] else { panic!("three came") };
    assert_eq!(first.1["id"], again.1["id"], "whoever gets it twice can tell");
}

#[test]
fn an_answer_that_sends_it_elsewhere_is_not_followed() {
    let sandbox = Sandbox::new();
    journal(&sandbox, 1);
    let receiver = Receiver::new(&[302]);
    configure(&sandbox, &with_webhook(TIGHT, &receiver.url(), 3));
    let service = sandbox.serve_ready(&[]);
    until_eq("the count", &[0.0, 2.0, 2.0], || deliveries(&service));
    assert!(receiver.got().iter().all(|(line, _)| line.starts_with("POST /T00/")));
}

#[test]
fn a_dead_receiver_is_counted_and_disturbs_nothing() {
    let sandbox = Sandbox::new();
    let journal = journal(&sandbox, 2);
    // Nobody listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    configure(&sandbox, &with_webhook(TIGHT, &format!("http://{gone}/s3cret"), 1));
    let service = sandbox.serve_ready(&[]);
    until("a failed attempt", || {
        let counts = deliveries(&service);
        if counts[1] > 0.0 { Ok(()) } else { Err(counts) }
    });
    journal.requests(4);
    service.wait_spent(journal.spent());
    until_eq("the count", &[0.0, 4.0, 2.0], || deliveries(&service));
    assert!(!service.log().contains("s3cret"), "{}", service.log());
    assert_eq!(service.terminate(), Some(0));
}

#[test]
fn a_receiver_that_never_answers_does_not_keep_the_service() {
    let sandbox = Sandbox::new();
    let journal = journal(&sandbox, 1);
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    configure(&sandbox, &with_webhook(TIGHT, &url, 9));
    let service = sandbox.serve_ready(&[]);
    journal.requests(2);
    service.wait_spent(journal.spent());
    until("an attempt that took too long", || {
        let counts = deliveries(&service);
        if counts[1] > 0.0 { Ok(()) } else { Err(counts) }
    });
    assert_eq!(service.terminate(), Some(0));
}

#[test]
fn a_command_gets_the_notice_on_its_standard_input_once() {
    let sandbox = Sandbox::new();
    journal(&sandbox, 1);
    let told = sandbox.path().join("told");
    configure(
        &sandbox,
        &format!("{TIGHT}hooks:\n  command: [sh, -c, 'cat >> \"$0\"', {}]\n", told.display()),
    );
    let read = || std::fs::read_to_string(&told).unwrap_or_default();
    let service = sandbox.serve_ready(&[]);
    until("both notices", || if read().lines().count() == 2 { Ok(()) } else { Err(read()) });
    let thresholds: Vec<_> = read().lines().map(|line| json(line)["threshold"].as_f64()).collect();
    assert_eq!(thresholds, [Some(0.5), Some(1.0)]);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(service.terminate(), Some(0));
    let service = sandbox.serve_ready(&[]);
    until("the budget metrics", || {
        let text = service.get("/metrics").body;
        if text.contains("gemgauge_budget_info{budget=\"tight\"") { Ok(()) } else { Err(text) }
    });
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(read().lines().count(), 2);
}

#[test]
fn a_ledger_from_before_is_brought_up_to_date_and_a_new_one_leaves_no_copy() {
    let sandbox = Sandbox::new();
    journal(&sandbox, 1);
    configure(&sandbox, TIGHT);
    assert_eq!(sandbox.run(&["budget", "--check"]).code, 1);
    let copy = sandbox.ledger().with_file_name("ledger.db.v1.bak");
    assert!(!copy.exists(), "nothing was to be kept");

    // As version 1 made it; its requests are read from the journal again.
    for file in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let _ = std::fs::remove_file(sandbox.ledger().with_file_name(file));
    }
    let ledger = rusqlite::Connection::open(sandbox.ledger()).unwrap();
    ledger.execute_batch(include_str!("../../migrations/0001_spine.sql")).unwrap();
    ledger.execute_batch("PRAGMA user_version = 1; PRAGMA application_id = 0x47656d47;").unwrap();
    drop(ledger);
    let again = sandbox.run(&["budget", "--check"]);
    assert_eq!((again.code, again.err.as_str()), (1, ""), "{again:?}");
    assert!(copy.exists());
}
